"""The golden histories (tests/checkers/goldens.py) as operations for our own search."""

from __future__ import annotations

from typing import Any

from tests.checkers.goldens import INITIAL, Golden
from wrackline.checkers.exact.search import Answer, search
from wrackline.checkers.models import Model, Operation, Outcome, load

OF_OBJECTS = ("register", "cas-register", "mutex", "set", "unordered-queue", "fifo-queue")
"""What Knossos and we have both. (A log is decided by exact rules.)"""


def operations(golden: Golden) -> list[Operation]:
    found = []
    for process, (f, value, inv, ret) in enumerate(golden["ops"]):
        looks = f in ("read", "dequeue")
        outcome = Outcome.INFO if ret is None else Outcome.OK
        result = value if looks and ret is not None else None
        found.append(Operation(process, f, None if looks else value, result, inv, ret, outcome))
    return found


def model(golden: Golden) -> Model[Any]:
    name = golden["model"]
    return load(name, initial=INITIAL) if name in ("register", "cas-register") else load(name)


def answer(golden: Golden) -> Answer:
    """What our search says."""
    return search(operations(golden), model(golden)).answer
