"""Trace lines of what the controller committed (docs/broker.md "Trace")."""

from __future__ import annotations

import json
from collections.abc import MutableMapping, Sequence
from typing import Any

from wrackline.broker.core.controller.metrics import is_unclean_election
from wrackline.broker.core.controller.unclean_recovery import DecidedBy, Decision
from wrackline.broker.core.quorum.log import Entry
from wrackline.broker.model.effects import Effect, Trace
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    encode,
)


def trace_committed(
    image: ClusterImage, entries: Sequence[Entry], decisions: MutableMapping[int, Decision]
) -> list[Effect]:
    """``image`` is that after all the entries. Records that change nothing leave no line. ``decisions``: of
    unclean elections, by offset; taken out once told."""
    lines: list[Effect] = []
    for offset, record in entries:
        if isinstance(record, NoOpRecord):
            continue
        lines.append(Trace("ctl_commit", {"offset": offset, "record": _fields(record)}))
        lines += _broker_lines(record)
        if is_unclean_election(record):
            decision = decisions.pop(offset, Decision(DecidedBy.SETTING))
            lines.append(_unclean_line(image, record, offset, decision))
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


def _unclean_line(
    image: ClusterImage, record: PartitionChangeRecord, offset: int, decision: Decision
) -> Trace:
    partition = image.partition_by_id(record.topic_id, record.partition_id)
    tp = str(partition.tp) if partition else f"{record.topic_id}-{record.partition_id}"
    fields: dict[str, Any] = {
        "tp": tp,
        "offset": offset,
        "winner": record.leader,
        "by": decision.by.value,
    }
    if decision.ends:
        fields["candidates"] = [end.broker for end in decision.ends]
        fields["logs"] = {str(end.broker): [end.last_written_epoch, end.leo] for end in decision.ends}
        fields["why"] = "the best log of all candidates leads: possible data loss"
        if decision.silent:
            fields["unheard"] = list(decision.silent)
            fields["why"] = "the best log of those that answered leads: possible data loss"
    elif decision.by is DecidedBy.NAMED:
        fields["why"] = "a person named the leader: possible data loss"
    else:
        fields["why"] = "elected uncleanly: possible data loss"
    return Trace("recovery", fields, loud=True)
