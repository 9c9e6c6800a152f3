"""The walk over groups, without an engine around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.anomalies.groups import GROUPS
from wrackline.checkers.checks.about import AboutLog, AboutRun, about
from wrackline.checkers.checks.finding import Finding, finished
from wrackline.checkers.checks.walks import Figure
from wrackline.checkers.engine.context import topics_of
from wrackline.checkers.inputs.runs import load_run
from wrackline.history.model import Event, RunInfo
from wrackline.history.store.schema import SCHEMA

BATCH = 64
"""Events in a batch: few, so that what is open at its end goes on in the next."""


def walk_of(run_dir: Path, size: int = BATCH) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Findings and figures of a run."""
    run = load_run(run_dir)
    known = about(0, run, topics_of([run]))
    return _walked(pq.read_table(run_dir / "history.parquet"), known, size)


def findings_of(events: Iterable[Event], info: RunInfo) -> list[dict[str, Any]]:
    """Of a run with one partition that nobody read in the end."""
    log = AboutLog(number=0, topic="log", partition=0)
    known = AboutRun(0, info, {("log", 0): log}, (), {0: log})
    return _walked(pa.Table.from_pylist([_row(one) for one in events], SCHEMA), known, BATCH)[0]


def _row(event: Event) -> dict[str, Any]:
    row = {name: getattr(event, name, None) for name in SCHEMA.names}
    row["records"] = [record._asdict() for record in event.records] or None
    extra = None if event.extra is None else orjson.dumps(event.extra).decode()
    return row | {"test_id": "t", "type": str(event.type), "extra": extra}


def _walked(table: pa.Table, known: AboutRun, size: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    mine = table.filter(pc.is_in(table["f"], value_set=pa.array(sorted(GROUPS.reads))))
    found: Sequence[Finding | Figure] = list(GROUPS.find(_batches(mine, known, size), known))
    findings = [finished(one, known) for one in found if isinstance(one, Finding)]
    return findings, {one.name: one.counts for one in found if isinstance(one, Figure)}


def _batches(table: pa.Table, known: AboutRun, size: int) -> Iterable[pa.RecordBatch]:
    assert GROUPS.parts is not None
    for batch in table.to_batches(max_chunksize=size):
        yield batch.filter(pa.array(GROUPS.parts(batch, known) >= 0))
