"""Trace lines of what the controller committed (docs/broker.md "Trace")."""

from __future__ import annotations

import json
from collections.abc import MutableMapping, Sequence
from typing import Any

from wrackline.broker.core.controller.unclean_recovery import Decision
from wrackline.broker.core.quorum.log import Entry
from wrackline.broker.model.effects import Effect, Trace
from wrackline.broker.model.image import ClusterImage
from wrackline.broker.model.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    encode,
)
from wrackline.broker.rules.election import RECOVERING


def trace_committed(
    image: ClusterImage, entries: Sequence[Entry], logs_of: MutableMapping[int, Decision]
) -> list[Effect]:
    """``image`` is that after all the entries. Records that change nothing leave no line. ``logs_of``: what
    recovery decided on, by offset; taken out once told."""
    lines: list[Effect] = []
    for offset, record in entries:
        if isinstance(record, NoOpRecord):
            continue
        lines.append(Trace("ctl_commit", {"offset": offset, "record": _fields(record)}))
        lines += _broker_lines(record)
        lines += _unclean_lines(image, record, logs_of.pop(offset, None))
    return lines


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


def _unclean_lines(image: ClusterImage, record: MetadataRecord, decision: Decision | None) -> list[Effect]:
    """A leader from outside ISR and ELR: committed records may be lost, and nobody can tell (R34)."""
    if not isinstance(record, PartitionChangeRecord) or record.leader_recovery_state != RECOVERING:
        return []
    partition = image.partition_by_id(record.topic_id, record.partition_id)
    tp = str(partition.tp) if partition else f"{record.topic_id}-{record.partition_id}"
    fields: dict[str, Any] = {"tp": tp, "winner": record.leader}
    if decision is not None:
        ends = decision.ends
        fields["candidates"] = [end.broker for end in ends]
        fields["logs"] = {str(end.broker): [end.last_written_epoch, end.leo] for end in ends}
        fields["why"] = "the best log of all candidates leads: possible data loss"
        if decision.silent:
            fields["unheard"] = list(decision.silent)
            fields["why"] = "the best log of those that answered leads: possible data loss"
    else:
        fields["why"] = "elected uncleanly: possible data loss"
    return [Trace("recovery", fields, loud=True)]
