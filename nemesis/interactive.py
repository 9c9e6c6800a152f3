"""Faults that somebody begins and ends while the run goes on, beside those of a plan."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.heal import NemesisError
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import PlannedFault

PATIENCE_S = 120.0
"""So long a fault may take to come into force, and to be undone."""


class NemesisByHand(Nemesis):
    """A nemesis that goes on until ``stop_and_heal``, which ends also what was begun by hand."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._ready = threading.Event()
        self._through = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until the plan is through, whatever was begun by hand."""
        return self._through.wait(timeout_s)

    @contextmanager
    def injected(self, fault: FaultSpec) -> Iterator[PlannedFault]:
        """The fault is in force inside. It is recorded with its proof as those of a plan are, by an id that
        begins with ``h``. Raises NemesisError when it cannot be done, or is not undone in time."""
        if self._stop_asked.is_set() or not self._ready.wait(PATIENCE_S) or self._loop is None:
            raise NemesisError(f"{fault.fault}: the main phase of the run is over")
        self._number += 1
        pick = random.Random(f"by hand {self._plan.seed} {self._number}").getrandbits(32)
        planned = PlannedFault(f"h{self._number}", 0.0, 0.0, fault, pick)
        begun: Future[str | None] = Future()
        over = asyncio.Event()
        ended = asyncio.run_coroutine_threadsafe(self._held(planned, begun, over), self._loop)
        try:
            if why := _in_time(begun, f"{fault.fault} was not in force"):
                raise NemesisError(f"{fault.fault} of {fault.target}: {why}")
            yield planned
        finally:
            with suppress(RuntimeError):  # the run was stopped, and has ended it
                self._loop.call_soon_threadsafe(over.set)
            _in_time(ended, f"{fault.fault} was not undone")

    # --- the thread ---------------------------------------------------------------------------------------

    def _work(self) -> list[Coroutine[Any, Any, None]]:
        return [self._until_stopped(super()._work())]

    async def _until_stopped(self, planned: list[Coroutine[Any, Any, None]]) -> None:
        assert self._stop is not None
        self._ready.set()
        try:
            await asyncio.gather(*planned)
        finally:
            self._through.set()
        await self._stop.wait()
        await asyncio.gather(*self._tasks)

    async def _held(self, planned: PlannedFault, begun: Future[str | None], over: asyncio.Event) -> None:
        """Holds a fault in force until ``over``, or until the run is being stopped."""
        task = asyncio.current_task()
        assert task is not None
        assert self._stop is not None
        self._tasks.add(task)
        try:
            async with self._in_force(planned) as failure:
                begun.set_result(failure)
                if not failure:
                    ends = [asyncio.ensure_future(each.wait()) for each in (over, self._stop)]
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                    for each in ends:
                        each.cancel()
        except BaseException as broke:
            if not begun.done():
                begun.set_exception(broke)
            raise
        finally:
            self._tasks.discard(task)


def _in_time(future: Future[Any], otherwise: str) -> Any:
    try:
        return future.result(PATIENCE_S)
    except TimeoutError as late:
        raise NemesisError(f"{otherwise} within {PATIENCE_S:g} s") from late
