"""What a case is, and a history without anything in it that most begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.checkers.histories import History

A, B, C, D, E = 160, 176, 192, 208, 224
"""Values."""


@dataclass(frozen=True)
class Case:
    name: str
    history: History
    expected: dict[str, int]
    """Anomaly -> how many findings. Nothing else may be found."""


Build = Callable[[History], History]
CASES: list[tuple[str, dict[str, int], Build, dict[str, object]]] = []
"""(name, what is expected, what builds the history, what is changed in the run)."""


def case(name: str, **expected: int) -> Callable[[Build], Build]:
    """Expected counts by anomaly, with ``_`` for ``-``; ``idempotence=False`` changes the run."""

    def add(build: Build) -> Build:
        changes: dict[str, object] = {}
        if "idempotence" in expected:
            changes["idempotence"] = bool(expected.pop("idempotence"))
        found = {anomaly.replace("_", "-"): count for anomaly, count in expected.items()}
        CASES.append((name, found, build, changes))
        return build

    return add


def two(h: History) -> History:
    """A at 0 and B at 1, acked one after the other."""
    return h.send(1, (A, 0)).send(1, (B, 1))


@case("good: nothing special")
def _(h: History) -> History:
    return (
        two(h)
        .assign(2, 0)
        .poll(2, (0, A), (1, B))
        .end(3, 2)
        .drain((0, A, 0), (1, B, 0))
        .replicas((0, A, 0), (1, B, 0))
    )
