"""What the walk of transactions says of events, without files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from wrackline.checkers.anomalies.transactions import TRANSACTIONS
from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.finding import Finding, finished
from wrackline.checkers.inputs.final_reads import FinalRead
from wrackline.history.model import Event, RunInfo
from wrackline.history.store.schema import SCHEMA


def walked(info: RunInfo, events: Sequence[Event], chunk: int | None = None) -> list[dict[str, Any]]:
    """Findings, as rows of the common schema; the walk is given ``chunk`` events at a time."""
    about = about_of(info, events)
    said = TRANSACTIONS.find(batches(info, events, chunk), about)
    return [finished(one, about) for one in said if isinstance(one, Finding)]


def batches(info: RunInfo, events: Sequence[Event], chunk: int | None = None) -> list[pa.RecordBatch]:
    rows = [_row(info, event) for event in events if event.f in TRANSACTIONS.reads]
    found: list[pa.RecordBatch] = pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=chunk)
    return found


def _row(info: RunInfo, event: Event) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(event, name) for name in SCHEMA.names if name != "test_id"}
    extra = None if event.extra is None else orjson.dumps(event.extra).decode()
    records = [record._asdict() for record in event.records]
    return {**row, "test_id": info.test_id, "type": str(event.type), "records": records, "extra": extra}


def about_of(info: RunInfo, events: Sequence[Event]) -> AboutRun:
    """What the judge would know of the run."""
    reads: dict[tuple[str, int], FinalRead] = {}
    for event in events:
        if event.f == "drain" and event.topic is not None and event.partition is not None:
            read = reads.setdefault((event.topic, event.partition), FinalRead())
            read.take({**_row(info, event), "extra": event.extra or {}})
    logs = {}
    for at, topic in enumerate(info.topics):
        for partition in range(topic.partitions):
            found = reads.get((topic.name, partition))
            logs[topic.name, partition] = AboutLog(
                number=(at << 20) + partition,
                topic=topic.name,
                partition=partition,
                start=found.deleted_below if found else 0,
                end=found.end if found else None,
                complete=found is not None and found.is_evidence,
                unread_from=found.end if found and found.derived else None,
                contiguous=topic.contiguous,
                compacted=topic.compacted,
            )
    return AboutRun(0, info, logs, (), {log.number: log for log in logs.values()})
