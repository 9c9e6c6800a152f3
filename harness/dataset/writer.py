"""Writes the dataset: for each night one file a table, replaced as a whole. To write a night again changes
nothing but what has changed in the night."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.harness.dataset.tables import TABLES, night_of
from wrackline.harness.records import Record, records
from wrackline.history.store.addresses import is_elsewhere, send
from wrackline.history.store.folder import private_folder, whole_file

_FILE = "part-0.parquet"


@dataclass(frozen=True, slots=True)
class Written:
    """One night in the dataset: how many rows each table has of it."""

    night: str
    rows: dict[str, int]


def write_dataset(
    places: Iterable[str], dataset: str, *, progress: Callable[[str], None] = lambda _line: None
) -> list[Written]:
    """Write every night with a run below ``places`` to ``dataset``; both are folders or addresses. A night's
    files are replaced; other nights in the dataset stay as they are. What cannot be read of a run is told to
    ``progress``. Raises OSError."""
    nights: dict[str, dict[str, Record]] = {}
    for place in places:
        for record in records(place):
            nights.setdefault(night_of(record), {})[record.run] = record
    return [
        _write_night(night, list(runs.values()), dataset, progress) for night, runs in sorted(nights.items())
    ]


def _write_night(
    night: str, runs: Sequence[Record], dataset: str, progress: Callable[[str], None]
) -> Written:
    rows = {}
    for name in TABLES:
        target = f"{dataset.rstrip('/')}/{name}/night={quote(night, safe='')}/{_FILE}"
        if is_elsewhere(target):
            with tempfile.TemporaryDirectory(prefix="wrackline-dataset-") as room:
                part = Path(room) / _FILE
                rows[name] = _write_table(name, runs, part, progress)
                send(part, target)
        else:
            private_folder(Path(target).parent)
            with whole_file(Path(target)) as part:
                rows[name] = _write_table(name, runs, part, progress)
    return Written(night, rows)


def _write_table(name: str, runs: Sequence[Record], into: Path, progress: Callable[[str], None]) -> int:
    table, count = TABLES[name], 0
    with pq.ParquetWriter(into, table.schema, compression="zstd") as writer:
        for record in runs:
            try:
                for batch in table.batches(record):
                    writer.write_batch(batch)
                    count += len(batch)
            except (pa.ArrowException, OSError) as error:
                progress(f"{record.run}: its {name} cannot be read: {error}")
    return count
