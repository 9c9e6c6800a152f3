"""The way records were lost, in one clause: what the new leader did, and who followed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wrackline.checkers.verdict.wording import listed, seconds
from wrackline.harness.run.incidents.mechanisms import Evidence, Told, cut_back, when
from wrackline.harness.run.incidents.node_lines import Line, Tells

MOST_DEEDS: Final = 4
"""Of one clause; what else is known stands in sentences of its own."""
_SAID_OF_LEADER: Final = (
    "truncation to the high watermark",
    "lost bytes",
    "unclean election",
    "leader behind",
)
_COME_FIRST: Final = ("leader that cut its log", "changed files")
_SAID_BESIDE: Final = (*_COME_FIRST, "deposed leader")


@dataclass(frozen=True, slots=True)
class How:
    """``clause``: ``n3 cut them at 11.1 s, and became leader at 14.7 s``; empty where the evidence shows no
    more than that the leader changed. ``told``: the mechanisms that it says."""

    clause: str = ""
    told: tuple[Told, ...] = ()


def how_of(evidence: Evidence, told: Mapping[str, Told]) -> How:
    """Returns how records were lost. ``told``: by the name of its mechanism."""
    deeds = [*_deeds_of_leader(evidence, told)]
    said = [one for name, one in told.items() if name in _SAID_OF_LEADER]
    for name in _SAID_BESIDE:
        if (one := told.get(name)) is not None and len(deeds) < MOST_DEEDS:
            deeds.insert(0 if name in _COME_FIRST else len(deeds), (one.who, one.did))
            said.append(one)
    if not said and evidence.dated_cut() is None and not _lacked(evidence):
        return How()
    if followers := _followers(evidence):
        whom = "it" if deeds[-1][0] == evidence.leader else evidence.leader
        deeds.append((listed(followers), f"followed {whom}"))
    return How(_clause(deeds), tuple(said))


def _deeds_of_leader(evidence: Evidence, told: Mapping[str, Told]) -> Iterator[tuple[str, str]]:
    """Yields (who, what it did), in the order of time."""
    leader, cut, takeover = evidence.leader, evidence.dated_cut(), evidence.takeover
    if leader is None:
        return
    for name in ("lost bytes", "leader behind"):
        if name in told:
            yield leader, told[name].did
    if cut is not None and cut.end is not None:
        why = evidence.why(cut)
        yield leader, f"{_cut_of(evidence, cut)}{'' if why is None else f' ({why.value})'}"
    again = " again" if leader == evidence.before.get("leader") else ""
    unclean = " in an unclean election" if "unclean election" in told else ""
    since = evidence.incident["at_ns"] if evidence.incident["at_ns"] is not None else evidence.taken_over_ns
    date = "" if since is None else f" at {seconds(since)}"
    tail = ""
    if cut is None and takeover is not None and _lacked(evidence) and "leader behind" not in told:
        tail = " with an empty log" if takeover.end == 0 else f" with log end offset {takeover.end:,}"
    yield leader, f"became leader{again}{unclean}{date}{tail}"


def _lacked(evidence: Evidence) -> bool:
    """Tells whether the new leader's log is known to have lacked some of the records when it took over."""
    return evidence.takeover is not None and evidence.takeover.end is not None and evidence.short()


def _cut_of(evidence: Evidence, cut: Line) -> str:
    """``cut them at 11.1 s`` (or ``it``) where the replica had all of them and kept none."""
    first, last = evidence.incident["first_offset"], evidence.incident["last_offset"]
    if None not in (first, last, cut.was, cut.end) and (cut.end or 0) <= first and (cut.was or 0) > last:
        return f"cut {'it' if first == last else 'them'}{when(cut)}"
    return cut_back(cut, was=False)


def _followers(evidence: Evidence) -> list[str]:
    """Returns the replicas that began to follow the new leader in its epoch."""
    epoch = (evidence.incident.get("leader_after") or {}).get("leader_epoch")
    if evidence.takeover is not None:
        epoch = evidence.takeover.leader_epoch
    if epoch is None or epoch == evidence.before.get("leader_epoch"):
        return []  # not known, or a system without leader epochs
    result = {line.host for line in evidence.own if (line.tells, line.leader_epoch) == (Tells.FOLLOWS, epoch)}
    return sorted(result - {evidence.leader or ""})


def _clause(deeds: Sequence[tuple[str, str]]) -> str:
    """``n3 cut them, became leader, and n1 followed it``: nobody is named twice in a row."""
    said: list[str] = []
    for number, (who, did) in enumerate(deeds):
        said.append(did if number and deeds[number - 1][0] == who else f"{who} {did}")
    if len(said) < 2:
        return "".join(said)
    return f"{', '.join(said[:-1])}, and {said[-1]}"
