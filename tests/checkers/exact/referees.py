"""The golden histories (tests/checkers/goldens.py) as operations for our own search."""

from __future__ import annotations

from typing import Any

from tests.checkers.goldens import INITIAL, Golden, holes
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import Model, Operation, Outcome, load

OF_OBJECTS = (
    *("register", "cas-register", "multi-register", "mutex", "set", "unordered-queue", "fifo-queue"),
    "log",
)
"""What Knossos and we have both."""


def operations(golden: Golden) -> list[Operation]:
    return [_operation(process, *op) for process, op in enumerate(golden["ops"])]


def _operation(process: int, f: str, value: Any, inv: int, ret: int | None) -> Operation:
    argument = result = value
    match f:
        case "append":
            argument, result = value[0], value[::-1]
        case "read" if isinstance(value, dict):
            argument, result = None, value["records"]
        case "read" | "dequeue" | "end":
            argument = None
        case "txn":
            pass
        case _:
            result = None
    if ret is None:
        return Operation(process, f, argument, None, inv, None, Outcome.INFO)
    return Operation(process, f, argument, result, inv, ret)


def model(golden: Golden) -> Model[Any]:
    name = golden["model"]
    return load(name, initial=INITIAL) if name.endswith("register") else load(name)


def answer(golden: Golden) -> Answer:
    """What our search says."""
    if golden["model"] == "log" and holes(golden):
        return Answer.INVALID
    return search(operations(golden), model(golden)).answer
