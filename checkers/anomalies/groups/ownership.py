"""Who owned which partitions: what rebalances left members with, and until when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wrackline.checkers.anomalies.about import AboutLog, AboutRun
from wrackline.checkers.anomalies.finding import Finding
from wrackline.checkers.anomalies.groups.events import ASSIGN, CRASH, Placement
from wrackline.checkers.anomalies.groups.sentences import Sentences


@dataclass(slots=True, eq=False)
class Owned:
    """A partition that a rebalance left a member with."""

    log: AboutLog
    told: Placement
    until: int | None = None
    """Index of the first later event of its process that leaves it without the partition, or says that it
    crashed; None: there is none."""


def double_owners(placements: Sequence[Placement], about: AboutRun) -> Iterator[Finding]:
    """Of all groups. A member was there in a generation if it was told of it, though it had no partitions:
    the group waited for each of these before the generation began."""
    present: set[tuple[str, int, str]] = set()
    owned: dict[tuple[str, int], list[Owned]] = defaultdict(list)
    for one in _owned(placements, about):
        owned[one.told.group, one.log.number].append(one)
    for told in placements:
        if told.f not in (ASSIGN, CRASH) and told.generation >= 0:
            present.add((told.group, told.generation, told.who))
    for group in owned.values():
        found: dict[tuple[int | None, str, str, str], tuple[Placement, Placement, AboutLog]] = {}
        before: list[Owned] = []
        for one in group:
            told = one.told
            before = [other for other in before if other.until is None or other.until > told.index]
            for other in before:
                if how := _overlap(told, other, present):
                    key = (told.generation, other.told.who, told.who, how)
                    found.setdefault(key, (told, other.told, one.log))
            before.append(one)
        for (_, _, _, how), (told, first, log) in found.items():
            yield Sentences(about).double_owner(told, first, log, how)


def _overlap(told: Placement, first: Owned, present: set[tuple[str, int, str]]) -> str | None:
    """How both own the partition at once; None: it may have gone from one to the other."""
    other = first.told
    if other.who == told.who or other.process == told.process:
        return None
    if other.generation == told.generation:
        return "one generation"
    was_there = (told.group, told.generation, other.who) in present
    is_waited_for = told.protocol in ("eager", "cooperative") and other.protocol == told.protocol
    is_older = other.generation < told.generation
    return "overlap" if was_there and is_waited_for and is_older and first.until is not None else None


def _owned(placements: Sequence[Placement], about: AboutRun) -> list[Owned]:
    """In the order of their events."""
    found: list[Owned] = []
    holding: dict[int, dict[tuple[str, int], list[Owned]]] = defaultdict(dict)
    for told in placements:
        if told.f == ASSIGN:
            continue
        held = holding[told.process]
        for place in [one for one in held if one[1] not in told.partitions]:
            for one in held.pop(place):
                one.until = told.index
        for partition in dict.fromkeys(told.partitions) if told.generation >= 0 else ():
            if log := about.logs.get((told.topic, partition)):
                one = Owned(log, told)
                held.setdefault((told.topic, partition), []).append(one)
                found.append(one)
    return found
