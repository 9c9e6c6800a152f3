"""Reassignments at the controller: start, replace, cancel, list
(docs/protocol.md 2.10; AlterPartitionReassignments).

Catching up is the leader's business and completing happens with whatever change of the partition makes it
possible: ``controller_partitions.change`` looks.
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.partitions import change, takes_losses
from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    PartitionOutcome,
    Reassignment,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.placement.reassign import Assignment


def alter_reassignments(
    draft: Draft, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Each partition of its own; the last word counts where one is named twice."""
    expected = {item.tp: item for item in request.partitions}
    return AlterPartitionReassignmentsResponse(tuple(_alter(draft, item) for item in expected.values()))


def _alter(draft: Draft, wanted: Reassignment) -> PartitionOutcome:
    tp, target = wanted
    partition = draft.image.partition(tp)
    if partition is None:
        return PartitionOutcome(tp, ErrorCode.unknown_topic_or_partition, f"there is no partition {tp}")
    rules = draft.rules.reassign
    if target is None:
        if not Assignment.of(partition).moves:
            return PartitionOutcome(tp, ErrorCode.no_reassignment_in_progress, "nothing to cancel")
        return _enter(draft, partition, rules.cancel(partition))
    if problem := _target_error(draft, target):
        return PartitionOutcome(tp, ErrorCode.invalid_replica_assignment, problem)
    return _enter(draft, partition, rules.begin(partition, target))


def _target_error(draft: Draft, target: tuple[NodeId, ...]) -> str | None:
    if not target:
        return "a partition needs at least one replica"
    if len(set(target)) != len(target):
        return f"replicas {list(target)}: a broker is named twice"
    if unknown := sorted(set(target) - set(draft.image.brokers)):
        return f"brokers {unknown} are not registered"
    return None


def _enter(draft: Draft, partition: PartitionImage, to: Assignment) -> PartitionOutcome:
    """Checked first: a draft is never taken back."""
    tp, image = partition.tp, draft.image
    leaving = set(partition.replicas) - set(to.replicas)
    min_isr = image.min_isr_of(tp, to.factor)
    if not draft.rules.reassign.may_leave(partition, leaving, min_isr, takes_losses(draft, tp)):
        kept = [b for b in partition.isr if b not in leaving]
        return PartitionOutcome(
            tp,
            ErrorCode.invalid_replica_assignment,
            f"without {sorted(leaving)} the ISR would be {kept}, below min.insync.replicas {min_isr}; "
            "wait until more of the first replicas are in sync",
        )
    change(draft, partition, partition.isr, draft.active_brokers(), assignment=to)
    return PartitionOutcome(tp)


def list_reassignments(
    draft: Draft, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if request.partitions is None:
        asked = list(draft.image.partitions())
    else:
        known = (draft.image.partition(tp) for tp in dict.fromkeys(request.partitions))
        asked = [partition for partition in known if partition is not None]
    return ListPartitionReassignmentsResponse(
        tuple(
            OngoingReassignment(p.tp, p.replicas, p.adding, p.removing)
            for p in asked
            if Assignment.of(p).moves
        )
    )
