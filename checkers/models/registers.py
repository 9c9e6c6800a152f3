"""Registers: one value that is written, read, and compared and set; and several of them in transactions."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, TypeAlias

from wrackline.checkers.models.observability import ObservedValues
from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    Operation,
    Outcome,
    Refused,
    frozen,
    unreadable,
)

WRITE = "write v: the register holds v from now on"
READ = "read -> v: what the register holds; nil where nothing was written yet"


Value: TypeAlias = tuple[Hashable, ...]
"""What a register holds: one value in a tuple, or UNSEEN."""
UNOBSERVABLE: Value = ()
"""The state of a register that holds some value that no operation needs or shows."""


class Register(Model[Value]):
    """Holds one value."""

    jepsen: ClassVar[str] = "knossos.model/register"
    operations: ClassVar[Mapping[str, str]] = {"write": WRITE, "read": READ}
    puts = ("write", "cas")

    def __init__(self, initial: Any = None) -> None:
        self._initial: Value = (frozen(initial),)
        self._seen: Container[Hashable] | None = None

    def initial(self) -> Value:
        return self._initial

    def step(self, state: Value, operation: Operation) -> Value | Refused:
        match operation.f:
            case "write":
                return self.holding(frozen(operation.argument))
            case "read":
                return state if (frozen(operation.result),) == state else REFUSED
        return REFUSED

    def holding(self, value: Hashable) -> Value:
        """The state with this value."""
        return (value,) if self._seen is None or value in self._seen else UNOBSERVABLE

    def narrowed(self, operations: Sequence[Operation]) -> Register:
        same = copy(self)
        same._seen = {value for one in operations for value in _needed(one)}
        return same

    def observes(self, operation: Operation) -> bool:
        return operation.f == "read"

    def unknowns(self, operations: Sequence[Operation]) -> Mapping[int, int | None]:
        """A value that nobody could have seen need not have been put there. A value that only one operation
        can have put there, and that was seen, was there by then."""
        if any(one.outcome is Outcome.FAIL for one in operations):
            return {}  # a compare-and-set that failed saw that a value was not there
        seen = ObservedValues(self._initial)
        for place, one in enumerate(operations):
            if one.f == "write":
                seen.put(place, one, frozen(one.argument))
            elif one.f == "cas":
                seen.put(place, one, pair(one, one.argument)[1])
            seen.see(one, _needed(one))
        return seen.forgettable()

    def describe_state(self, state: Value) -> str:
        return held(state)


def held(state: Value) -> str:
    """The state of a register in words."""
    if state == UNOBSERVABLE:
        return "a value that nobody saw"
    return "nil" if state[0] is None else repr(state[0])


def _needed(one: Operation) -> list[Hashable]:
    """The values that an operation shows, or asks for."""
    if one.f == "read":
        return [frozen(one.result)]
    return [pair(one, one.argument)[0]] if one.f == "cas" else []


def pair(operation: Operation, value: Any) -> tuple[Hashable, Hashable]:
    """[old new] of a compare-and-set. Raises ModelError."""
    if not (isinstance(value, list | tuple) and len(value) == 2):
        raise unreadable(operation, "[old new]", value)
    return frozen(value[0]), frozen(value[1])


class CasRegister(Register):
    """A register with compare-and-set. One that failed is left out: it may have failed for any reason."""

    jepsen: ClassVar[str] = "knossos.model/cas-register"
    operations: ClassVar[Mapping[str, str]] = {
        "write": WRITE,
        "read": READ,
        "cas": "cas [old new]: it held old, and holds new from now on",
    }

    def step(self, state: Value, operation: Operation) -> Value | Refused:
        if operation.f != "cas":
            return super().step(state, operation)
        old, new = pair(operation, operation.argument)
        return self.holding(new) if state == (old,) else REFUSED


class StrictCasRegister(CasRegister):
    """A register whose compare-and-set fails only where it held another value, so that a failed one tells
    that it did. (Porcupine reads etcd's histories in this way.)"""

    jepsen: ClassVar[str] = ""
    failed_tell = True

    def step(self, state: Value, operation: Operation) -> Value | Refused:
        if operation.outcome is not Outcome.FAIL:
            return super().step(state, operation)
        if operation.f != "cas":
            return state
        return state if state != (pair(operation, operation.argument)[0],) else REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.outcome is Outcome.FAIL or super().observes(operation)
