"""When a workload is warm enough for faults."""

from __future__ import annotations

import time
from collections.abc import Callable

REACHED = 0.95
"""The asked rate is reached when this share of it is done, as the judge has it later
(wrackline.checkers.verdict.conditions.conditions, which imports much)."""


def become_steady(
    rate: float,
    stretch_s: float,
    deadline: float,
    *,
    done: Callable[[], int],
    wait: Callable[[float], bool],
    give_up: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Lets one stretch go by, and then others until the asked rate (operations per second; 0: none is asked)
    was reached over a whole one, or the deadline (by the clock) leaves no room for another. A JVM is slow at
    first, and faults that hit a load which was never reached prove little. ``done``: how many operations
    had the outcome they were meant to have until now."""
    over = not stretch_s
    while not over:
        before, began = done(), clock()
        wait(stretch_s)
        now = clock()
        over = done() - before >= rate * REACHED * (now - began) or now + stretch_s > deadline
        over = over or give_up()
