"""An operation's records on their way, until it is known of each what became of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from wrackline.history.model import UNKNOWN
from wrackline.workloads.clients.outcomes import Outcome

REPORT_GRACE_S = 2.0
"""How long after the message timeout a delivery report may still come."""


class Pending:
    """One operation's records on their way. Thread-safe."""

    def __init__(self, count: int, deadline: float, finished: Callable[[list[Outcome]], None]) -> None:
        self.deadline = deadline
        self._found: list[Outcome | None] = [None] * count
        self._left = count
        self._finished: Callable[[list[Outcome]], None] | None = finished
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        return self._finished is None

    def settle(self, place: int, outcome: Outcome) -> None:
        """What became of one record; ignored once the operation is over."""
        with self._lock:
            if self._found[place] is None:
                self._found[place] = outcome
                self._left -= 1
            done = self._take() if not self._left else None
        self._tell(done)

    def expire(self) -> None:
        """What is not known by now is unknown for ever."""
        with self._lock:
            done = self._take()
        self._tell(done)

    def _take(self) -> Callable[[list[Outcome]], None] | None:
        done, self._finished = self._finished, None
        return done

    def _tell(self, finished: Callable[[list[Outcome]], None] | None) -> None:
        if finished is not None:
            finished([outcome or Outcome(UNKNOWN, "_NO_REPORT") for outcome in self._found])
