"""How long acknowledged sends of a run took, by partition and by the node that led it when they were begun
(harness/report/read/latency.py)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from upath import UPath

from wrackline.harness.report.read.cluster import cluster_of
from wrackline.harness.report.read.columns import Places
from wrackline.harness.report.read.latency import Latency, Leaders, Spread, Spreads
from wrackline.history.excerpts import decode_extra
from wrackline.history.folder import PARQUET
from wrackline.history.model import CHRONICLE, CONTROL, PARTITION, Event, Type
from wrackline.history.schema import METADATA_KEY
from wrackline.history.wording import partition_label

__all__ = ["Latency", "Spread", "latency"]

_SENDS: Final = ["time_ns", "f", "type", "topic", "partition", "latency_ns"]
_TOLD: Final = ["time_ns", "f", "topic", "partition", "leader_epoch", "extra"]
_OF_LEADERS: Final = ("cluster", PARTITION, CHRONICLE)


def latency(folder: UPath) -> Latency | None:
    """Of a run; None where it has no history, or one that cannot be read: its report says why."""
    try:
        with (folder / PARQUET).open("rb") as file:
            return _latency(file)
    except (OSError, pa.ArrowException, ValueError, KeyError):
        return None


def _latency(file: Any) -> Latency:
    history = pq.ParquetFile(file, read_dictionary=["topic", "f", "type"])
    info = orjson.loads((history.schema_arrow.metadata or {}).get(METADATA_KEY) or b"{}")
    told = _events(history)
    leaders = Leaders(cluster_of(told, dict(info.get("nodes") or {}), np.iinfo(np.int64).max).spans)
    places, partitions, nodes = Places(), Spreads(), Spreads()
    for batch in history.iter_batches(columns=_SENDS):
        wanted = pc.and_(pc.equal(batch["f"], "send"), pc.equal(batch["type"], Type.OK.value))
        sends = batch.filter(pc.and_(wanted, pc.is_valid(batch["latency_ns"])))
        partition = np.asarray(sends["partition"].fill_null(-1), np.int64)
        which = places.codes(places.topics.codes(sends["topic"]), partition)
        took = np.asarray(sends["latency_ns"], np.int64)
        labels = [partition_label(*place) for place in places.listed()]
        partitions.add(labels, which, took)
        began = np.asarray(sends["time_ns"], np.int64) - took
        nodes.add(leaders.hosts, leaders.at(labels, which, began), took)
    return Latency(partitions.spreads(), nodes.spreads())


def _events(history: pq.ParquetFile) -> list[Event]:
    """What the history has of leaders, row group by row group."""
    parts = []
    for number in range(history.num_row_groups):
        control = pc.equal(history.read_row_group(number, columns=["process"])["process"], CONTROL)
        if pc.any(control).as_py():
            parts.append(history.read_row_group(number, columns=_TOLD).filter(control))
    told = [row for part in parts for row in part.to_pylist() if row["f"] in _OF_LEADERS]
    return [
        Event(process=CONTROL, type=Type.INFO, **row | {"extra": decode_extra(row["extra"])}) for row in told
    ]
