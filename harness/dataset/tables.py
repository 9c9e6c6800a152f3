"""The tables of the dataset: their columns, and the rows that a run gives. docs/export-to-sql.md is the same
for readers; a test compares the two.

Every table is partitioned by ``night``, which stands in the folders' names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.checkers.findings import FINDINGS, Meaning
from wrackline.harness.records import METRICS, Record

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


def _text(name: str, meaning: str) -> pa.Field:
    """A text that is always there."""
    return _column(name, pa.string(), meaning, always=True)


def _texts(name: str, meaning: str) -> pa.Field:
    """A list of texts that is always there; it may be empty."""
    return _column(name, pa.list_(pa.string()), meaning, always=True)


_RUN: Final = _text("run", "the run's id, which begins with its time")


RUNS = pa.schema(
    [
        _RUN,
        _text("folder", "where the run's files are"),
        _text("state", "`judged`, `not judged`, `recording`, `infrastructure` or `damaged`"),
        _text("trouble", "what cannot be read, or failed on our side; else empty"),
        _text("task", "the night's name for it, e.g. `CASE~twin`"),
        _text("case", "the night's case it belongs to"),
        _text("follow_up", "`twin`, `repeat-2`, ...; empty for the case itself"),
        _text("name", "of the specification"),
        _column("seed", pa.int64(), "seed of every random choice"),
        _column("started_at", pa.timestamp("us", tz="UTC"), "when it began"),
        _column("seconds", pa.float64(), "how long it took, from set-up to the collected logs"),
        _text("system", "`wrackline`, `apache-kafka`, ..."),
        _text("version", "of the system"),
        _text("profile", "the broker's set of rules, where the system is ours"),
        _text("fleet", "kind of hosts"),
        _text("workload", "`log`, `register`, ..."),
        _text("acks", "of the producers"),
        _text("guided", "the guided schedule, if there was one"),
        _texts("defects", "known defects it was started with"),
        _texts("expected", "anomalies it had to show"),
        _column("verdict", pa.string(), "null while it is not judged"),
        _text("contract", "what it was judged by"),
        _text("headline", "the verdict in one sentence"),
        _texts("reasons", "why, a sentence each"),
        _texts("violations", "anomalies that its contract forbids and that it showed"),
        _text(
            "cause", "the violations joined by `+`; with the next, system and version an incident's signature"
        ),
        _column("incidents", pa.int64(), "how many its contract forbids; null: not counted yet"),
        _text("schedule", "the guided schedule, or the kinds of faults joined by `+`"),
        _column("planned_faults", pa.int64(), "how many faults it was to have", always=True),
    ]
)
FOUND = pa.schema(
    [
        _RUN,
        _text("anomaly", "its name (docs/anomalies.md)"),
        _text("meaning", "what the run's contract says: `violation`, `allowed`, `expected`, `n/a`"),
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
        _text("explanation", "a sentence"),
    ]
)
MEASURED = pa.schema(
    [
        _RUN,
        _text("metric", "one of: " + ", ".join(f"`{name}`" for name in METRICS)),
        _column("value", pa.float64(), "in the metric's unit; no row where it was not measured", always=True),
    ]
)
FAULTS = pa.schema(
    [
        _RUN,
        _text("id", "within the run"),
        _text("fault", "its kind (docs/faults.md)"),
        _texts("targets", "hosts"),
        _text("role", "what the target was, e.g. `leader(log-0)`"),
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
    rows = [
        {**asdict(fault), "run": record.run, "fault": fault.kind, "targets": list(fault.targets)}
        for fault in record.faults
    ]
    yield pa.RecordBatch.from_pylist(rows, FAULTS)


TABLES: Final[Mapping[str, Table]] = {
    "runs": Table(RUNS, _of_runs),
    "findings": Table(FOUND, _of_findings),
    "metrics": Table(MEASURED, _of_metrics),
    "faults": Table(FAULTS, _of_faults),
}
