"""A lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from wrackline.checkers.models.protocol import REFUSED, Model, Operation, Refused

FREE, HELD = "free", "held"


class Mutex(Model[str]):
    """A lock that one client holds at a time. A state is FREE or HELD: who holds it is not looked at."""

    jepsen: ClassVar[str] = "knossos.model/mutex"
    operations: ClassVar[Mapping[str, str]] = {
        "acquire": "acquire: the lock was free and is held now",
        "release": "release: the lock was held and is free now",
    }

    def initial(self) -> str:
        return FREE

    def step(self, state: str, operation: Operation) -> str | Refused:
        before, after = (FREE, HELD) if operation.f == "acquire" else (HELD, FREE)
        return after if state == before else REFUSED

    def describe_state(self, state: str) -> str:
        return str(state)
