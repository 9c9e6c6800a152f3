"""A Spark session that starts while this process is at something else."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from wrackline.checkers.engine.spark.failures import failures
from wrackline.checkers.engine.spark.masters import SparkUnavailable
from wrackline.checkers.engine.spark.session import (
    TAKEN_OVER,
    end_group,
    has_jvm,
    jvm_killed_by_interrupt,
    session,
    start,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CLOSE_S = 5.0
"""How long the thread may take to see that its JVM is gone."""


class SparkAhead:
    """A session on this machine for a minute's work. Close it, whatever became of what it was for."""

    def __init__(self, master: str = "local[*]") -> None:
        self._master = master
        self._thread = threading.Thread(target=self._start, name="spark", daemon=True)
        self._started: SparkSession | None = None
        self._is_taken_over = False

    def begin(self) -> None:
        """Returns at once. May be called more than once."""
        if self._thread.ident is None:
            self._thread.start()

    def _start(self) -> None:
        with contextlib.suppress(SparkUnavailable, OSError):
            spark = start(self._master, brief=True)
            with contextlib.suppress(*failures()):
                _first_job(spark)
            self._started = spark

    def close(self) -> None:
        """End the JVM of a session that nobody has taken over: it would write into folders that are gone."""
        if self._thread.ident is None or self._is_taken_over:
            return
        from pyspark import SparkContext  # late: it imports Spark

        gateway = SparkContext._gateway
        children = Path(f"/proc/self/task/{self._thread.native_id}/children")
        with contextlib.suppress(OSError):
            pids = [gateway.proc.pid] if gateway is not None else map(int, children.read_text().split())
            for pid in pids:
                end_group(pid)
        self._thread.join(CLOSE_S)

    @contextlib.contextmanager
    def session(self) -> Iterator[SparkSession]:
        """The session, once it is there; who asks for one inside gets this. It is stopped at the end. Raises
        as `wrackline.checkers.engine.spark.session.session` does."""
        self.begin()
        self._thread.join()
        self._is_taken_over = True
        if self._started is None:
            with session(self._master, brief=True) as spark:  # raises what went wrong
                yield spark
            return
        TAKEN_OVER.append(self._started)
        try:
            with jvm_killed_by_interrupt(self._master):
                yield self._started
        finally:
            TAKEN_OVER.remove(self._started)
            if has_jvm():
                self._started.stop()


def _first_job(spark: SparkSession) -> None:
    """Take two rows the way of an analysis: the first plan, shuffle and Python worker of a session cost as
    much as the analysis of three small runs."""
    from wrackline.checkers.engine.spark.executor import SparkExecutor  # late: it imports Spark

    rows = pa.table({"run": pa.array([0, 1], pa.int32()), "row": pa.array([b"", b""], pa.binary())})
    executor = SparkExecutor(spark)
    result = executor.table(rows, executor.parallel).mapped(_unchanged, rows.schema).kept()
    both = result.union(result).placed(executor.parallel, ["run"], ["run", "row"])
    list(both.mapped(_unchanged, rows.schema).having("run", [1]).by_run(2, ["run"], ""))


def _unchanged(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows, by a worker that has imported what the tasks of an analysis need."""
    import wrackline.checkers.engine.tasks  # noqa: F401

    yield from rows
