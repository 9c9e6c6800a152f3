"""Work for the disk off the event loop: fdatasync of logs, whole files that must be durable, what a log
directory has to do behind the loop.

One flush per log at a time, and one per thread: requests that come meanwhile wait, without a descriptor of
their own, and share the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.storage.logs.log import FlushJob, PartitionLog

_THREADS = 4

OnFlushed = Callable[[PartitionLog, int], None]
OnFailed = Callable[[PartitionLog, OSError], None]
OnDone = Callable[[OSError | None], None]


class Flusher:
    def __init__(self, on_flushed: OnFlushed, on_failed: OnFailed) -> None:
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="flush")
        self._behind = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._running: set[TopicPartition] = set()
        self._wanted: dict[TopicPartition, PartitionLog] = {}
        self._at_rest: Callable[[], None] | None = None

    def flush(self, log: PartitionLog) -> None:
        """Answers by ``on_flushed`` or ``on_failed``, later."""
        if self._at_rest is not None:
            return
        if log.tp in self._running or len(self._running) >= _THREADS:
            self._wanted[log.tp] = log
            return
        try:
            job = log.prepare_flush()
        except OSError as failure:
            self._on_failed(log, failure)
            return
        self._running.add(log.tp)
        future = asyncio.get_running_loop().run_in_executor(self._pool, job.run)
        future.add_done_callback(lambda done: self._done(log, job, done))

    def _done(self, log: PartitionLog, job: FlushJob, done: asyncio.Future[None]) -> None:
        self._running.discard(log.tp)
        if done.cancelled():
            return
        failure = done.exception()
        if isinstance(failure, OSError):
            self._wanted.pop(log.tp, None)
            log.fail(str(failure))
            self._on_failed(log, failure)
        elif failure is not None:
            raise failure
        else:
            self._on_flushed(log, log.flushed(job))
        if self._at_rest is not None:
            self._look_whether_at_rest()
        elif (waiting := next((tp for tp in self._wanted if tp not in self._running), None)) is not None:
            self.flush(self._wanted.pop(waiting))

    def rest(self, then: Callable[[], None]) -> None:
        """Begins no flush any more, and calls ``then`` once none is under way."""
        self._wanted.clear()
        self._at_rest = then
        self._look_whether_at_rest()

    def _look_whether_at_rest(self) -> None:
        if self._at_rest is not None and not self._running:
            self._at_rest()

    def write(self, job: Callable[[], None], on_done: OnDone) -> None:
        """``on_done`` is called later, on the loop, with what the disk said."""
        self._submit(self._pool, job, on_done)

    def write_behind(self, job: Callable[[], None], on_done: OnDone) -> None:
        """``write``, one job after the other."""
        self._submit(self._behind, job, on_done)

    def _submit(self, pool: ThreadPoolExecutor, job: Callable[[], None], on_done: OnDone) -> None:
        def done(future: asyncio.Future[None]) -> None:
            if future.cancelled():
                return
            failure = future.exception()
            if failure is not None and not isinstance(failure, OSError):
                raise failure
            on_done(failure)

        asyncio.get_running_loop().run_in_executor(pool, job).add_done_callback(done)

    def close(self) -> None:
        self._wanted.clear()
        for pool in (self._pool, self._behind):
            pool.shutdown(wait=True, cancel_futures=True)
