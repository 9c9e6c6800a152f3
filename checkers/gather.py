"""Findings of one run come together: they become the file in the run's directory, and counts."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.checkers.checks.registry import names
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.verdict import Found
from wrackline.history.store.folder import whole_file

FINDINGS_FILE = "findings.parquet"


def gather(batches: Iterable[pa.RecordBatch], run: Run) -> Found:
    """One file of findings in the run's directory, batch by batch."""
    result = Found({name: {} for name in names()})
    with (
        whole_file(run.directory / FINDINGS_FILE) as part,
        pq.ParquetWriter(part, FINDINGS, compression="zstd") as writer,
    ):
        for batch in batches:
            table = pa.Table.from_batches([batch]).select(FINDINGS.names).cast(FINDINGS)
            writer.write_table(table)
            _count(result, table)
    return result


def _count(found: Found, table: pa.Table) -> None:
    groups = table.group_by(["anomaly", "topic", "partition"], use_threads=False).aggregate(
        [([], "count_all")]
    )
    for row in groups.to_pylist():
        place: Place | None = None if row["topic"] is None else (row["topic"], row["partition"])
        by_place = found.counts[row["anomaly"]]
        by_place[place] = by_place.get(place, 0) + row["count_all"]
