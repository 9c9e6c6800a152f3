"""The history of a controller quorum, held against the rules of its changes: control records of each
controller's metadata log at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wrackline.simulator.trace_check.verdicts import Broken

RULES: Mapping[str, str] = {
    "Q01": "election safety",
    "Q05": "epochs never fall",
    "Q12": "one voter at a time",
    "Q13": "one voter set at an offset",
    "Q14": "leaders vote",
}
OF_QUORUM = tuple(RULES)
Voter = tuple[int, str]
"""(id, the directory of its disk)"""


@dataclass(frozen=True, slots=True)
class QuorumChange:
    """Somebody leads from this offset on, or others vote."""

    offset: int
    epoch: int
    at_ns: int
    leader: int | None = None
    voters: tuple[Voter, ...] | None = None


@dataclass(frozen=True, slots=True)
class QuorumLog:
    """One controller's copy: its changes in the order of their offsets."""

    node: int
    start: int
    end: int
    epochs: tuple[tuple[int, int], ...]
    """(epoch, the offset from which batches have it), in the order of the log."""
    changes: tuple[QuorumChange, ...]


def judge_quorum(logs: Sequence[QuorumLog]) -> Iterator[Broken]:
    """Yields what does not hold."""
    yield from _one_leader(logs)
    for log in logs:
        yield from _epochs(log)
        yield from _neighbours(log)
        yield from _leaders(log)
    yield from _same_sets(logs)


def _one_leader(logs: Sequence[QuorumLog]) -> Iterator[Broken]:
    first: dict[int, int] = {}
    for log in logs:
        for one in log.changes:
            if one.leader is not None and first.setdefault(one.epoch, one.leader) != one.leader:
                text = f"{first[one.epoch]} and {one.leader} both lead in epoch {one.epoch}"
                yield _broken("Q01", log, one.offset, one.at_ns, text)


def _epochs(log: QuorumLog) -> Iterator[Broken]:
    for (before, _), (epoch, offset) in pairwise(log.epochs):
        if epoch < before:
            yield _broken("Q05", log, offset, 0, f"epoch {epoch} follows epoch {before}")


def _neighbours(log: QuorumLog) -> Iterator[Broken]:
    """Any majority of one set and any of its neighbour have a voter in common only if one voter comes or
    goes at a time (KIP-853)."""
    sets = [one for one in log.changes if one.voters is not None]
    for before, after in pairwise(sets):
        changed = set(before.voters or ()) ^ set(after.voters or ())
        if len(changed) > 1:
            text = f"voters {_listed(before.voters)} are followed by {_listed(after.voters)}"
            yield _broken("Q12", log, after.offset, after.at_ns, text)


def _leaders(log: QuorumLog) -> Iterator[Broken]:
    """A leader is a member of the last set before its own first record, which elected it."""
    voters: tuple[Voter, ...] | None = None
    for one in log.changes:
        if one.leader is not None and voters and one.leader not in {node for node, _ in voters}:
            text = f"{one.leader} leads in epoch {one.epoch} and is none of {_listed(voters)}"
            yield _broken("Q14", log, one.offset, one.at_ns, text)
        voters = one.voters or voters


def _same_sets(logs: Sequence[QuorumLog]) -> Iterator[Broken]:
    """Of the logs that have a batch of the newest epoch: its leader has written into each, so they agree up
    to where the shortest of them ends. Others may have an end that nobody committed."""
    newest = max((log.epochs[-1][0] for log in logs if log.epochs), default=0)
    current = [log for log in logs if log.epochs and log.epochs[-1][0] == newest]
    end = min((log.end for log in current), default=0)
    for first, other in pairwise(current):
        start = max(first.start, other.start)
        one, two = (_sets(log, start, end) for log in (first, other))
        for offset in sorted(one.keys() | two.keys()):
            if one.get(offset) != two.get(offset):
                text = (
                    f"{first.node} has {_listed(one.get(offset))}, "
                    f"{other.node} has {_listed(two.get(offset))}"
                )
                at_ns = next(change.at_ns for log in (first, other) for change in log.changes)
                yield _broken("Q13", other, offset, at_ns, text)
                break


def _sets(log: QuorumLog, start: int, end: int) -> dict[int, tuple[Voter, ...]]:
    return {
        one.offset: one.voters
        for one in log.changes
        if one.voters is not None and start <= one.offset < end and one.offset >= 0
    }


def _listed(voters: tuple[Voter, ...] | None) -> str:
    return ", ".join(f"{node}-{folder}" for node, folder in voters or ()) or "none"


def _broken(rule: str, log: QuorumLog, offset: int, at_ns: int, text: str) -> Broken:
    place = f"offset {offset} of the metadata log on {log.node}"
    return Broken(rule, RULES[rule], at_ns, log.node, "", text, place)
