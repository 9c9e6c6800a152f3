"""A set whose elements are added and never removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import ClassVar

from wrackline.checkers.jepsen.origins import Origins, did, last_read, returned
from wrackline.checkers.models.checker import (
    Checker,
    Found,
    OperationError,
    quantiles,
)
from wrackline.checkers.models.protocol import Operation, frozen, in_words

_OPERATIONS = {"add": "add v: v is in the set", "read": "read -> #{v ..}: all that is in the set"}


class FinalSet(Checker):
    """The last read shows each element whose add was acknowledged before it, and none that nobody added."""

    operations: ClassVar[Mapping[str, str]] = _OPERATIONS
    puts: ClassVar[Collection[str]] = ("add",)
    promise: ClassVar[str] = "complete"
    jepsen: ClassVar[str] = "jepsen.checker/set"
    cannot_see: ClassVar[str] = "what earlier reads missed: set-full looks at all of them"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        origins, reads = _read(operations)
        place = last_read(operations, reads)
        if place is None:
            found.undecided = "nobody read the set"
            return
        last = operations[place]
        elements = _elements(place, last)
        _unexpected(elements, place, last, origins, found)
        recovered = 0
        for value, put in origins.of.items():
            if value in elements:
                recovered += put.acknowledged is None and put.first is not None
            elif put.known_at is not None and put.known_at < last.inv and put.acknowledged is not None:
                add, added = put.acknowledged
                name = in_words(added.argument)
                sentence = f"{name}, which process {added.process} had added, is not in the last read"
                found.add("lost", sentence, add, place)
        _duplicates(place, last, found)
        found.figures = {
            "added": len(origins.of),
            "acknowledged": sum(put.certain > 0 for put in origins.of.values()),
            "in the last read": len(elements),
            "recovered": recovered,
        }


class SetFull(Checker):
    """Each element that was known to be there is found in the end, and how long that takes is measured."""

    operations: ClassVar[Mapping[str, str]] = _OPERATIONS
    puts: ClassVar[Collection[str]] = ("add",)
    promise: ClassVar[str] = "complete"
    jepsen: ClassVar[str] = "jepsen.checker/set-full"
    cannot_see: ClassVar[str] = "elements that no read was begun for after they were known to be there"

    def __init__(self, *, linearizable: bool = False) -> None:
        """``linearizable``: whether an element that a read misses and a later one shows is a problem."""
        self._linearizable = linearizable

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        origins, reads = _read(operations)
        contents: dict[int, frozenset[Hashable]] = {}
        first: dict[Hashable, int] = {}
        last: dict[Hashable, int] = {}
        # By their returns: the first and the last read that shows an element.
        for place in found.counted(sorted(reads, key=lambda at: returned(operations[at])), "read"):
            contents[place] = elements = _elements(place, operations[place])
            new = elements - first.keys()
            _unexpected(new, place, operations[place], origins, found)
            _duplicates(place, operations[place], found)
            first |= dict.fromkeys(new, place)
            last |= dict.fromkeys(elements, place)
        known = {}
        for value, put in origins.of.items():
            shown = returned(operations[first[value]]) if value in first else put.known_at
            if shown is not None:
                known[value] = shown if put.known_at is None else min(shown, put.known_at)
        absent = _last_absent(operations, contents, known, found)
        self._judge(operations, origins, known, last, absent, found)

    def _judge(
        self,
        operations: Sequence[Operation],
        origins: Origins,
        known: Mapping[Hashable, int],
        seen: Mapping[Hashable, int],
        absent: Mapping[Hashable, int],
        found: Found,
    ) -> None:
        """``known``: when each element was there, at the latest; ``seen`` and ``absent``: the places of the
        last reads that show it, and that miss it later."""
        stable = stale = 0
        clock = _Clock(operations)
        late: dict[str, list[float]] = {"stable": [], "lost": []}
        for value, since in known.items():
            missed, put = absent.get(value), origins.of[value]
            if missed is None or put.first is None:
                if value in seen:
                    stable += 1
                    late["stable"] += clock.between(since, since)
                continue
            read = operations[missed]
            place, added = put.acknowledged or put.first
            name = in_words(added.argument)
            shown = operations[seen[value]] if value in seen else None
            if shown is not None and returned(shown) >= read.inv:
                stable, stale = stable + 1, stale + 1
                late["stable"] += clock.between(since, read.inv)
                if self._linearizable:
                    sentence = (
                        f"{name} was there, process {read.process} missed it, and another read shows it"
                    )
                    found.add("stale", sentence, place, missed)
            else:
                last_shown = since if shown is None else max(since, shown.inv)
                late["lost"] += clock.between(since, last_shown)
                ever = "no read shows it" if shown is None else "no later read shows it"
                sentence = f"{name} was there, process {read.process} missed it, and {ever}"
                found.add("lost", sentence, place, missed)
        found.figures = {
            "added": len(origins.of),
            "stable": stable,
            "lost": found.counts["lost"],
            "never read": len(origins.of) - stable - found.counts["lost"],
            "stale": stale,
        }
        for outcome, waits in late.items():
            if waits:
                found.figures[f"{outcome} after (ms)"] = quantiles(waits)
        if not stable and not found.problems:
            found.undecided = "no element was read after it was known to be there"


class _Clock:
    """Times of events, where the history has them."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._at = {}
        for one in operations:
            for event, time in ((one.inv, one.inv_ns), (one.ret, one.ret_ns)):
                if event is not None and time is not None:
                    self._at[event] = time

    def between(self, begin: int, end: int) -> list[float]:
        """The milliseconds from one event to another; nothing where nobody knows."""
        if begin in self._at and end in self._at:
            return [max(0, self._at[end] - self._at[begin]) // 1_000_000]
        return []


def _last_absent(
    operations: Sequence[Operation],
    contents: Mapping[int, frozenset[Hashable]],
    known: Mapping[Hashable, int],
    found: Found,
) -> dict[Hashable, int]:
    """Returns for each element the last read that misses it, of those that began after it was known to be
    there."""
    last: dict[Hashable, int] = {}
    left = set(known)
    for place in found.counted(sorted(contents, key=lambda place: -operations[place].inv), "read"):
        missed = left - contents[place]
        for element in missed:
            if known[element] < operations[place].inv:
                last[element] = place
        # An element that no earlier read began for after it was known is not looked for any more.
        left -= missed
    return last


def _read(operations: Sequence[Operation]) -> tuple[Origins, list[int]]:
    """Returns the origins of the elements (who added what) and the places of the reads."""
    origins, reads = Origins(), []
    for place, one in enumerate(operations):
        if one.f == "add":
            origins.put(place, one, one.argument)
        elif did(one):
            reads.append(place)
    return origins, reads


def _elements(place: int, one: Operation) -> frozenset[Hashable]:
    if one.result is not None and not isinstance(one.result, list | tuple | set | frozenset):
        raise OperationError(place, f":read needs a set, not {in_words(one.result)}")
    return frozenset(frozen(element) for element in one.result or ())


def _unexpected(
    elements: frozenset[Hashable], place: int, one: Operation, origins: Origins, found: Found
) -> None:
    for element in sorted(elements, key=repr):
        why, others = origins.missing(element, returned(one))
        if why:
            found.add("unexpected", f"{in_words(element)} is in a read, and {why}", *others, place)


def _duplicates(place: int, one: Operation, found: Found) -> None:
    if isinstance(one.result, list | tuple) and len(one.result) != len(_elements(place, one)):
        times = Counter(map(frozen, one.result))
        twice = [element for element, number in times.items() if number > 1]
        for element in twice:
            found.add("duplicate", f"{in_words(element)} is in a read {times[element]} times", place)
