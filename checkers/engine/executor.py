"""Executors carry out the plan: they map tasks over rows, in this process or by Spark.

The plan (wrackline.checkers.plan) and the tasks (wrackline.checkers.engine.tasks) are the same for both. A
task is a function from Arrow batches to Arrow batches; between tasks rows are brought together by place and
sorted. ``LocalExecutor`` does that with Arrow tables in this process, for what needs neither several
processors nor more memory than there is. Spark does it for everything else
(wrackline.checkers.engine.spark.executor).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

T = TypeVar("T")
Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]
LOCAL_FACTS = 5_000_000
"""Up to so many records and events, those of 1M operations, a run is judged in this process: Spark's start
and its shuffles would cost as much again as the whole verdict."""
LOCAL_BYTES = 1 << 30
"""... as long as the rows of one step need no more than this."""


class TooLarge(Exception):
    """The rows of a step need more memory than this process may take."""


class Rows(Protocol):
    """Rows of one schema."""

    def mapped(self, task: Task, schema: pa.Schema) -> Self:
        """Gives what a task makes of the rows; ``schema``: of that."""

    def having(self, column: str, values: Collection[int]) -> Self:
        """Gives the rows in which a column has one of these values."""

    def union(self, other: Self) -> Self: ...

    def placed(self, parts: int, by: Sequence[str], order: Sequence[str]) -> Self:
        """Brings rows that agree in ``by`` together, in at most so many parts; each part sorted by ``order``,
        ascending, nulls first."""

    def kept(self) -> Self:
        """Computes the rows now, once."""

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Yields all rows, in this process."""

    def by_run(self, runs: int, order: Sequence[str], scratch: str) -> Iterable[Iterable[pa.RecordBatch]]:
        """Yields the rows of each run, which their column ``run`` says, sorted by ``order``. ``scratch``: a
        folder for them; empty: they are so few that they are sorted in this process."""


class Executor(Protocol):
    """Carries out the plan of an analysis."""

    @property
    def name(self) -> str:
        """The executor's name in verdicts and reports."""

    @property
    def parallel(self) -> int:
        """Says how many tasks run at once."""

    def table(self, rows: pa.Table, parts: int) -> Rows:
        """Takes rows that this process has, in so many parts."""

    def given(self, value: T) -> Callable[[], T]:
        """Gives the value wherever a task runs."""

    def followed(self, status: Callable[[str], None]) -> AbstractContextManager[Callable[[str], None]]:
        """Opens a context in which ``status`` hears how far a long step is; the callable that is yielded
        names the step."""


class LocalRows:
    """Rows in this process."""

    def __init__(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema, limit: int) -> None:
        self._batches, self._schema, self._limit = batches, schema, limit
        if sum(batch.nbytes for batch in batches) > limit:
            raise TooLarge

    def mapped(self, task: Task, schema: pa.Schema) -> LocalRows:
        result, size = [], 0
        for batch in task(iter(self._batches)):
            size += batch.nbytes
            if size > self._limit:
                raise TooLarge
            result.append(batch)
        return LocalRows(result, schema, self._limit)

    def having(self, column: str, values: Collection[int]) -> LocalRows:
        expected = pa.array(sorted(values), self._schema.field(column).type)
        return self._of([batch.filter(pc.is_in(batch.column(column), expected)) for batch in self._batches])

    def union(self, other: LocalRows) -> LocalRows:
        return self._of([*self._batches, *other._batches])

    def placed(self, parts: int, by: Sequence[str], order: Sequence[str]) -> LocalRows:  # noqa: ARG002
        return self._of(_sorted(self._table(), order).to_batches(max_chunksize=_AT_ONCE))

    def kept(self) -> LocalRows:
        return self

    def batches(self) -> Iterable[pa.RecordBatch]:
        return self._batches

    def by_run(
        self,
        runs: int,
        order: Sequence[str],
        scratch: str = "",  # noqa: ARG002
    ) -> Iterable[Iterable[pa.RecordBatch]]:
        table = _sorted(self._table(), ("run", *order))
        for run in range(runs):
            yield table.filter(pc.equal(table["run"], run)).to_batches()

    def _table(self) -> pa.Table:
        return pa.Table.from_batches(self._batches, self._schema)

    def _of(self, batches: Sequence[pa.RecordBatch]) -> LocalRows:
        return LocalRows([batch for batch in batches if len(batch)], self._schema, self._limit)


_AT_ONCE = 64
"""Rows of a sorted batch: a row is up to some hundred KiB of facts."""


def _sorted(table: pa.Table, order: Sequence[str]) -> pa.Table:
    keys = [(name, "ascending", "at_start") for name in order]
    return table.take(pc.sort_indices(table, sort_keys=keys)).combine_chunks()


class LocalExecutor:
    """Carries out a plan in this process. Raises TooLarge where a step needs more than ``limit`` bytes."""

    name = "local"
    parallel = 1

    def __init__(self, limit: int = LOCAL_BYTES) -> None:
        self._limit = limit

    def table(self, rows: pa.Table, parts: int) -> LocalRows:  # noqa: ARG002
        return LocalRows(rows.to_batches(), rows.schema, self._limit)

    def given(self, value: T) -> Callable[[], T]:
        return lambda: value

    def followed(self, status: Callable[[str], None]) -> AbstractContextManager[Callable[[str], None]]:
        return nullcontext(status)
