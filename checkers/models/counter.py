"""A counter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from wrackline.checkers.models.protocol import REFUSED, Model, ModelError, Operation, Outcome, Refused


class Counter(Model[int]):
    """Holds a number that is added to. A state is the number."""

    operations: ClassVar[Mapping[str, str]] = {
        "add": "add n: the counter is n larger (n may be negative)",
        "read": "read -> n: the counter is n",
        "add-and-get": "add-and-get n -> [n m]: the counter is n larger, and then it is m",
    }

    def __init__(self, initial: int = 0) -> None:
        self._initial = initial

    def initial(self) -> int:
        return self._initial

    def step(self, state: int, operation: Operation) -> int | Refused:
        match operation.f:
            case "add":
                return state + _number(operation, operation.argument)
            case "read":
                return state if operation.result == state else REFUSED
            case "add-and-get":
                after = state + _number(operation, operation.argument)
                if operation.outcome is Outcome.OK and list(operation.result) != [operation.argument, after]:
                    return REFUSED
                return after
        return REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.f == "read"


def _number(operation: Operation, value: Any) -> int:
    if not isinstance(value, int):
        raise ModelError(f":{operation.f} needs a number, not {value!r:.40} (process {operation.process})")
    return value
