"""Queues: what comes out went in, and what went in comes out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from wrackline.checkers.jepsen.origins import Origins, did, returned
from wrackline.checkers.models.checker import MOST_OF_RULE, Checker, Found, OperationError
from wrackline.checkers.models.protocol import Operation, Outcome, frozen, in_words, several
from wrackline.checkers.models.queues import NOTHING

_OPERATIONS = {
    "enqueue": "enqueue v: v is in the queue",
    "dequeue": "dequeue -> v: v was in it and is not any more; nil or :empty where nothing was",
    "drain": "drain -> [v ..]: all that was in it, one after another, until it was empty",
}
_EMPTY = ("empty", "exhausted")
"""``:error`` of a dequeue that failed since nothing was in."""


class Queue(Checker):
    """Each value that comes out went in before, and no more often than it went in."""

    operations: ClassVar[Mapping[str, str]] = _OPERATIONS
    puts: ClassVar[Collection[str]] = ("enqueue",)
    promise: ClassVar[str] = "a queue"
    jepsen: ClassVar[str] = "jepsen.checker/queue"
    cannot_see: ClassVar[str] = "values that never come out (total-queue), and their order (fifo-queue)"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        history = _Passages(operations)
        _unexpected(operations, history, found)
        _too_many(operations, history, found)
        found.figures = {"enqueued": len(history.enqueues), "dequeued": len(history.taken)}


class TotalQueue(Checker):
    """Each value that was acknowledged comes out before the queue is empty, and none that nobody put in."""

    operations: ClassVar[Mapping[str, str]] = _OPERATIONS
    puts: ClassVar[Collection[str]] = ("enqueue",)
    promise: ClassVar[str] = "total"
    jepsen: ClassVar[str] = "jepsen.checker/total-queue"
    cannot_see: ClassVar[str] = "the order of values, and losses that dequeues of unknown outcome may explain"

    def __init__(self, *, exactly_once: bool = False) -> None:
        """``exactly_once``: whether it is a problem that a value comes out more often than it went in; else
        these are counted."""
        self._exactly_once = exactly_once

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        history = _Passages(operations)
        _unexpected(operations, history, found)
        duplicated = _too_many(operations, history, found if self._exactly_once else Found())
        outs = Counter(frozen(value) for _, value in history.taken)
        certain = sum(put.certain for put in history.origins.of.values())
        found.figures = {
            "attempted": len(history.enqueues),
            "acknowledged": certain,
            "dequeued": len(history.taken),
            "recovered": sum(
                max(0, min(outs[value], put.possible) - put.certain)
                for value, put in history.origins.of.items()
            ),
            "duplicated": duplicated,
        }
        _lost(operations, history, outs, found)


@dataclass(slots=True)
class _Missing:
    place: int
    """Of an enqueue whose value did not come out."""
    number: int
    """How many of this value."""


class _Passages:
    """The values that went in and the values that came out, each drain as the dequeues that it stands for."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        """Raises OperationError."""
        self.origins = Origins()
        self.enqueues: list[int] = []
        self.taken: list[tuple[int, Any]] = []
        """(place, value) of each that came out, in the order of the returns."""
        self.empty: list[int] = []
        """The places of answers that tell that the queue was empty."""
        self.unknown_dequeues = 0
        self.unknown_drains = 0
        for place, one in enumerate(operations):
            if one.f == "enqueue":
                self.enqueues.append(place)
                self.origins.put(place, one, one.argument)
            elif did(one):
                self._took(place, one)
            elif one.outcome is Outcome.FAIL:
                if one.more.get("error") in _EMPTY:
                    self.empty.append(place)
            elif one.f == "drain":
                self.unknown_drains += 1
            else:
                self.unknown_dequeues += 1
        self.taken.sort(key=lambda one: returned(operations[one[0]]))

    def _took(self, place: int, one: Operation) -> None:
        if one.f == "drain":
            if not isinstance(one.result, list | tuple | None):
                raise OperationError(place, f":drain needs a list of values, not {in_words(one.result)}")
            self.taken += [(place, value) for value in one.result or ()]
            self.empty.append(place)
        elif one.result in NOTHING:
            self.empty.append(place)
        else:
            self.taken.append((place, one.result))


def _unexpected(operations: Sequence[Operation], history: _Passages, found: Found) -> None:
    told: set[Hashable] = set()
    for place, value in history.taken:
        why, others = history.origins.missing(value, returned(operations[place]))
        if why and frozen(value) not in told:
            told.add(frozen(value))
            sentence = f"process {operations[place].process} got {in_words(value)}, and {why}"
            found.add("unexpected", sentence, *others, place)


def _too_many(operations: Sequence[Operation], history: _Passages, found: Found) -> int:
    """Returns the number of duplicates: values that came out more often than they can have gone in by
    then, without those that nobody put in."""
    begins: dict[Hashable, list[int]] = defaultdict(list)
    for place in history.enqueues:
        one = operations[place]
        if one.outcome is not Outcome.FAIL:
            begins[frozen(one.argument)].append(one.inv)
    outs: dict[Hashable, list[int]] = defaultdict(list)
    names: dict[Hashable, Any] = {}
    for place, value in history.taken:
        outs[frozen(value)].append(place)
        names[frozen(value)] = value
    duplicated = 0
    for value, places in outs.items():
        inside = sorted(begins.get(value, ()))
        more = max(0, len(places) - len(inside))
        # The n-th to come out needs n that were put in before it returned.
        early = [
            at
            for at, place in enumerate(places)
            if at < len(inside) and inside[at] > returned(operations[place])
        ]
        if inside and inside[0] <= returned(operations[places[0]]) and (more or early):
            duplicated += max(more, 1)
            often = (early[0] if early else len(inside)) + 1
            went_in = "once" if often == 2 else f"{often - 1} times"
            sentence = (
                f"{in_words(names[value])} came out {often} times, and went in {went_in} at most by then"
            )
            found.add("duplicate", sentence, *places[:often])
    return duplicated


def _lost(
    operations: Sequence[Operation], history: _Passages, outs: Mapping[Hashable, int], found: Found
) -> None:
    """Adds what did not come out although somebody found the queue empty later, where no dequeue of unknown
    outcome can have taken it."""
    emptied = max((operations[place].inv for place in history.empty), default=None)
    acknowledged: dict[Hashable, list[int]] = defaultdict(list)
    for place in history.enqueues:
        if did(operations[place]):
            acknowledged[frozen(operations[place].argument)].append(place)
    missing, waiting = [], 0
    for value, places in acknowledged.items():
        drained = [place for place in places if emptied is not None and returned(operations[place]) < emptied]
        gone = max(0, len(drained) - outs.get(value, 0))
        if gone:
            missing.append(_Missing(drained[0], gone))
        waiting += max(0, len(places) - outs.get(value, 0)) - gone
    number = sum(one.number for one in missing)
    explained = number if history.unknown_drains else min(number, history.unknown_dequeues)
    found.figures["lost"] = number - explained
    if explained:
        found.figures["perhaps taken by a dequeue of unknown outcome"] = explained
    if number > explained and explained:
        named = several(operations[one.place].argument for one in missing)
        sentence = (
            f"{number} never came out, and dequeues of unknown outcome took {explained} at most: {named}"
        )
        found.add("lost", sentence, *(one.place for one in missing[:MOST_OF_RULE]))
    elif number:
        for one in missing if not explained else ():
            put = operations[one.place]
            sentence = f"{in_words(put.argument)}, which process {put.process} had put in, never came out"
            found.add("lost", sentence, one.place)
    if waiting:
        found.figures["not taken"] = waiting
        if not found.problems:
            found.undecided = (
                f"of the acknowledged values {waiting:,} never came out, and no drain or empty answer after "
                "them says that the queue was empty"
            )
