"""The run's own history: rows as the harness writes them, in virtual time, so that the same checkers judge them."""

from __future__ import annotations

from dataclasses import replace

from harness.history.model import Event


class History:
    """``events`` in the order they happened; ``index`` and ``time_ns`` are given here."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keep = True

    def record(self, now_ms: float, event: Event) -> None:
        if self.keep:
            index = len(self.events)
            self.events.append(replace(event, index=index, time_ns=int(now_ms * 1_000_000)))
