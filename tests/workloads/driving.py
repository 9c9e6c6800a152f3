"""A workload that is driven for a while, with its history on record."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq

from wrackline.history import Recorder, history_files
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.workloads.log import ClientsSpec, workload_for
from wrackline.workloads.log.tally import Counts

Row = dict[str, Any]


@contextlib.contextmanager
def driven(
    bootstrap: str,
    run_dir: Path,
    spec: ClientsSpec,
    partitions: int,
    operations: int,
    *,
    tries: int,
    stop_s: float,
    until: Callable[[Counts], bool] = lambda _: True,
    topic: str = "log",
    others: Mapping[str, int] = MappingProxyType({}),
    enter: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> Iterator[Any]:
    """The workload, stopped, after ``operations`` of every kind it has, once ``until`` holds; what is done
    with it is recorded still. ``others``: more topics, and their partitions."""
    every = {topic: partitions, **others}
    topics = tuple(TopicInfo(name, count, 3, 2) for name, count in every.items())
    info = RunInfo("t1", "t", 1, "", "mock", spec.name, str(spec.acks), False, topics)
    with Recorder(run_dir, info) as recorder:
        workload = workload_for(spec)(
            spec,
            bootstrap=bootstrap,
            topics=every,
            seed=3,
            recorder=recorder,
            enter=enter,
        )
        workload.start()
        waiting = threading.Event()
        for _ in range(tries):
            counts = workload.counts()
            if counts.operations >= operations and not workload.missing_kinds() and until(counts):
                break
            waiting.wait(0.1)
        assert workload.stop(timeout_s=stop_s) == []
        assert workload.failure is None
        yield workload


def records_of(rows: list[Row], f: str, kind: str) -> list[dict[str, Any]]:
    """Returns the records of all rows of an operation that are of this type."""
    return [record for row in rows if (row["f"], row["type"]) == (f, kind) for record in row["records"]]


def recorded(run_dir: Path) -> list[Row]:
    rows: list[Row] = pq.read_table(history_files(run_dir)[0]).to_pylist()
    return rows
