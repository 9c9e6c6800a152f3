"""An operation's records on their way, until it is known of each what became of it."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence

from wrackline.history.model import UNKNOWN
from wrackline.workloads.clients.base import Outgoing, Settings
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
        """Records the outcome of one record; ignored once the operation is over."""
        with self._lock:
            if self._found[place] is None:
                self._found[place] = outcome
                self._left -= 1
            done = self._take() if not self._left else None
        self._tell(done)

    def expire(self) -> None:
        """Ends the operation: an outcome that is not known by now is unknown for ever."""
        with self._lock:
            done = self._take()
        self._tell(done)

    def _take(self) -> Callable[[list[Outcome]], None] | None:
        done, self._finished = self._finished, None
        return done

    def _tell(self, finished: Callable[[list[Outcome]], None] | None) -> None:
        if finished is not None:
            finished([outcome or Outcome(UNKNOWN, "_NO_REPORT") for outcome in self._found])


class ProducerOfOperations(ABC):
    """The part of a producer that no library changes: it keeps the operations that are under way, ends those
    whose time is over, and waits for one."""

    def __init__(self, settings: Settings) -> None:
        self._acks = settings.acks
        self._first_try = not settings.idempotence and settings.client.retries == 0
        self._deadline_s = settings.client.message_timeout_ms / 1e3 + REPORT_GRACE_S
        self._pending: deque[Pending] = deque()
        """Oldest first: all have the same time to live."""

    @abstractmethod
    def begin(
        self, topic: str, records: Sequence[Outgoing], finished: Callable[[list[Outcome]], None]
    ) -> None:
        """Begins an operation, as `wrackline.workloads.clients.base.Producer` has it."""

    @abstractmethod
    def serve(self, timeout_s: float) -> None:
        """Serves callbacks, as `wrackline.workloads.clients.base.Producer` has it."""

    def send(self, topic: str, records: Sequence[Outgoing]) -> list[Outcome]:
        result: list[list[Outcome]] = []
        self.begin(topic, records, result.append)
        while not result:
            self.serve(0.5)
        return result[0]

    def _under_way(self, count: int, finished: Callable[[list[Outcome]], None]) -> Pending:
        """A new operation of so many records."""
        pending = Pending(count, time.monotonic() + self._deadline_s, finished)
        self._pending.append(pending)
        return pending

    def _expire(self) -> None:
        """End the operations whose time is over."""
        now = time.monotonic()
        while self._pending and (self._pending[0].over or self._pending[0].deadline <= now):
            self._pending.popleft().expire()
