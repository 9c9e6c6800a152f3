"""Registers: one value that is written, read, and compared and set; and several of them in transactions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    ModelError,
    Operation,
    Outcome,
    Refused,
    frozen,
)
from wrackline.checkers.models.seen import Seen

WRITE = "write v: the register holds v from now on"
READ = "read -> v: what the register holds; nil where nothing was written yet"


class Register(Model[tuple[Hashable]]):
    """Holds one value. A state is the value in a tuple."""

    operations: ClassVar[Mapping[str, str]] = {"write": WRITE, "read": READ}

    def __init__(self, initial: Any = None) -> None:
        self._initial = (frozen(initial),)

    def initial(self) -> tuple[Hashable]:
        return self._initial

    def step(self, state: tuple[Hashable], operation: Operation) -> tuple[Hashable] | Refused:
        match operation.f:
            case "write":
                return (frozen(operation.argument),)
            case "read":
                return state if (frozen(operation.result),) == state else REFUSED
        return REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.f == "read"

    def unknowns(self, operations: Sequence[Operation]) -> Mapping[int, int | None]:
        """A value that nobody could have seen need not have been put there. A value that only one operation
        can have put there, and that was seen, was there by then."""
        if any(one.outcome is Outcome.FAIL for one in operations):
            return {}  # a compare-and-set that failed saw that a value was not there
        seen = Seen(self._initial)
        for place, one in enumerate(operations):
            match one.f:
                case "write":
                    seen.put(place, one, frozen(one.argument))
                case "read":
                    seen.see(one, [frozen(one.result)])
                case "cas":
                    old, new = pair(one, one.argument)
                    seen.put(place, one, new)
                    seen.see(one, [old])
        return seen.told()

    def describe_state(self, state: tuple[Hashable]) -> str:
        return "nil" if state[0] is None else repr(state[0])


def pair(operation: Operation, value: Any) -> tuple[Hashable, Hashable]:
    """[old new] of a compare-and-set. Raises ModelError."""
    if not (isinstance(value, list | tuple) and len(value) == 2):
        raise ModelError(f":{operation.f} needs [old new], not {value!r:.40} (process {operation.process})")
    return frozen(value[0]), frozen(value[1])


class CasRegister(Register):
    """A register with compare-and-set. One that failed is left out: it may have failed for any reason."""

    operations: ClassVar[Mapping[str, str]] = {
        "write": WRITE,
        "read": READ,
        "cas": "cas [old new]: it held old, and holds new from now on",
    }

    def step(self, state: tuple[Hashable], operation: Operation) -> tuple[Hashable] | Refused:
        if operation.f != "cas":
            return super().step(state, operation)
        old, new = pair(operation, operation.argument)
        return (new,) if state == (old,) else REFUSED


class StrictCasRegister(CasRegister):
    """A register whose compare-and-set fails only where it held another value, so that a failed one tells
    that it did. (Porcupine reads etcd's histories in this way.)"""

    failed_tell = True

    def step(self, state: tuple[Hashable], operation: Operation) -> tuple[Hashable] | Refused:
        if operation.outcome is not Outcome.FAIL:
            return super().step(state, operation)
        if operation.f != "cas":
            return state
        return state if state != (pair(operation, operation.argument)[0],) else REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.outcome is Outcome.FAIL or super().observes(operation)
