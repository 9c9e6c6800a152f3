"""Steps of one fault that several hosts do at the same moment."""

from __future__ import annotations

import contextlib
import threading

WAIT_S = 30.0


class Meetings:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._barriers: dict[str, threading.Barrier] = {}

    def meet(self, fault_id: str, among: int) -> None:
        """Returns when so many have come, to all of them at once; also when one of them has not come in time,
        for what a fault does to the others is still done."""
        if among < 2:
            return
        with self._mutex:
            barrier = self._barriers.setdefault(fault_id, threading.Barrier(among))
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait(WAIT_S)
