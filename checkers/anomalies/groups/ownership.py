"""Ownership of partitions: what rebalances left members with, and until when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wrackline.checkers.anomalies.groups.findings import Findings
from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import ASSIGN, REBALANCE, GroupEvent
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.inputs.table import NEVER

_WAITING = ("eager", "cooperative")
"""Protocols by which a group waits for its members before a generation begins."""


@dataclass(slots=True, eq=False)
class Owned:
    """A partition that a rebalance left a member with."""

    log: AboutLog
    rebalance: GroupEvent
    until: int = NEVER
    """Index of the first later event of its process that leaves it without the partition, or says that it
    crashed."""


def double_owners(moves: Sequence[GroupEvent], about: AboutRun) -> Iterator[Finding]:
    """Yields partitions with two owners, of all groups. A member was in a generation if it was told of it,
    though it had no partitions: the group waited for each of these."""
    present = {
        (one.of, one.generation, one.who)
        for one in moves
        if one.f == REBALANCE and one.generation >= 0 and not one.is_lost
    }
    of_generation: dict[tuple[object, ...], list[Owned]] = defaultdict(list)
    leaving: dict[tuple[str, int], list[Owned]] = defaultdict(list)
    result: dict[tuple[object, ...], tuple[GroupEvent, GroupEvent, AboutLog, str]] = {}

    def both(one: Owned, first: Owned, how: str) -> None:
        rebalance, other = one.rebalance, first.rebalance
        if other.who != rebalance.who and other.process != rebalance.process:
            key = (rebalance.of, one.log.number, rebalance.generation, other.who, rebalance.who, how)
            result.setdefault(key, (rebalance, other, one.log, how))

    for one in _owned(moves, about):
        rebalance, place = one.rebalance, (one.rebalance.of, one.log.number)
        for first in of_generation[*place, rebalance.generation]:
            if first.until > rebalance.index:
                both(one, first, "one generation")
        leaving[place] = [other for other in leaving[place] if other.until > rebalance.index]
        for first in leaving[place] if rebalance.protocol in _WAITING else ():
            was_there = (rebalance.of, rebalance.generation, first.rebalance.who) in present
            if (
                was_there
                and first.rebalance.generation < rebalance.generation
                and first.rebalance.protocol == rebalance.protocol
            ):
                both(one, first, "overlap")
        of_generation[*place, rebalance.generation].append(one)
        if one.until != NEVER:
            leaving[place].append(one)
    for what in result.values():
        yield Findings(about).double_owner(*what)


def _owned(moves: Sequence[GroupEvent], about: AboutRun) -> list[Owned]:
    """Lists what members owned, in the order of the events."""
    result: list[Owned] = []
    holding: dict[int, dict[int, list[Owned]]] = defaultdict(dict)
    for rebalance in moves:
        if rebalance.f == ASSIGN:
            continue
        held = holding[rebalance.process]
        for log in [one for one in held if about.of_number[one].partition not in rebalance.partitions]:
            for one in held.pop(log):
                one.until = rebalance.index
        for log in dict.fromkeys(rebalance.logs) if rebalance.generation >= 0 else ():
            result.append(Owned(about.of_number[log], rebalance))
            held.setdefault(log, []).append(result[-1])
    return result
