"""Elections that someone asks for: ElectLeaders, and the controller itself from time to time
(docs/protocol.md 2.16)."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.model.messages.admin import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionOutcome,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import TopicPartition


def elect_leaders(draft: Draft, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Preferred leaders (the other kinds are in forced_elections.py). A request for all partitions is
    answered with those for which there was something to do."""
    if request.partitions is None:
        every = [_prefer(draft, partition.tp) for partition in list(draft.image.partitions())]
        results = (one for one in every if one.error is not ErrorCode.election_not_needed)
    else:
        results = (_prefer(draft, tp) for tp in dict.fromkeys(request.partitions))
    return ElectLeadersResponse(tuple(results))


def _prefer(draft: Draft, tp: TopicPartition) -> PartitionOutcome:
    partition = draft.image.partition(tp)
    if partition is None:
        return unknown(tp)
    rules = draft.rules.rebalance
    preferred = rules.preferred(partition)
    if partition.leader == preferred:
        return PartitionOutcome(tp, ErrorCode.election_not_needed, f"broker {preferred} leads already")
    if not rules.may_prefer(partition, draft.active_brokers()):
        why = f"broker {preferred} is fenced or not in the ISR {sorted(partition.isr)}"
        return PartitionOutcome(tp, ErrorCode.preferred_leader_not_available, why)
    draft.add(rules.prefer(partition))
    return PartitionOutcome(tp)


def unknown(tp: TopicPartition) -> PartitionOutcome:
    return PartitionOutcome(tp, ErrorCode.unknown_topic_or_partition, f"there is no partition {tp}")


def rebalance(draft: Draft) -> tuple[PartitionImage, ...]:
    """Give leaderships back to the brokers that miss too many of theirs; the partitions as they were."""
    rules = draft.rules.rebalance
    percent = draft.config.leader_imbalance_per_broker_percent
    chosen = rules.to_rebalance(draft.image.partitions(), draft.active_brokers(), percent)
    for partition in chosen:
        draft.add(rules.prefer(partition))
    return chosen
