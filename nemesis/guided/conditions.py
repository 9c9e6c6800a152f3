"""Waits of guided schedules: each has a deadline, and says the last thing it saw when it gives up.

A ``pause`` sleeps for so many seconds, and says whether the run is being stopped instead; so do the waits.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from wrackline.nemesis.guided.steps import Await, AwaitBroker, AwaitCheckpoint, AwaitGrowth, GuidedError
from wrackline.systems.base import ClusterState

POLL_S = 0.05

Pause = Callable[[float], Awaitable[bool]]


async def until_it_holds(
    step: Await | AwaitBroker,
    describe: Callable[[], Awaitable[ClusterState | None]],
    pause: Pause,
    for_s: float,
) -> bool:
    """Raises GuidedError when the time is over."""
    deadline = time.monotonic() + for_s
    while True:
        state = await describe()
        if state is not None and step.holds(state):
            return False
        if await pause(POLL_S):
            return True
        if time.monotonic() > deadline:
            seen = step.seen(state) if state else "no answer"
            raise GuidedError(f"waited {for_s:g} s for: {step.what}; last seen: {seen}")


async def until_it_is_more(
    step: AwaitGrowth | AwaitCheckpoint, measure: Callable[[], Awaitable[int]], pause: Pause, for_s: float
) -> bool:
    """Raises GuidedError when the time is over."""
    deadline, before = time.monotonic() + for_s, -1
    while True:
        size = await measure()
        if 0 <= before < size:
            return False
        before = size if before < 0 else before
        if await pause(0):
            return True
        if time.monotonic() > deadline:
            raise GuidedError(f"waited {for_s:g} s for: {step.what}; it is {size} as before")
