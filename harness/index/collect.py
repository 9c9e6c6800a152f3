"""The data of all pages: the runs below a place, and the latencies in their histories.

A history is read once: what was made of it is kept beside the site, by the size and the time of its file.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter
from upath import UPath

from wrackline.checkers.inputs.cluster_history import cluster_of
from wrackline.harness.records import Night, Record, folders, record
from wrackline.harness.report.read.columns import Places
from wrackline.harness.report.read.latency import Latency, Leaders, Spreads
from wrackline.history.excerpts import decode_extra
from wrackline.history.model import CHRONICLE, CONTROL, PARTITION, Event, Type
from wrackline.history.store.folder import PARQUET, whole_file
from wrackline.history.store.schema import METADATA_KEY
from wrackline.history.wording import partition_label

_READERS: Final = 4
"""Histories that are read at a time; Arrow gives up the interpreter's lock for most of it."""
_SIGNED: Final = (
    "run.json",
    "spec.yaml",
    "verdict.json",
    "metrics.json",
    "infrastructure.json",
    PARQUET,
    "report.html",
)
_FORM: Final = 2
"""Of what is kept; raised when `Latency` changes."""
_LATENCIES: Final = TypeAdapter(dict[str, tuple[str, Latency | None]])


class NothingThere(Exception):
    """The place cannot be listed, or holds no run. One line: what, where, how to mend."""


class NoRuns(NothingThere):
    """The place is there, and has no run yet."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A run, and what the site shows of it besides."""

    record: Record
    latency: Latency | None
    has_report: bool
    has_history: bool


@dataclass
class Kept:
    """The results from histories that have not changed since."""

    path: Path | None = None
    """Where it is kept for the next time; None: nowhere."""
    latencies: dict[str, tuple[str, Latency | None]] = field(default_factory=dict)
    """Run folder -> the signature of its history, and what was made of it."""
    entries: dict[str, tuple[str, Entry]] = field(default_factory=dict)
    """Run folder -> the signature of its files, and what was read of them. For this process only."""


def place_of(where: str | Path) -> UPath:
    """A folder, or an fsspec address. Raises NothingThere."""
    try:
        return UPath(where)
    except (ValueError, ImportError) as error:  # no such storage, or its package is not installed
        raise NothingThere(f"{where}: no address that can be read: {error}") from error


def gather(place: UPath, kept: Kept, *, histories: bool = True) -> list[Entry]:
    """Every run below a place, oldest first. Without ``histories`` nothing is known of latency. Raises
    NothingThere."""
    result = _listed(place)
    with ThreadPoolExecutor(_READERS) as pool:
        entries = list(pool.map(lambda each: _entry(each[0], each[1], kept, histories=histories), result))
    _forget(kept, {str(folder) for folder, _ in result})
    return sorted(entries, key=lambda one: (one.record.started_at or one.record.run, one.record.run))


def _listed(place: UPath) -> list[tuple[UPath, Night | None]]:
    try:
        if not place.is_dir():
            raise NothingThere(f"{place}: no such folder; give the one that the runs are in, or its address")
        result = list(folders(place))
    except (OSError, ImportError, ValueError) as error:
        raise NothingThere(f"{place}: cannot be listed: {error}") from error
    if not result:
        raise NoRuns(
            f"{place}: no run in it, nor in folders below; `wrackline run` and `wrackline suite` make some"
        )
    return result


def _entry(folder: UPath, night: Night | None, kept: Kept, *, histories: bool) -> Entry:
    stamps = _stamps(folder)
    signed = f"{stamps} {night.tasks.get(folder.name) if night else ''}"
    before = kept.entries.get(str(folder))
    if before is not None and before[0] == signed:
        return before[1]
    entry = Entry(
        record=record(folder, night),
        latency=_latency(folder, stamps.get(PARQUET, ""), kept) if histories else None,
        has_report="report.html" in stamps,
        has_history=PARQUET in stamps,
    )
    kept.entries[str(folder)] = (signed, entry)
    return entry


def _stamps(folder: UPath) -> dict[str, str]:
    """The files that there are, each with its size and time."""
    stamps = {}
    for name in _SIGNED:
        try:
            of = (folder / name).stat()
        except OSError:
            continue
        stamps[name] = f"{of.st_size} {of.st_mtime}"
    return stamps


def _latency(folder: UPath, stamp: str, kept: Kept) -> Latency | None:
    if not stamp:
        return None
    before = kept.latencies.get(str(folder))
    if before is None or before[0] != stamp:
        before = (stamp, latency(folder))
        kept.latencies[str(folder)] = before
    return before[1]


def _forget(kept: Kept, there: set[str]) -> None:
    for known in (kept.latencies, kept.entries):
        for gone in known.keys() - there:
            del known[gone]


# on the disk ------------------------------------------------------------------------------------------------


def load(path: Path) -> Kept:
    """Returns what was kept in the file; nothing where there is no file, or the file is no work of ours."""
    try:
        said = orjson.loads(path.read_bytes())
        return Kept(path, _LATENCIES.validate_python(said["runs"]) if said["form"] == _FORM else {})
    except (OSError, ValueError, KeyError, TypeError):
        return Kept(path)


def save(kept: Kept) -> None:
    """Raises OSError."""
    if kept.path is None:
        return
    with whole_file(kept.path) as part:
        part.write_bytes(orjson.dumps({"form": _FORM, "runs": kept.latencies}))


_SENDS: Final = ["time_ns", "f", "type", "topic", "partition", "latency_ns"]
_TOLD: Final = ["time_ns", "f", "topic", "partition", "leader_epoch", "extra"]
_OF_LEADERS: Final = ("cluster", PARTITION, CHRONICLE)


def latency(folder: UPath) -> Latency | None:
    """Returns the latency of a run; None where it has no history, or one that cannot be read: its report
    says why."""
    try:
        with (folder / PARQUET).open("rb") as file:
            return _read_latency(file)
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None


def _read_latency(file: Any) -> Latency:
    history = pq.ParquetFile(file, read_dictionary=["topic", "f", "type"])
    info = orjson.loads((history.schema_arrow.metadata or {}).get(METADATA_KEY) or b"{}")
    told = _events(history)
    leaders = Leaders(cluster_of(told, dict(info.get("nodes") or {}), np.iinfo(np.int64).max).spans)
    places, partitions, nodes = Places(), Spreads(), Spreads()
    for batch in history.iter_batches(columns=_SENDS):
        expected = pc.and_(pc.equal(batch["f"], "send"), pc.equal(batch["type"], Type.OK.value))
        sends = batch.filter(pc.and_(expected, pc.is_valid(batch["latency_ns"])))
        partition = np.asarray(sends["partition"].fill_null(-1), np.int64)
        which = places.codes(places.topics.codes(sends["topic"]), partition)
        took = np.asarray(sends["latency_ns"], np.int64)
        labels = [partition_label(*place) for place in places.listed()]
        partitions.add(labels, which, took)
        began = np.asarray(sends["time_ns"], np.int64) - took
        nodes.add(leaders.hosts, leaders.at(labels, which, began), took)
    return Latency(partitions.spreads(), nodes.spreads())


def _events(history: pq.ParquetFile) -> list[Event]:
    """Returns the events of leaders in the history, read row group by row group."""
    parts = []
    for number in range(history.num_row_groups):
        control = pc.equal(history.read_row_group(number, columns=["process"])["process"], CONTROL)
        if pc.any(control).as_py():
            parts.append(history.read_row_group(number, columns=_TOLD).filter(control))
    told = [row for part in parts for row in part.to_pylist() if row["f"] in _OF_LEADERS]
    return [
        Event(process=CONTROL, type=Type.INFO, **row | {"extra": decode_extra(row["extra"])}) for row in told
    ]
