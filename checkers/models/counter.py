"""A counter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

from wrackline.checkers.models.protocol import (
    REFUSED,
    Model,
    Operation,
    Outcome,
    Refused,
    unreadable,
)


class Counter(Model[float]):
    """Holds a number that is added to. A state is the number."""

    operations: ClassVar[Mapping[str, str]] = {
        "add": "add n: the counter is n larger (n may be negative)",
        "read": "read -> n: the counter is n",
        "add-and-get": "add-and-get n -> [n m]: the counter is n larger, and then it is m",
    }

    puts = ("add",)

    def __init__(self, initial: float = 0) -> None:
        self._initial = initial
        self._most: float | None = None

    def initial(self) -> float:
        return self._initial

    def narrowed(self, operations: Sequence[Operation]) -> Counter:
        """Returns the model of a part: where nothing is taken away, one state stands for all numbers above
        those that anybody saw."""
        same = copy(self)
        for one in operations:
            if one.outcome is Outcome.OK and one.f != "add":
                _seen(one)
        adds = [one for one in operations if one.f != "read"]
        if all(_number(one, one.argument) >= 0 for one in adds):
            done = [one for one in operations if one.outcome is Outcome.OK]
            same._most = max((_seen(one) for one in done if one.f != "add"), default=self._initial)
        return same

    def step(self, state: float, operation: Operation) -> float | Refused:
        match operation.f:
            case "add":
                return self._at_most(state + _number(operation, operation.argument))
            case "read":
                return state if operation.result == state else REFUSED
            case "add-and-get":
                after = state + _number(operation, operation.argument)
                if operation.outcome is Outcome.OK and list(operation.result) != [operation.argument, after]:
                    return REFUSED
                return self._at_most(after)
        return REFUSED

    def _at_most(self, total: float) -> float:
        return total if self._most is None else min(total, self._most + 1)

    def observes(self, operation: Operation) -> bool:
        return operation.f == "read"


def _seen(operation: Operation) -> float:
    """The number that the operation showed. Raises ModelError."""
    if operation.f == "read":
        return _number(operation, operation.result)
    pair = operation.result
    if not (isinstance(pair, list | tuple) and len(pair) == 2):
        raise unreadable(operation, "[n m] when it is ok", pair)
    return _number(operation, pair[1])


def _number(operation: Operation, value: Any) -> float:
    if not isinstance(value, int | float):
        raise unreadable(operation, "a number", value)
    return value
