"""Virtual time: a queue of what happens next, one step at a time, and the observers of each step."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import mypyc_attr
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.nodes import StepKind, StepRecord

StepObserver = Callable[[Any, StepRecord], None]
"""A function that is called with the world and the step."""
_LIVELOCK_STEPS = 5_000
WITHIN_MS = 30_000.0
"""The default of ``until``. ``World`` itself names it: where a class is derived from in Python, mypyc forgets
defaults that are floats."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """The part of a World that lets time go on. ``now_ms`` are virtual milliseconds since the start."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.steps = 0
        self._instant = 0
        """The value of ``steps`` when ``now_ms`` last changed."""
        self.observers: list[StepObserver] = []
        """These are called after every step."""
        self.watchers: list[StepObserver] = []
        """These are called after every step but those in which a message lies down in an inbox."""
        self._queue: list[tuple[float, int, Callable[..., StepRecord | None], Any, Any]] = []
        self._numbers = 0
        """How many numbers were given out: entries of the queue with one time happen in their order."""
        self._number = 0
        """The number of the entry of the queue that is happening."""

    def _at(self, when: float, what: Callable[..., StepRecord | None], a: Any = None, b: Any = None) -> None:
        self._numbers += 1
        heappush(self._queue, (when, self._numbers, what, a, b))

    def at(self, when_ms: float, action: Callable[[], object]) -> None:
        """Do something to the world at a time. The action makes no step: what it does to the world may."""
        self._at(max(when_ms, self.now_ms), _call, action)

    def step(self, end_ms: float = math.inf) -> StepRecord | None:
        """Lets the next thing happen and tells the observers. Returns None when nothing will happen up to
        ``end_ms``."""
        queue = self._queue
        while queue and queue[0][0] <= end_ms:
            when, self._number, what, a, b = heappop(queue)
            if when > self.now_ms:
                self.now_ms = when
                self._instant = self.steps
            elif self.steps - self._instant > _LIVELOCK_STEPS:
                raise SimulationError(f"livelock: {_LIVELOCK_STEPS} steps in no time")
            record = what(a, b)
            if record is not None:
                if record.kind != "receive":
                    for watcher in self.watchers:
                        watcher(self, record)
                for observer in self.observers:
                    observer(self, record)
                return record
        return None

    def run(self, ms: float) -> None:
        self.run_to(self.now_ms + ms)

    def run_to(self, end_ms: float) -> None:
        queue = self._queue
        while queue and queue[0][0] <= end_ms:
            self.step(end_ms)
        self.now_ms = max(self.now_ms, end_ms)

    def until(self, condition: Callable[[], bool], within_ms: float = WITHIN_MS, what: str = "") -> None:
        """Take steps until the condition holds. Raises SimulationError when it does not within the time."""
        end_ms = self.now_ms + within_ms
        while not condition():
            if not self._queue or self._queue[0][0] > end_ms:
                raise SimulationError(f"not within {within_ms:.0f} ms: {what or condition}")
            self.step(end_ms)

    def _record(self, kind: StepKind, node: NodeId, **more: Any) -> StepRecord:
        self.steps += 1
        return StepRecord(self.steps, self.now_ms, kind, node, **more)

    def say(self, note: str, node: NodeId = 0) -> StepRecord:
        """Tell the observers what the one outside is doing."""
        return self._tell(self._record("fault", node, note=note))

    def _tell(self, record: StepRecord) -> StepRecord:
        """Show the observers a step that was not taken from the queue, such as a fault from outside."""
        for watcher in self.watchers:
            watcher(self, record)
        for observer in self.observers:
            observer(self, record)
        return record


def _call(action: Callable[[], object], _: None) -> None:
    action()
