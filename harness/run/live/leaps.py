"""The harness's time of day, watched while a run goes on: where it leaps, that is a row of the history.

Clients stamp their records with it, and logs are put into order by it. The run's own clock is monotonic, and
tells the leap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from wrackline.checkers.inputs.course import CLOCK_LEAP
from wrackline.history import Recorder, RecordingFailed
from wrackline.history.model import CONTROL, Event, Type

LOOK_EVERY_S: Final = 0.25
LEAP_NS: Final = 500_000_000
"""A clock that is slewed gains half a millisecond a second; what gains so much between two looks was set."""


class Leaps:
    """A thread that compares the two clocks."""

    def __init__(self, recorder: Recorder, time_of_day_ns: Callable[[], int] | None = None) -> None:
        self._recorder = recorder
        self._time_of_day_ns = time_of_day_ns
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leaps", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Idempotent, and right for one that was never started."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        before = self._apart_ns()
        while not self._ended.wait(LOOK_EVERY_S):
            now = self._apart_ns()
            if abs(now - before) >= LEAP_NS:
                extra = {"at_ns": self._recorder.now_ns(), "ahead_ns": now - before}
                with suppress(RecordingFailed):
                    self._recorder.record(Event(CONTROL, Type.INFO, CLOCK_LEAP, extra=extra))
            before = now

    def _apart_ns(self) -> int:
        """Returns how far the time of day is ahead of the run's clock. Of a few looks the one that took the
        shortest: this thread may have to wait between the two."""
        wall = self._time_of_day_ns or time.time_ns
        looks = []
        for _ in range(3):
            begin = time.monotonic_ns()
            seen = wall()
            took = time.monotonic_ns() - begin
            looks.append((took, seen - begin))
        return min(looks)[1]
