"""Faults of Jepsen's nemesis: never proved, for Jepsen records what was asked for, not that it took
effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wrackline.history.jepsen.text import Operation
from wrackline.history.model import NEMESIS, Event, Type

_PHASES = ("begin", "active", "undo", "ended")
_UNDO = {"start": "kill", "resume": "pause", "heal": "partition"}
"""What ends a fault of Jepsen's nemeses, where it is not stop-X for start-X."""


@dataclass
class Faults:
    """Each act of the nemesis is recorded twice, as it is asked for and when it was done."""

    going_on: dict[str, list[str]] = field(default_factory=dict)
    """Kind -> ids of those that go on; with a question mark until they are done."""
    rows: int = 0

    def take(self, f: str, op: Operation) -> Iterator[Event]:
        """The rows of one operation. A history that was exported here says itself what each row is."""
        own = op.get("value")
        if isinstance(own, Mapping) and isinstance(own.get("id"), str) and own.get("phase") in _PHASES:
            self.rows += 1
            yield Event(NEMESIS, Type.INFO, f, extra={"targets": [], "proved": None, **own})
            return
        undone = f.removeprefix("stop-") if f.startswith("stop-") else _UNDO.get(f)
        if undone is not None:
            for fault in self.going_on.pop(undone, []):
                yield self._row(undone, fault, "undo", op)
                yield self._row(undone, fault, "ended", op)
            return
        kind = f.removeprefix("start-")
        going_on = self.going_on.setdefault(kind, [])
        if going_on and going_on[-1].endswith("?"):
            going_on[-1] = going_on[-1].rstrip("?")
            yield self._row(kind, going_on[-1], "active", op)
            return
        going_on.append(f"f{self.rows + 1}?")
        yield self._row(kind, going_on[-1], "begin", op)

    def _row(self, kind: str, fault: str, phase: str, op: Operation) -> Event:
        self.rows += 1
        extra: dict[str, Any] = {
            "id": fault.rstrip("?"),
            "phase": phase,
            "targets": [],
            "role": str(op.get("value"))[:200],
            "proved": None,
            "proof": "imported: Jepsen records what its nemesis did, not whether it took effect",
        }
        return Event(NEMESIS, Type.INFO, kind, extra=extra)
