"""Spark carries out the plan: it cuts, shuffles, sorts and spills; what rows say is decided in the tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from wrackline.checkers.engine.executor import LocalRows, Task
from wrackline.checkers.engine.spark.following import followed
from wrackline.history.store.addresses import matching, parquet

T = TypeVar("T")
MOST_FOLDERS = 64


class SparkRows:
    """A table in Spark."""

    def __init__(self, rows: DataFrame) -> None:
        self.rows = rows

    def mapped(self, task: Task, schema: pa.Schema) -> SparkRows:
        return SparkRows(self.rows.mapInArrow(task, from_arrow_schema(schema)))

    def having(self, column: str, values: Collection[int]) -> SparkRows:
        return SparkRows(self.rows.filter(F.col(column).isin(sorted(values))))

    def union(self, other: SparkRows) -> SparkRows:
        return SparkRows(self.rows.union(other.rows))

    def placed(self, parts: int, by: Sequence[str], order: Sequence[str]) -> SparkRows:
        return SparkRows(self.rows.repartition(parts, *by).sortWithinPartitions(*order))

    def kept(self) -> SparkRows:
        """Keeps the rows: on this machine in memory, or on disk where that is short. On a cluster they go
        to the storage (wrackline.checkers.analysis): rows that an executor keeps are gone with it, and the
        analysis with them."""
        on_storage = self.rows.sparkSession.sparkContext.getCheckpointDir() is not None
        keep = self.rows.checkpoint if on_storage else self.rows.localCheckpoint
        return SparkRows(keep(eager=True))

    def batches(self) -> Iterable[pa.RecordBatch]:
        result: Iterable[pa.RecordBatch] = self.rows.toArrow().to_batches()
        return result

    def by_run(self, runs: int, order: Sequence[str], scratch: str) -> Iterable[Iterable[pa.RecordBatch]]:
        if not scratch:  # files of Spark's for each run would take longer than the search
            table = self.rows.toArrow()
            return LocalRows(table.to_batches(), table.schema, sys.maxsize).by_run(runs, order)
        (
            self.rows.repartition(max(1, min(runs, MOST_FOLDERS)), "run")
            .sortWithinPartitions("run", *order)
            .write.mode("overwrite")
            .partitionBy("run")
            .parquet(f"{scratch}/findings")
        )
        return (_files_of(f"{scratch}/findings/run={run}") for run in range(runs))


class SparkExecutor:
    """Carries out a plan in a session of Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def name(self) -> str:
        return f"spark {self._spark.version}"

    @property
    def parallel(self) -> int:
        return self._spark.sparkContext.defaultParallelism

    def table(self, rows: pa.Table, parts: int) -> SparkRows:
        # Spark divides them by batches.
        each = [batch.slice(row, 1) for batch in rows.to_batches() for row in range(len(batch))]
        apart = pa.Table.from_batches(each, rows.schema)
        made = self._spark.createDataFrame(apart, from_arrow_schema(rows.schema))
        return SparkRows(made if parts <= self.parallel else made.repartition(parts))

    def given(self, value: T) -> Callable[[], T]:
        sent = self._spark.sparkContext.broadcast(value)
        return lambda: sent.value

    def followed(self, status: Callable[[str], None]) -> AbstractContextManager[Callable[[str], None]]:
        return followed(self._spark, status)


def _files_of(folder: str) -> Iterator[pa.RecordBatch]:
    for address in matching(f"{folder}/*.parquet"):
        with parquet(address) as file:
            yield from file.iter_batches(use_threads=False)
