"""Who owned which partitions: what rebalances left members with, and until when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wrackline.checkers.anomalies.groups.findings import Findings
from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import ASSIGN, REBALANCE, Said
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.inputs.arrays import NEVER

_WAITING = ("eager", "cooperative")
"""Protocols by which a group waits for its members before a generation begins."""


@dataclass(slots=True, eq=False)
class Owned:
    """A partition that a rebalance left a member with."""

    log: AboutLog
    told: Said
    until: int = NEVER
    """Index of the first later event of its process that leaves it without the partition, or says that it
    crashed."""


def double_owners(moves: Sequence[Said], about: AboutRun) -> Iterator[Finding]:
    """Of all groups. A member was in a generation if it was told of it, though it had no partitions: the
    group waited for each of these."""
    present = {
        (one.of, one.generation, one.who) for one in moves if one.f == REBALANCE and one.generation >= 0
    }
    of_generation: dict[tuple[object, ...], list[Owned]] = defaultdict(list)
    leaving: dict[tuple[str, int], list[Owned]] = defaultdict(list)
    found: dict[tuple[object, ...], tuple[Said, Said, AboutLog, str]] = {}

    def both(one: Owned, first: Owned, how: str) -> None:
        told, other = one.told, first.told
        if other.who != told.who and other.process != told.process:
            key = (told.of, one.log.number, told.generation, other.who, told.who, how)
            found.setdefault(key, (told, other, one.log, how))

    for one in _owned(moves, about):
        told, place = one.told, (one.told.of, one.log.number)
        for first in of_generation[*place, told.generation]:
            if first.until > told.index:
                both(one, first, "one generation")
        leaving[place] = [other for other in leaving[place] if other.until > told.index]
        for first in leaving[place] if told.protocol in _WAITING else ():
            was_there = (told.of, told.generation, first.told.who) in present
            if was_there and first.told.generation < told.generation and first.told.protocol == told.protocol:
                both(one, first, "overlap")
        of_generation[*place, told.generation].append(one)
        if one.until != NEVER:
            leaving[place].append(one)
    for what in found.values():
        yield Findings(about).double_owner(*what)


def _owned(moves: Sequence[Said], about: AboutRun) -> list[Owned]:
    """In the order of their events."""
    found: list[Owned] = []
    holding: dict[int, dict[int, list[Owned]]] = defaultdict(dict)
    for told in moves:
        if told.f == ASSIGN:
            continue
        held = holding[told.process]
        for log in [one for one in held if about.of_number[one].partition not in told.partitions]:
            for one in held.pop(log):
                one.until = told.index
        for log in dict.fromkeys(told.logs) if told.generation >= 0 else ():
            found.append(Owned(about.of_number[log], told))
            held.setdefault(log, []).append(found[-1])
    return found
