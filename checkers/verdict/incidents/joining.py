"""Joins the parts of findings that may have one cause into incidents.

Parts are joined whose cause can be one (``Part.after``, ``Part.until``) and which

- overlap, and after that, which border on each other, in one partition;
- cite the same operation, or have a value in common;
- came with the same change of leader: all that a partition lost with it, whatever lies between, and the reads
  that were wrong by it;
- were found in what one consumer was given: it left records out, or got them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.runs import Place
from wrackline.checkers.verdict.anomaly import Family, Promise
from wrackline.checkers.verdict.incidents.parts import Part

NOT_LINEARIZABLE: Final = "not-linearizable"
LOST_COMMITTED: Final = "lost-committed"
INCONSISTENT_OFFSET: Final = "inconsistent-offset"
SOON_NS: Final = 5_000_000_000
"""Reads that contradict their partition while one node leads are of one cause if no more time lies between
them."""


@dataclass(eq=False, slots=True)
class Joined:
    """Parts of one incident."""

    parts: list[Part]
    place: Place | None = None
    """Where it was cut, or else the first partition where anything was wrong; the changes of leader that
    follow are those of this partition."""
    after: int = 0
    until: int = 0
    pinned: int | None = None
    """The change of leader, counted from 1, that it came with."""
    links: set[int] = field(default_factory=set)
    values: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, part: Part) -> Joined:
        return cls([part], part.place, part.after, part.until, None, set(part.links), set(part.values))

    @property
    def first(self) -> int | None:
        """The smallest offset of ``place``."""
        return min((part.first for part in self._here() if part.first is not None), default=None)

    @property
    def last(self) -> int | None:
        return max((part.last for part in self._here() if part.last is not None), default=None)

    def _here(self) -> Iterator[Part]:
        return (part for part in self.parts if part.place == self.place)

    @property
    def may_be_deposed(self) -> bool:
        """Tells whether no part of the incident was before the change of leader, after which the replaced
        leader may have gone on."""
        return all(part.may_be_deposed for part in self.parts)

    @property
    def is_of_a_cut(self) -> bool:
        """Tells whether the incident shows that a log was cut: records are gone, or others have their
        offsets."""
        return any(part.anomaly.is_loss or part.anomaly.name == INCONSISTENT_OFFSET for part in self.parts)

    def lost(self, meaning: Meaning | None = None) -> list[Part]:
        """Returns the parts that show that records are gone, and have this meaning: those of ``place``
        where there are any. What a group had committed is no record."""
        result = [part for part in self.parts if part.anomaly.is_loss and part.anomaly.name != LOST_COMMITTED]
        result = [part for part in result if meaning in (None, part.meaning)]
        return [part for part in result if part.place == self.place] or result

    def fits(self, other: Joined) -> bool:
        """Tells whether both incidents can have one cause."""
        after, until = max(self.after, other.after), min(self.until, other.until)
        if self.place != other.place or after < until:
            return True
        return (self.after, self.until) == (other.after, other.until)

    def overlaps(self, other: Joined) -> bool:
        if self.place is None or self.place != other.place:
            return False
        bounds = (self.first, self.last, other.first, other.last)
        if None in bounds:
            return False
        first, last, begin, end = (one or 0 for one in bounds)
        return first <= end and begin <= last

    def take(self, other: Joined) -> None:
        """Merges another incident into this one: where the causes differ, that of a cut counts, since a
        read may have been wrong before it; else the earlier one, since what was wrong then was wrong again
        later."""
        if self.place != other.place:
            is_cut_there = other.is_of_a_cut and not self.is_of_a_cut
            if other.place is not None and (self.place is None or is_cut_there):
                self.place, self.after, self.until = other.place, other.after, other.until
        elif self.fits(other):
            self.after, self.until = max(self.after, other.after), min(self.until, other.until)
        elif self.is_of_a_cut == other.is_of_a_cut:
            self.after, self.until = min((self.until, self.after), (other.until, other.after))[::-1]
        elif other.is_of_a_cut:
            self.after, self.until = other.after, other.until
        self.parts += other.parts
        self.pinned = self.pinned if self.pinned is not None else other.pinned
        self.links |= other.links
        self.values |= other.values


def joined(parts: Sequence[Part], pin: Callable[[list[Joined]], None]) -> list[Joined]:
    """The incidents, in the order of their first findings. ``pin`` finds out, for those of which it can be
    known, which change of leader they came with."""
    result = [Joined.of(part) for part in parts]
    result = _in_places(result, 0)
    result = _in_places(result, 1)
    result = _by_key(result, _operations)
    result = _by_key(result, _values)
    pin(result)
    result = _with_one_change(result)
    result = _by_key(result, _consumers)
    result = _reads_in_one_epoch(result)
    for one in result:
        one.parts.sort(key=lambda part: part.found_at)
    return sorted(result, key=lambda one: one.parts[0].found_at)


def _in_places(found: list[Joined], hole: int) -> list[Joined]:
    """Joins what overlaps (a hole of 0) or borders on each other (1)."""
    kept: list[Joined] = []
    by_place: dict[object, list[Joined]] = defaultdict(list)
    for one in found:
        if one.place is None or one.first is None:
            kept.append(one)
        else:
            by_place[one.place, _offsets_of(one)].append(one)
    for ones in by_place.values():
        open_now: list[tuple[int, Joined]] = []
        for one in sorted(ones, key=lambda one: (one.first or 0, one.last or 0)):
            first, last = one.first or 0, one.last or 0
            open_now = [(end, other) for end, other in open_now if end + hole >= first]
            for at, (end, other) in enumerate(open_now):
                if other.fits(one):
                    other.take(one)
                    open_now[at] = max(end, last), other
                    break
            else:
                open_now.append((last, one))
                kept.append(one)
    return kept


def _offsets_of(one: Joined) -> str:
    """Returns the family of incidents of groups and of cycles, which are joined among themselves; empty
    for all others. A group's offsets are those that it committed or owns: they say nothing of the records
    there. Each cycle is an incident of its own, unless another has the same operations."""
    family = one.parts[0].anomaly.family
    return family if family in (Family.GROUPS, Family.CYCLES) else ""


def _operations(one: Joined) -> Iterator[object]:
    yield from one.links


def _values(one: Joined) -> Iterator[object]:
    yield from one.values


def _consumers(one: Joined) -> Iterator[object]:
    """Yields the consumers whose polls show the incident, where nothing else explains it."""
    if one.pinned is None and all(part.anomaly.breaks is Promise.CONSUMERS_GET_ALL for part in one.parts):
        yield from ((one.place, process) for part in one.parts for process in part.consumers)


def _by_key(found: list[Joined], keys: Callable[[Joined], Iterator[object]]) -> list[Joined]:
    """Joins those that have a key in common and may have one cause, or the same offsets. A log without a
    valid order is what the others have made of it, whenever it was seen."""
    kept: list[Joined] = []
    by_key: dict[object, Joined] = {}
    gone: dict[int, Joined] = {}

    def now(one: Joined) -> Joined:
        while id(one) in gone:
            one = gone[id(one)]
        return one

    for one in found:
        into: Joined | None = None
        for key in sorted(keys(one), key=str):
            other = by_key.get(key)
            if other is None:
                continue
            other = now(other)
            if other is one or other is into:
                continue
            if not (other.fits(one) or other.overlaps(one) or _no_order(one) or _no_order(other)):
                continue
            if into is None:
                into = other
                into.take(one)
            else:
                into.take(other)
                gone[id(other)] = into
                kept.remove(other)
        if into is None:
            into = one
            kept.append(one)
        for key in keys(one):
            by_key[key] = into
    return kept


def _no_order(one: Joined) -> bool:
    return all(part.anomaly.name == NOT_LINEARIZABLE for part in one.parts)


def _with_one_change(found: list[Joined]) -> list[Joined]:
    """Joins lost records, wrong offsets and wrong reads of a partition that came with one change of
    leader."""
    kept: list[Joined] = []
    by_change: dict[object, Joined] = {}
    cut = {(one.place, one.pinned) for one in found if one.pinned is not None and one.is_of_a_cut}
    for one in found:
        follows = all(map(_is_a_read, one.parts)) or one.may_be_deposed
        if follows and one.until - one.after == 1 and (one.place, one.until) in cut:
            one.pinned = one.until
        if one.pinned is None or one.place is None:
            kept.append(one)
            continue
        other = by_change.setdefault((one.place, one.pinned), one)
        if other is one:
            kept.append(one)
        else:
            other.take(one)
    return kept


def _reads_in_one_epoch(found: list[Joined]) -> list[Joined]:
    """Reads that contradict their partition, soon after each other, while one node led it or after one and
    the same change."""
    reads = [
        one
        for one in found
        if one.place is not None and all(_is_a_read(part) and part.first_ns is not None for part in one.parts)
    ]
    chosen = {id(one) for one in reads}
    kept = [one for one in found if id(one) not in chosen]
    by_place: dict[object, list[Joined]] = defaultdict(list)
    for one in reads:
        by_place[one.place, one.after, one.until].append(one)
    for ones in by_place.values():
        last: tuple[int, Joined] | None = None
        for one in sorted(ones, key=_began):
            ended = max(part.last_ns or 0 for part in one.parts)
            if last is not None and _began(one) <= last[0] + SOON_NS:
                last[1].take(one)
                last = max(last[0], ended), last[1]
            else:
                kept.append(one)
                last = ended, one
    return kept


def _is_a_read(part: Part) -> bool:
    return part.anomaly.breaks is Promise.LINEARIZABLE_READS


def _began(one: Joined) -> int:
    """When the first of the wrong answers was given."""
    return min(part.last_ns or 0 for part in one.parts)
