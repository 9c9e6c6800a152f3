"""Every replica's own log, read from its own files over SSH, into the history."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from wrackline.fleets.base import FleetError
from wrackline.harness.specification.spec import Spec
from wrackline.history import Recorder
from wrackline.history.model import REPLICA, Event, Record, Type
from wrackline.history.offsets import Offsets
from wrackline.systems.base import ClusterState, DeployError, Node, ReplicaLog, StoredRecord, System
from wrackline.systems.spec import is_true
from wrackline.workloads.payload import KeyOf, decode, kept_timestamp, run_tag

CHUNK_RECORDS = 2_000
TIERED = "remote.storage.enable"
"""A topic's setting: what its replicas no longer have in their files may be in a remote tier."""


@dataclass(frozen=True, slots=True)
class HeldLog:
    """The records that the first reader found in one replica's own log."""

    node: Node
    topic: str
    partition: int
    log_start: int
    is_evidence: bool
    """It was read whole, and its replica is in the ISR."""
    offsets: Offsets


def read_replicas(
    system: System, recorder: Recorder, state: ClusterState, spec: Spec
) -> tuple[list[HeldLog], list[str]]:
    """One row per chunk of every replica there is by ``state``. Returns the logs, and what could not be read,
    one line each."""
    workload = spec.workload
    brokers = [node for node in system.nodes if node.is_broker]
    expected = [
        (node, topic.name, partition)
        for topic in spec.every_topic
        for partition in range(topic.partitions)
        for node in brokers
        if _holds(state, topic.name, partition, node.node_id)
    ]
    tiered = {one.name for one in spec.every_topic if is_true(one.configs.get(TIERED, False))}
    problems: list[str] = []
    read: list[HeldLog] = []
    with ThreadPoolExecutor(max_workers=4, thread_name_prefix="replica-log") as pool:
        logs = pool.map(lambda one: _fetch(system, *one), expected)
        for (node, topic, partition), result in zip(expected, logs, strict=True):
            if isinstance(result, str):
                problems.append(f"replica of {topic}-{partition} on {node.host.name}: {result}")
            else:
                in_isr = _in_isr(state, topic, partition, node.node_id)
                if not workload.compacted and result.problem is None:
                    result = replace(result, problem=result.hole)
                _write(recorder, node, result, in_isr, workload.key_of, tiered=topic in tiered)
                offsets = Offsets(record.offset for record in result.records)
                whole = in_isr and result.problem is None
                read.append(HeldLog(node, topic, partition, result.log_start, whole, offsets))
    return read, problems


def _fetch(system: System, node: Node, topic: str, partition: int) -> ReplicaLog | str:
    try:
        return system.replica_log(node, topic, partition)
    except (FleetError, DeployError) as error:
        return str(error)


def _holds(state: ClusterState, topic: str, partition: int, node_id: int) -> bool:
    result = state.partition(topic, partition)
    return result is None or node_id in result.replicas


def _in_isr(state: ClusterState, topic: str, partition: int, node_id: int) -> bool:
    result = state.partition(topic, partition)
    return result is not None and node_id in result.isr


def _write(
    recorder: Recorder, node: Node, log: ReplicaLog, in_isr: bool, key_of: KeyOf, *, tiered: bool
) -> None:
    tag = run_tag(recorder.info.test_id)
    chunks = [log.records[at : at + CHUNK_RECORDS] for at in range(0, len(log.records), CHUNK_RECORDS)] or [
        ()
    ]
    for number, chunk in enumerate(chunks):
        records, corrupt = _decoded(chunk, log.partition, tag, key_of)
        extra: dict[str, Any] = {
            "in_isr": in_isr,
            "complete": number == len(chunks) - 1 and log.problem is None,
            "hw": log.high_watermark,
        }
        if log.epochs is not None and number == len(chunks) - 1:
            extra["epochs"] = [list(entry) for entry in log.epochs]
        if tiered:
            extra["tiered"] = True
        if log.log_dirs:
            extra["log_dirs"] = list(log.log_dirs)
        if corrupt:
            extra["corrupt"] = corrupt
        recorder.record(
            Event(
                REPLICA,
                Type.OK,
                "replica",
                topic=log.topic,
                partition=log.partition,
                offset=log.log_start,
                high_watermark=log.leo,
                records=records,
                error=log.problem,
                node=node.host.name,
                extra=extra,
            )
        )


def _decoded(
    chunk: Sequence[StoredRecord], partition: int, tag: bytes, key_of: KeyOf
) -> tuple[tuple[Record, ...], list[dict[str, Any]]]:
    records = []
    corrupt = []
    for stored in chunk:
        kept = kept_timestamp(stored.timestamp_ms, stored.leader_epoch)
        result = decode(tag, stored.value, key=stored.key, timestamp_ms=kept, key_of=key_of)
        records.append(
            Record(partition, stored.offset, result.value, stored.leader_epoch, stored.timestamp_ms)
        )
        if result.detail is not None:
            corrupt.append({"partition": partition, "offset": stored.offset, "detail": result.detail})
    return tuple(records), corrupt
