"""Trace lines of what the controller committed (protocol.md 3.4)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from broker.core.controller_log import Entry
from broker.core.effects import Effect, Trace
from broker.core.image import ClusterImage, ImageDelta, PartitionImage
from broker.core.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    encode,
)
from broker.core.types import NO_LEADER
from broker.rules.election import RECOVERING, ElectionRules


def trace_committed(
    image: ClusterImage, entries: Sequence[Entry], delta: ImageDelta, rules: ElectionRules
) -> list[Effect]:
    """``image`` and ``delta`` are those after all the entries. Records that change nothing leave no line."""
    lines: list[Effect] = []
    for offset, record in entries:
        if isinstance(record, NoOpRecord):
            continue
        lines.append(Trace("ctl_commit", {"offset": offset, "record": _fields(record)}))
        lines += _broker_lines(record)
        lines += _unclean_lines(image, record)
    return lines + list(_recovery_lines(image, delta, rules))


def _fields(record: MetadataRecord) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(encode(record))
    return fields


def _broker_lines(record: MetadataRecord) -> list[Effect]:
    match record:
        case RegisterBrokerRecord():
            kinds = ["register"]
        case BrokerRegistrationChangeRecord():
            kinds = {True: ["fence"], False: ["unfence"], None: []}[record.fenced]
            kinds += ["shutdown"] if record.in_controlled_shutdown else []
        case _:
            return []
    return [Trace(kind, {"broker": record.broker_id, "epoch": record.broker_epoch}) for kind in kinds]


def _unclean_lines(image: ClusterImage, record: MetadataRecord) -> list[Effect]:
    """A leader from outside ISR and ELR: committed records may be lost (R34)."""
    if not isinstance(record, PartitionChangeRecord) or record.leader_recovery_state != RECOVERING:
        return []
    partition = image.partition_by_id(record.topic_id, record.partition_id)
    tp = str(partition.tp) if partition else f"{record.topic_id}-{record.partition_id}"
    fields = {"tp": tp, "winner": record.leader, "why": "elected uncleanly: possible data loss"}
    return [Trace("recovery", fields)]


def _recovery_lines(image: ClusterImage, delta: ImageDelta, rules: ElectionRules) -> Iterator[Effect]:
    """Partitions that only unclean recovery can help."""
    acceptable = frozenset(broker.id for broker in image.brokers.values() if broker.active)
    for partition in _to_look_at(image, delta):
        recovery = rules.recovery(partition, acceptable)
        if recovery is None:
            continue
        why = (
            "every candidate is back, but inspection of their logs is not implemented: no leader"
            if recovery.ready
            else "waiting for the missing candidates"
        )
        yield Trace(
            "recovery",
            {
                "tp": str(partition.tp),
                "candidates": list(recovery.candidates),
                "missing": list(recovery.missing),
                "winner": None,
                "why": why,
            },
        )


def _to_look_at(image: ClusterImage, delta: ImageDelta) -> Iterator[PartitionImage]:
    for partition in image.partitions():
        if partition.leader != NO_LEADER:
            continue
        if partition.tp in delta.before or delta.brokers.intersection(partition.last_known_elr):
            yield partition
