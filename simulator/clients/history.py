"""The run's own history: rows as the harness writes them, in virtual time, so that the same checkers judge
them."""

from __future__ import annotations

from dataclasses import replace

from wrackline.history.model import Event


class History:
    """``events`` in the order they happened; ``index`` and ``time_ns`` are given here."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, now_ms: float, event: Event) -> None:
        if event.index < 0:
            event = replace(event, index=len(self.events), time_ns=int(now_ms * 1_000_000))
        self.events.append(event)
