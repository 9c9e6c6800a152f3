"""Queues: in order, and in any order. Values may repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, TypeAlias

from wrackline.checkers.models.observability import ObservedValues, Unobservable
from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    OneOf,
    Operation,
    Outcome,
    Refused,
    S,
    frozen,
)
from wrackline.values import Keyword

NOTHING = (None, Keyword("empty"))
"""What a dequeue answers that found the queue empty."""
Contents: TypeAlias = frozenset[tuple[Hashable, int]]
"""Values, and how often each is in the queue."""


class _Queue(Model[S]):
    puts = ("enqueue",)

    def observes(self, operation: Operation) -> bool:
        return found_nothing(operation)

    def unknowns(self, operations: Sequence[Operation]) -> Mapping[int, int | None]:
        """A value that never came out need not have gone in. One that came out and that one operation alone
        can have put in was in by then."""
        seen = ObservedValues()
        for place, one in enumerate(operations):
            if one.f == "enqueue":
                seen.put(place, one, frozen(one.argument))
            elif one.outcome is Outcome.OK and not found_nothing(one):
                seen.see(one, [frozen(one.result)])
        return seen.forgettable()


class FifoQueue(_Queue[tuple[Hashable, ...]]):
    """A queue whose values come out in the order in which they went in. A state is the values in it, the next
    one first."""

    jepsen: ClassVar[str] = "knossos.model/fifo-queue"
    operations: ClassVar[Mapping[str, str]] = {
        "enqueue": "enqueue v: v is in the queue, behind what was there",
        "dequeue": "dequeue -> v: v was the next one and is out; nil or :empty: nothing was in",
    }

    _taken: frozenset[Hashable] | None = None
    """Of a narrowed model: the values that are dequeued."""

    def initial(self) -> tuple[Hashable, ...]:
        return ()

    def narrowed(self, operations: Sequence[Operation]) -> FifoQueue:
        """Returns the model of a part: a value behind one that nobody dequeues does not come out, so it
        need not be remembered."""
        dequeues = [one for one in operations if one.f == "dequeue" and not found_nothing(one)]
        if any(one.outcome is not Outcome.OK for one in dequeues):
            return self  # nobody knows what it took
        same = copy(self)
        same._taken = frozenset(frozen(one.result) for one in dequeues)
        return same

    def step(self, state: tuple[Hashable, ...], operation: Operation) -> tuple[Hashable, ...] | Refused:
        if operation.f == "enqueue":
            value = frozen(operation.argument)
            if self._taken is None:
                return (*state, value)
            if state and state[-1] == Unobservable.UNOBSERVABLE:
                return state
            return (*state, value if value in self._taken else Unobservable.UNOBSERVABLE)
        if found_nothing(operation):
            return REFUSED if state else state
        if not state:
            return REFUSED
        if operation.outcome is Outcome.OK and state[0] != frozen(operation.result):
            return REFUSED
        return state[1:]


class UnorderedQueue(_Queue[Contents]):
    """A queue whose values come out in any order. A state is its contents."""

    jepsen: ClassVar[str] = "knossos.model/unordered-queue"
    operations: ClassVar[Mapping[str, str]] = {
        "enqueue": "enqueue v: v is in the queue",
        "dequeue": "dequeue -> v: v was in and is out; nil or :empty: nothing was in",
    }

    def initial(self) -> Contents:
        return frozenset()

    def step(self, state: Contents, operation: Operation) -> Contents | OneOf[Contents] | Refused:
        if found_nothing(operation):
            return REFUSED if state else state
        inside = Counter(dict(state))
        if operation.f == "enqueue":
            return _contents(inside + Counter([frozen(operation.argument)]))
        if operation.outcome is Outcome.OK:
            value = frozen(operation.result)
            return _contents(inside - Counter([value])) if inside[value] else REFUSED
        return OneOf(_contents(inside - Counter([value])) for value in inside)

    def describe_state(self, state: Contents) -> str:
        return "{" + ", ".join(sorted(f"{value!r}" + f" x{n}" * (n > 1) for value, n in state)) + "}"


def _contents(inside: Counter[Any]) -> Contents:
    return frozenset(inside.items())


def found_nothing(operation: Operation) -> bool:
    """Tells whether the operation is a dequeue that found the queue empty."""
    return operation.f == "dequeue" and operation.outcome is Outcome.OK and operation.result in NOTHING
