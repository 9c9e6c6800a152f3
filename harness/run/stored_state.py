"""The check of what brokers without a trace have left in the history, by the invariants that it decides
(wrackline.simulator.trace_check.stored_state)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.history import history_files
from wrackline.history.model import (
    CHRONICLE,
    CONTROL,
    NEMESIS,
    PARTITION,
    QUORUM_LOG,
    REPLICA,
    RunInfo,
)
from wrackline.simulator.trace_check.lines import partition_of
from wrackline.simulator.trace_check.quorum_logs import QuorumChange, QuorumLog
from wrackline.simulator.trace_check.stored_state import Cluster, Entry, Log, State, judge_written
from wrackline.simulator.trace_check.verdicts import Judged

ELR_VERSION = "eligible.leader.replicas.version"
CHANGES_SETTINGS = "change-config"
MOST_RECORDS = 2_000_000
"""In all replicas' logs together; a gigabyte of memory. Of a run with more the logs are not asked."""
_REPLICA, _DRAIN = "replica", "drain"
_PROCESS = {
    PARTITION: CONTROL,
    CHRONICLE: CONTROL,
    QUORUM_LOG: CONTROL,
    _REPLICA: REPLICA,
    CHANGES_SETTINGS: NEMESIS,
}
"""What is looked at, and whose rows these are: a fault is called ``partition``, too."""
_COLUMNS = (
    "time_ns",
    "process",
    "f",
    "topic",
    "partition",
    "offset",
    "leader_epoch",
    "high_watermark",
    "records",
    "node",
    "extra",
)


def judged_of_history(run_dir: Path, info: RunInfo) -> Judged | None:
    """Checks the history of a run; None where the system has written down no change of a partition. Raises
    OSError, HistoryError, and KeyError, ValueError or TypeError for rows that make no sense."""
    rows = list(_rows(run_dir))
    told = [row["extra"] for row in rows if row["f"] == CHRONICLE]
    if not told or not told[-1]["source"]:
        return None
    ids = {host: int(node) for node, host in info.nodes.items()}
    states = [_state(row, ids) for row in rows if row["f"] == PARTITION]
    missing = list(dict.fromkeys(str(line) for extra in told for line in extra["missing"]))
    starts: dict[tuple[str, int], int] = {}
    for row in rows:
        if row["f"] == _DRAIN and row["offset"] is not None:
            starts[row["topic"], row["partition"]] = row["offset"]
    logs = list(_logs([row for row in rows if row["f"] == _REPLICA], ids, starts))
    if sum(len(log.entries) for log in logs) > MOST_RECORDS:
        logs = []
        missing.append(f"the replicas' logs: they have more than {MOST_RECORDS:,} records")
    changed = any(row["f"] == CHANGES_SETTINGS for row in rows)
    cluster = Cluster(
        nodes=tuple({*ids.values(), *(node for state in states for node in state.replicas)}),
        elr=info.features.get(ELR_VERSION, 0) > 0,
        min_isr={} if changed else {topic.name: topic.min_insync_replicas for topic in info.topics},
    )
    quorum = [row["extra"] for row in rows if row["f"] == QUORUM_LOG]
    missing += [str(extra["problem"]) for extra in quorum if extra["problem"]]
    return judge_written(
        states,
        logs,
        cluster,
        quorum=[_quorum_log(extra) for extra in quorum if "changes" in extra],
        source=str(told[-1]["source"]),
        missing=missing,
    )


def _rows(run_dir: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of partitions, replicas, changed settings and final reads, in their order."""
    names = pa.array([*_PROCESS, _DRAIN])
    for file in history_files(run_dir):
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(columns=_COLUMNS):
                for row in batch.filter(pc.is_in(batch["f"], names)).to_pylist():
                    if row["f"] == _DRAIN or row["process"] == _PROCESS[row["f"]]:
                        yield {**row, "extra": orjson.loads(row["extra"] or b"{}")}


def _state(row: Mapping[str, Any], ids: Mapping[str, int]) -> State:
    extra = row["extra"]
    return State(
        at_ns=extra["at_ns"],
        place=extra["place"],
        node=ids.get(row["node"], -1),
        tp=partition_of(f"{row['topic']}-{row['partition']}"),
        leader=extra["leader"],
        leader_epoch=row["leader_epoch"],
        partition_epoch=extra["partition_epoch"],
        replicas=tuple(extra["replicas"]),
        isr=tuple(extra["isr"]),
        elr=tuple(extra["elr"]),
    )


def _quorum_log(extra: Mapping[str, Any]) -> QuorumLog:
    changes = tuple(
        QuorumChange(
            offset=one["offset"],
            epoch=one["epoch"],
            at_ns=one["at_ns"],
            leader=one.get("leader"),
            voters=None if "voters" not in one else tuple((node, folder) for node, folder in one["voters"]),
        )
        for one in extra["changes"]
    )
    epochs = tuple((epoch, first) for epoch, first in extra["epochs"])
    return QuorumLog(extra["node_id"], extra["start"], extra["end"], epochs, changes)


def _high_watermark(row: Mapping[str, Any]) -> int:
    """Returns the one of the replica's checkpoint; -1, unknown, where that is older than the beginning of the
    files and a remote tier has the rest."""
    kept: int = row["extra"]["hw"]
    return -1 if row["extra"].get("tiered") and kept < row["offset"] else kept


def _logs(
    rows: list[Mapping[str, Any]], ids: Mapping[str, int], starts: Mapping[tuple[str, int], int]
) -> Iterator[Log]:
    """Yields the logs that could be read to their end: a row for each chunk. ``starts``: where leaders say
    that logs begin. Records below that are deleted, though a log start is written to disk once a minute."""
    chunks: dict[tuple[str, str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        chunks[row["node"], row["topic"], row["partition"]].append(row)
    for (host, topic, partition), own in chunks.items():
        last = own[-1]
        extra = last["extra"]
        if not extra["complete"]:
            continue
        epochs = extra.get("epochs")
        yield Log(
            at_ns=last["time_ns"],
            node=ids.get(host, -1),
            tp=partition_of(f"{topic}-{partition}"),
            in_isr=extra["in_isr"],
            start=last["offset"],
            leo=last["high_watermark"],
            high_watermark=_high_watermark(last),
            entries=tuple(
                Entry(record["offset"], record["leader_epoch"], record["value"])
                for row in own
                for record in row["records"]
                if record["offset"] >= starts.get((topic, partition), 0)
            ),
            epochs=None if epochs is None else tuple((epoch, start) for epoch, start in epochs),
        )
