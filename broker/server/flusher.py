"""Whatever waits for the disk, off the event loop: fdatasync of logs, whole files that must be durable.

One flush per log at a time, and one per thread: requests that come meanwhile wait, without a descriptor of
their own, and share the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.storage.log import FlushJob, PartitionLog

_THREADS = 4

OnFlushed = Callable[[PartitionLog, int], None]
OnFailed = Callable[[PartitionLog, OSError], None]


class Flusher:
    def __init__(self, on_flushed: OnFlushed, on_failed: OnFailed) -> None:
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="flush")
        self._running: set[TopicPartition] = set()
        self._wanted: dict[TopicPartition, PartitionLog] = {}

    def flush(self, log: PartitionLog) -> None:
        """Answers by ``on_flushed`` or ``on_failed``, later."""
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
        if (waiting := next((tp for tp in self._wanted if tp not in self._running), None)) is not None:
            self.flush(self._wanted.pop(waiting))

    def write(self, job: Callable[[], None], on_done: Callable[[OSError | None], None]) -> None:
        """``on_done`` is called later, on the loop, with what the disk said."""

        def done(future: asyncio.Future[None]) -> None:
            if future.cancelled():
                return
            failure = future.exception()
            if failure is not None and not isinstance(failure, OSError):
                raise failure
            on_done(failure)

        asyncio.get_running_loop().run_in_executor(self._pool, job).add_done_callback(done)

    def close(self) -> None:
        self._wanted.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)
