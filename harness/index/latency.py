"""How long acknowledged sends took, by partition and by the node that led it when they were begun.

Clients do not say which node answered them. Who led a partition is in the history: what the system wrote down
of every change, or else what brokers answered when they were asked (harness/report/read/cluster.py). A send
that began while no leader is known counts for its partition alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from upath import UPath

from wrackline.harness.report.read.cluster import LeaderSpan, cluster_of
from wrackline.harness.report.text import partition_label
from wrackline.history.excerpts import decode_extra
from wrackline.history.files import PARQUET
from wrackline.history.model import CHRONICLE, CONTROL, PARTITION, Event, Type
from wrackline.history.schema import METADATA_KEY

_SENDS: Final = ("time_ns", "topic", "partition", "latency_ns")
_TOLD: Final = ("time_ns", "f", "topic", "partition", "leader_epoch", "extra")
_OF_LEADERS: Final = ("cluster", PARTITION, CHRONICLE)

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spread:
    """Of acknowledged sends."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Latency:
    partitions: Mapping[str, Spread]
    nodes: Mapping[str, Spread]
    """By host; empty where the history has nothing of leaders."""


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
    sends = _rows(history, ("f", "type"), _SENDS, lambda of: _equal(of, "f", "send", "type", Type.OK))
    told = _rows(history, ("process",), _TOLD, lambda of: pc.equal(of["process"], CONTROL))
    labels, which = _partitions(sends)
    took = np.asarray(sends["latency_ns"].fill_null(-1), np.int64)
    began = np.asarray(sends["time_ns"], np.int64) - np.maximum(took, 0)
    known = (took >= 0) & (which >= 0)
    spans = cluster_of(_events(told), dict(info.get("nodes") or {}), np.iinfo(np.int64).max).spans
    leaders = np.full(len(took), -1, np.int64)
    hosts: list[str] = []
    for number, label in enumerate(labels):
        of = np.flatnonzero(which == number)
        leaders[of] = _leaders(spans.get(label, ()), began[of], hosts)
    return Latency(_spreads(labels, which, took, known), _spreads(hosts, leaders, took, known))


def _rows(history: pq.ParquetFile, by: Sequence[str], wanted: Sequence[str], mask: Any) -> pa.Table:
    """The wanted columns of the rows that a mask over other columns picks, row group by row group."""
    parts = []
    for number in range(history.num_row_groups):
        chosen = mask(history.read_row_group(number, columns=list(by)))
        if pc.any(chosen).as_py():
            parts.append(history.read_row_group(number, columns=list(wanted)).filter(chosen))
    empty = history.schema_arrow.empty_table().select(list(wanted))
    return pa.concat_tables([empty, *parts], promote_options="permissive")


def _equal(of: pa.Table, *wanted: str) -> Any:
    pairs = zip(wanted[::2], wanted[1::2], strict=True)
    first, *rest = (pc.equal(of[name], pa.scalar(str(value))) for name, value in pairs)
    for other in rest:
        first = pc.and_(first, other)
    return first


def _partitions(sends: pa.Table) -> tuple[list[str], Ints]:
    """The labels of the partitions, in order, and for each send which one it went to; -1: several, or none
    that is known."""
    topics = sends["topic"].cast(pa.string())
    places = pa.table({"topic": topics, "partition": sends["partition"]})
    single = places.group_by(["topic", "partition"]).aggregate([]).to_pylist()
    pairs = sorted(
        (one["topic"], one["partition"])
        for one in single
        if one["topic"] is not None and one["partition"] is not None
    )
    which = np.full(len(sends), -1, np.int64)
    partition = np.asarray(sends["partition"].fill_null(-1), np.int64)
    for number, (topic, at) in enumerate(pairs):
        of_topic = np.asarray(pc.fill_null(pc.equal(topics, topic), False), bool)
        which[of_topic & (partition == at)] = number
    return [partition_label(topic, at) for topic, at in pairs], which


def _events(told: pa.Table) -> list[Event]:
    kinds = pc.is_in(told["f"].cast(pa.string()), pa.array(_OF_LEADERS))
    return [
        Event(
            process=CONTROL,
            type=Type.INFO,
            f=row["f"],
            topic=row["topic"],
            partition=row["partition"],
            leader_epoch=row["leader_epoch"],
            time_ns=row["time_ns"],
            extra=decode_extra(row["extra"]),
        )
        for row in told.filter(kinds).to_pylist()
    ]


def _leaders(spans: Sequence[LeaderSpan], began: Ints, hosts: list[str]) -> Ints:
    """Which of the hosts led when each send was begun; -1: nobody knows. Hosts that are new are added."""
    if not spans:
        return np.full(len(began), -1, np.int64)
    for span in spans:
        if span.leader is not None and span.leader not in hosts:
            hosts.append(span.leader)
    begins = np.array([span.begin_ns for span in spans], np.int64)
    ends = np.array([span.end_ns for span in spans], np.int64)
    leads = np.array([-1 if span.leader is None else hosts.index(span.leader) for span in spans], np.int64)
    at = np.searchsorted(begins, began, "right") - 1
    inside = (at >= 0) & (began <= ends[at])
    return np.where(inside, leads[at], -1)


def _spreads(names: Sequence[str], which: Ints, took: Ints, known: NDArray[np.bool_]) -> dict[str, Spread]:
    found = {}
    for number, name in enumerate(names):
        of = took[known & (which == number)]
        if len(of):
            p50, p99, most = (float(value) / 1e6 for value in np.percentile(of, (50, 99, 100)))
            found[name] = Spread(len(of), round(p50, 3), round(p99, 3), round(most, 3))
    return dict(sorted(found.items(), key=lambda item: _natural(item[0])))


def _natural(name: str) -> list[tuple[int, str]]:
    """``log-2`` before ``log-10``."""
    words = name.replace("-", " ").replace("_", " ").split()
    return [(int(word), "") if word.isdigit() else (-1, word) for word in words]
