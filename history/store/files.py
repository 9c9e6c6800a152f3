"""The files of a history in a run's directory, and the conversion of a killed run's write-ahead file to
Parquet.

=====================  ==================================================================================
``history.parquet``    the history, once the run ended (or its left-over write-ahead file was converted)
``history.wal``        the write-ahead file: there while the run goes on, and after a kill
``run.json``           RunInfo, also in the Parquet metadata under the key ``wrackline``
=====================  ==================================================================================
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import itertools
import logging
import os
from collections.abc import Iterable
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.history.model import Event, RunInfo
from wrackline.history.store import wal
from wrackline.history.store.folder import PARQUET, RUN_JSON, WAL, HistoryError, private_folder
from wrackline.history.store.schema import METADATA_KEY, SCHEMA
from wrackline.history.store.tally import TALLY_KEY, Tally, count_table

log = logging.getLogger(__name__)

ROW_GROUP_ROWS = 65_536
CHUNK_BYTES = 8 << 20
PARQUET_OPTIONS = {
    "compression": "zstd",
    "compression_level": 9,
    "write_page_checksum": True,
    "store_schema": False,
}


def read_info(run_dir: Path) -> RunInfo:
    """Reads the description of the run from its history. Raises HistoryError."""
    finished, wal_file = run_dir / PARQUET, run_dir / WAL
    if finished.exists():
        return _info_of_parquet(finished)
    if wal_file.exists():
        try:
            with wal_file.open("rb") as file:
                return _learned(run_dir, wal.read_header(file.readline()))
        except (OSError, ValueError) as error:
            raise HistoryError(f"{wal_file}: not readable as a history: {error}") from error
    raise _none_in(run_dir)


def _none_in(run_dir: Path) -> HistoryError:
    return HistoryError(f"{run_dir}: no history here (neither {PARQUET} nor {WAL}); is it a run's directory?")


def write_info(run_dir: Path, info: RunInfo) -> None:
    """Write ``run.json``, whole or not at all."""
    fresh = run_dir / (RUN_JSON + ".new")
    fresh.write_bytes(orjson.dumps(info, option=orjson.OPT_INDENT_2) + b"\n")
    fresh.replace(run_dir / RUN_JSON)


def history_files(run_dir: Path, *, check: bool = True) -> list[Path]:
    """The Parquet files of a run's history. A left-over write-ahead file is converted first; with ``check``
    every page is read once, so that corruption is one clear line here and no stack trace later.

    Raises HistoryError."""
    finished = run_dir / PARQUET
    if (run_dir / WAL).exists():
        convert(run_dir)
    if not finished.exists():
        raise _none_in(run_dir)
    _info_of_parquet(finished)
    if check:
        _check_pages(finished)
    return [finished]


def convert(run_dir: Path) -> None:
    """Turn a left-over write-ahead file into Parquet. What is not whole at its end is left out, with one line
    of warning and a note in RunInfo; the file is then kept as ``history.wal.broken``. Raises HistoryError."""
    path = run_dir / WAL
    try:
        with path.open("rb") as file:
            _lock(file.fileno(), path)
            whole = wal.examine(path)
            info = _learned(run_dir, _noted(whole, path))
            _write_parquet(run_dir, path, whole, info)
            if whole.problem:
                path.rename(run_dir / (WAL + ".broken"))
            else:
                path.unlink()
    except (OSError, ValueError) as error:
        raise HistoryError(f"{path}: cannot be turned into a history: {error}") from error


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as held:
        raise HistoryError(f"{path}: this run is still being recorded; wait for it to end") from held


def _learned(run_dir: Path, info: RunInfo) -> RunInfo:
    """Adds what only became known after the first line had been written (``Recorder.learn``)."""
    try:
        later = RunInfo.from_json((run_dir / RUN_JSON).read_bytes())
    except (OSError, ValueError):
        return info
    if later.test_id != info.test_id:
        return info
    return dataclasses.replace(info, features=later.features, client=later.client)


def _noted(whole: wal.Whole, path: Path) -> RunInfo:
    note = f"the recording process died; {whole.events} events were recovered"
    if whole.problem:
        lost = whole.file_bytes - whole.body_end
        note += f", {lost} bytes at the end left out ({whole.problem})"
        log.warning("%s: %s; the last %d bytes are left out", path, whole.problem, lost)
    return dataclasses.replace(whole.info, notes=(*whole.info.notes, note))


def _write_parquet(run_dir: Path, path: Path, whole: wal.Whole, info: RunInfo) -> None:
    part = run_dir / (PARQUET + ".converting")
    with contextlib.ExitStack() as stack:
        stack.callback(part.unlink, missing_ok=True)
        with path.open("rb") as file, open_writer(part) as writer:
            pending: list[pa.Table] = []
            for chunk in wal.read_chunks(file.fileno(), whole.body_start, whole.body_end, CHUNK_BYTES):
                pending.append(wal.table_of(chunk, info.test_id))
                pending = write_row_groups(writer, pending)
            write_row_groups(writer, pending, everything=True)
            put_info(writer, info)
        finish(part, run_dir / PARQUET)
    (run_dir / (PARQUET + ".part")).unlink(missing_ok=True)
    write_info(run_dir, info)


def write_history(run_dir: Path, info: RunInfo, events: Iterable[Event]) -> None:
    """Write a history that was not recorded but made (imported, drawn): events are numbered in their order
    and keep their ``time_ns``. Raises FileExistsError when the directory has a history already, OSError."""
    private_folder(run_dir)
    if (run_dir / PARQUET).exists() or (run_dir / WAL).exists():
        raise FileExistsError(f"{run_dir} holds a history already: each run needs a directory of its own")
    part = run_dir / (PARQUET + ".part")
    with contextlib.ExitStack() as stack:
        stack.callback(part.unlink, missing_ok=True)
        with open_writer(part) as writer:
            lines = (
                wal.with_beginning(index, event.time_ns, wal.encode_tail(event))
                for index, event in enumerate(events)
            )
            while piece := b"".join(itertools.islice(lines, ROW_GROUP_ROWS)):
                write_row_groups(writer, [wal.table_of(piece, info.test_id)], everything=True)
            put_info(writer, info)
        finish(part, run_dir / PARQUET)
    write_info(run_dir, info)


class HistoryWriter(pq.ParquetWriter):  # type: ignore[misc]
    """Writes a history, and counts what it writes."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, SCHEMA, **PARQUET_OPTIONS)
        self.tally: Tally = {}

    def write_table(self, table: pa.Table, row_group_size: int | None = None) -> None:
        super().write_table(table, row_group_size=row_group_size)
        count_table(self.tally, table)


def open_writer(path: Path) -> HistoryWriter:
    return HistoryWriter(path)


def put_info(writer: HistoryWriter, info: RunInfo) -> None:
    """The run's information goes into the file's footer last, when all of it is known, and how many rows of
    each kind there are."""
    writer.add_key_value_metadata({METADATA_KEY: info.to_json(), TALLY_KEY: orjson.dumps(writer.tally)})


def write_row_groups(
    writer: HistoryWriter, pending: list[pa.Table], *, everything: bool = False
) -> list[pa.Table]:
    """Write what makes whole row groups (or ``everything``); returns what is still pending."""
    rows = sum(len(table) for table in pending)
    if rows == 0 or (rows < ROW_GROUP_ROWS and not everything):
        return pending
    table = pa.concat_tables(pending).combine_chunks()
    whole = rows if everything else rows - rows % ROW_GROUP_ROWS
    for start in range(0, whole, ROW_GROUP_ROWS):
        writer.write_table(table.slice(start, min(ROW_GROUP_ROWS, whole - start)))
    return [table.slice(whole)] if whole < rows else []


def finish(part: Path, final: Path) -> None:
    """Make a finished file durable under its final name."""
    _sync(part)
    part.rename(final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _info_of_parquet(path: Path) -> RunInfo:
    try:
        with pq.ParquetFile(path) as file:
            return info_in(file, str(path))
    except (OSError, ValueError) as error:
        raise HistoryError(f"{path}: {_corrupt(error)}") from error


def info_in(file: pq.ParquetFile, where: str) -> RunInfo:
    """Reads the description of the run from an open history; ``where`` names it in errors. Raises
    HistoryError, and OSError and ValueError where the file itself is broken."""
    schema = file.schema_arrow
    try:
        info = RunInfo.from_json((schema.metadata or {})[METADATA_KEY])
    except KeyError as missing:
        raise HistoryError(
            f"{where}: a Parquet file, but no history of ours (no run information in it)"
        ) from missing
    missing_columns = [name for name in SCHEMA.names if name not in schema.names]
    if missing_columns:
        raise HistoryError(
            f"{where}: columns missing: {', '.join(missing_columns)}; was it written by another version?"
        )
    return info


def _check_pages(path: Path) -> None:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                file.read_row_group(group, use_threads=False)
    except (OSError, ValueError) as error:
        raise HistoryError(f"{path}: {_corrupt(error)}") from error


def _corrupt(wrong: Exception) -> str:
    first = (str(wrong).splitlines() or [type(wrong).__name__])[0]
    return f"corrupt or truncated ({first}); restore it from a copy or run the test again"
