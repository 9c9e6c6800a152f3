"""The tables of the dataset: their columns, and the rows that a run gives. docs/export-to-sql.md is the same
for readers; a test compares the two.

Every table is partitioned by ``night``, which stands in the folders' names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.checkers.findings import FINDINGS, Meaning
from wrackline.harness.records import METRICS, Record

Row = dict[str, Any]
_LIST = pa.list_(pa.string())
FINDINGS_FILE: Final = "findings.parquet"
_BATCH_ROWS: Final = 50_000


@dataclass(frozen=True, slots=True)
class Table:
    schema: pa.Schema
    batches: Callable[[Record], Iterator[pa.RecordBatch]]
    """What one run gives. Raises OSError, pa.ArrowInvalid for files that cannot be read."""


def night_of(record: Record) -> str:
    """The partition of a run: its night's folder, or of one that was made alone the day it began (UTC)."""
    return record.night or f"alone-{record.started_at[:10] or 'undated'}"


def _column(name: str, kind: pa.DataType, meaning: str, *, always: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=not always, metadata={"comment": meaning})


def _run() -> pa.Field:
    return _column("run", pa.string(), "the run's id, which begins with its time", always=True)


RUNS = pa.schema(
    [
        _run(),
        _column("folder", pa.string(), "where the run's files are", always=True),
        _column(
            "state",
            pa.string(),
            "`judged`, `not judged`, `recording`, `infrastructure` or `damaged`",
            always=True,
        ),
        _column(
            "trouble", pa.string(), "what cannot be read, or failed on our side; else empty", always=True
        ),
        _column("task", pa.string(), "the night's name for it, e.g. `CASE~twin`", always=True),
        _column("case", pa.string(), "the night's case it belongs to", always=True),
        _column("follow_up", pa.string(), "`twin`, `repeat-2`, ...; empty for the case itself", always=True),
        _column("name", pa.string(), "of the specification", always=True),
        _column("seed", pa.int64(), "seed of every random choice"),
        _column("started_at", pa.timestamp("us", tz="UTC"), "when it began"),
        _column("seconds", pa.float64(), "how long it took, from set-up to the collected logs"),
        _column("system", pa.string(), "`wrackline`, `apache-kafka`, ...", always=True),
        _column("version", pa.string(), "of the system", always=True),
        _column("profile", pa.string(), "the broker's set of rules, where the system is ours", always=True),
        _column("fleet", pa.string(), "kind of hosts", always=True),
        _column("workload", pa.string(), "`log`, `register`, ...", always=True),
        _column("acks", pa.string(), "of the producers", always=True),
        _column("guided", pa.string(), "the guided schedule, if there was one", always=True),
        _column("defects", _LIST, "known defects it was started with", always=True),
        _column("expected", _LIST, "anomalies it had to show", always=True),
        _column("verdict", pa.string(), "null while it is not judged"),
        _column("contract", pa.string(), "what it was judged by", always=True),
        _column("headline", pa.string(), "the verdict in one sentence", always=True),
        _column("reasons", _LIST, "why, a sentence each", always=True),
        _column("violations", _LIST, "anomalies that its contract forbids and that it showed", always=True),
        _column(
            "cause",
            pa.string(),
            "the violations joined by `+`; with the next, system and version an incident's signature",
            always=True,
        ),
        _column("incidents", pa.int64(), "how many its contract forbids; null: not counted yet"),
        _column(
            "schedule", pa.string(), "the guided schedule, or the kinds of faults joined by `+`", always=True
        ),
        _column("planned_faults", pa.int64(), "how many faults it was to have", always=True),
    ]
)
FOUND = pa.schema(
    [
        _run(),
        _column("anomaly", pa.string(), "its name (docs/anomalies.md)", always=True),
        _column(
            "meaning",
            pa.string(),
            "what the run's contract says: `violation`, `allowed`, `expected`, `n/a`",
            always=True,
        ),
        _column("topic", pa.string(), "where it is"),
        _column("partition", pa.int32(), "where it is"),
        _column("offset", pa.int64(), "where it is"),
        _column("value", pa.int64(), "the record's"),
        _column(
            "operations",
            pa.list_(pa.int64()),
            "history indexes of the events that prove it, at most 8",
            always=True,
        ),
        _column("where", pa.string(), "a part of the log, such as `tail`, or a rule"),
        _column("explanation", pa.string(), "a sentence", always=True),
    ]
)
MEASURED = pa.schema(
    [
        _run(),
        _column("metric", pa.string(), "one of: " + ", ".join(f"`{name}`" for name in METRICS), always=True),
        _column("value", pa.float64(), "in the metric's unit; no row where it was not measured", always=True),
    ]
)
FAULTS = pa.schema(
    [
        _run(),
        _column("id", pa.string(), "within the run", always=True),
        _column("fault", pa.string(), "its kind (docs/faults.md)", always=True),
        _column("targets", _LIST, "hosts", always=True),
        _column("role", pa.string(), "what the target was, e.g. `leader(log-0)`", always=True),
        _column("began_s", pa.float64(), "seconds since the run began; null where it never did"),
        _column("ended_s", pa.float64(), "seconds since the run began; null where it never did"),
        _column("proved", pa.bool_(), "whether it was seen to take effect", always=True),
    ]
)


def _of_runs(record: Record) -> Iterator[pa.RecordBatch]:
    cause, schedule, _, _ = record.signature
    said = {name: getattr(record, name) for name in RUNS.names if hasattr(record, name)}
    row = {
        **said,
        "folder": str(record.folder),
        "started_at": _moment(record.started_at),
        "cause": cause,
        "schedule": schedule,
        "incidents": record.incident_counts.get(Meaning.VIOLATION),
    }
    yield pa.RecordBatch.from_pylist([row], RUNS)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _of_findings(record: Record) -> Iterator[pa.RecordBatch]:
    file = record.folder / FINDINGS_FILE
    if not file.exists():
        return
    meanings = {found.anomaly: str(found.meaning) for found in reversed(record.found)}  # violations go first
    with file.open("rb") as opened, pq.ParquetFile(opened) as parquet:
        names = [name for name in FINDINGS.names if name in FOUND.names]
        for batch in parquet.iter_batches(_BATCH_ROWS, columns=names, use_threads=False):
            anomalies = batch.column("anomaly").to_pylist()
            columns = {name: batch.column(name) for name in names} | {
                "run": [record.run] * len(batch),
                "meaning": [meanings.get(one, str(Meaning.NOT_APPLICABLE)) for one in anomalies],
            }
            arrays = [pa.array(columns[field.name], field.type) for field in FOUND]
            yield pa.RecordBatch.from_arrays(arrays, schema=FOUND)


def _of_metrics(record: Record) -> Iterator[pa.RecordBatch]:
    rows = [{"run": record.run, "metric": name, "value": value} for name, value in record.metrics.items()]
    yield pa.RecordBatch.from_pylist(rows, MEASURED)


def _of_faults(record: Record) -> Iterator[pa.RecordBatch]:
    rows: list[Row] = [
        {
            "run": record.run,
            "id": fault.id,
            "fault": fault.kind,
            "targets": list(fault.targets),
            "role": fault.role,
            "began_s": fault.began_s,
            "ended_s": fault.ended_s,
            "proved": fault.proved,
        }
        for fault in record.faults
    ]
    yield pa.RecordBatch.from_pylist(rows, FAULTS)


TABLES: Final[Mapping[str, Table]] = {
    "runs": Table(RUNS, _of_runs),
    "findings": Table(FOUND, _of_findings),
    "metrics": Table(MEASURED, _of_metrics),
    "faults": Table(FAULTS, _of_faults),
}
