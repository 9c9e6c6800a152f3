"""Elections that someone asks for: ElectLeaders, and the controller itself from time to time (protocol.md 2.16)."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from broker.core.admin_messages import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionOutcome,
)
from broker.core.controller_draft import Draft
from broker.core.controller_partitions import change
from broker.core.image import PartitionImage
from broker.core.types import NO_LEADER, TopicPartition


def elect_leaders(draft: Draft, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """For all partitions: only those are told of where there was something to do."""
    if request.election not in tuple(ElectionType):
        return ElectLeadersResponse(error=ErrorCode.invalid_request)
    elect = _prefer if request.election == ElectionType.PREFERRED else _elect_uncleanly
    if request.partitions is None:
        every = [elect(draft, partition.tp) for partition in list(draft.image.partitions())]
        told = (one for one in every if one.error is not ErrorCode.election_not_needed)
    else:
        told = (elect(draft, tp) for tp in dict.fromkeys(request.partitions))
    return ElectLeadersResponse(tuple(told))


def _prefer(draft: Draft, tp: TopicPartition) -> PartitionOutcome:
    partition = draft.image.partition(tp)
    if partition is None:
        return _unknown(tp)
    rules = draft.rules.rebalance
    preferred = rules.preferred(partition)
    if partition.leader == preferred:
        return PartitionOutcome(tp, ErrorCode.election_not_needed, f"broker {preferred} leads already")
    if not rules.may_prefer(partition, draft.active_brokers()):
        why = f"broker {preferred} is fenced or not in the ISR {sorted(partition.isr)}"
        return PartitionOutcome(tp, ErrorCode.preferred_leader_not_available, why)
    draft.add(rules.prefer(partition))
    return PartitionOutcome(tp)


def _elect_uncleanly(draft: Draft, tp: TopicPartition) -> PartitionOutcome:
    """An operator's decision: first whoever may lead without loss, else the first live replica."""
    partition = draft.image.partition(tp)
    if partition is None:
        return _unknown(tp)
    if partition.leader != NO_LEADER:
        return PartitionOutcome(tp, ErrorCode.election_not_needed, f"broker {partition.leader} leads")
    after = change(draft, partition, partition.isr, draft.active_brokers(), unclean_election=True)
    if after.leader == NO_LEADER:
        why = f"no replica of {sorted(partition.replicas)} is live"
        return PartitionOutcome(tp, ErrorCode.eligible_leaders_not_available, why)
    return PartitionOutcome(tp)


def _unknown(tp: TopicPartition) -> PartitionOutcome:
    return PartitionOutcome(tp, ErrorCode.unknown_topic_or_partition, f"there is no partition {tp}")


def rebalance(draft: Draft) -> tuple[PartitionImage, ...]:
    """Give leaderships back to the brokers that miss too many of theirs; the partitions as they were."""
    rules = draft.rules.rebalance
    percent = draft.config.leader_imbalance_per_broker_percent
    chosen = rules.to_rebalance(draft.image.partitions(), draft.active_brokers(), percent)
    for partition in chosen:
        draft.add(rules.prefer(partition))
    return chosen
