"""Partition changes of the controller: fencing, unfencing, AlterPartition (docs/protocol.md 2.6-2.8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.model.messages.controller import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.eligible import ChangeInput
from wrackline.broker.rules.placement.reassign import Assignment

_NOBODY: frozenset[NodeId] = frozenset()


def remove_broker(
    draft: Draft,
    broker: NodeId,
    *,
    unclean: bool = False,
    partitions: Iterable[PartitionImage] | None = None,
) -> None:
    """Take a broker out of leadership and ISR everywhere (K36, K41), after an unclean shutdown out of the ELR
    too (R15, KAFKA-18106). ``partitions``: as they are, unless told otherwise."""
    acceptable = draft.active_brokers() - {broker}
    lost = frozenset({broker}) if unclean else _NOBODY
    for partition in list(draft.image.partitions() if partitions is None else partitions):
        if not draft.rules.election.is_concerned(partition, broker, unclean=unclean):
            continue
        isr = tuple(member for member in partition.isr if member != broker)
        change(draft, partition, isr, acceptable, unclean=lost)


def elect_leaderless(draft: Draft, broker: NodeId) -> None:
    """``broker`` was just unfenced: elections where there is no leader and it is a replica (K35)."""
    acceptable = draft.active_brokers()
    for partition in list(draft.image.partitions()):
        if partition.leader == NO_LEADER and broker in partition.replicas:
            change(draft, partition, partition.isr, acceptable)


def reconsider(draft: Draft) -> None:
    """MinISR may have changed: rebuild what depends on it (KAFKA-16540, B32)."""
    acceptable = draft.active_brokers()
    for partition in list(draft.image.partitions()):
        if draft.rules.election.reconsiders(partition):
            change(draft, partition, partition.isr, acceptable)


def takes_losses(draft: Draft, tp: TopicPartition) -> bool:
    return draft.image.setting(tp.topic, "unclean.leader.election.enable") == "true"


def led_by(draft: Draft, broker: NodeId) -> Iterator[PartitionImage]:
    return (partition for partition in draft.image.partitions() if partition.leader == broker)


def alter_partition(draft: Draft, request: AlterPartitionRequest) -> AlterPartitionResponse:
    sender = draft.image.brokers.get(request.broker_id)
    if not draft.rules.registration.has_right_epoch(sender, request.broker_epoch):
        return AlterPartitionResponse(ErrorCode.stale_broker_epoch)
    results = tuple(_alter_one(draft, request.broker_id, item) for item in request.partitions)
    return AlterPartitionResponse(partitions=results)


def _alter_one(draft: Draft, sender: NodeId, item: AlterPartitionItem) -> AlterPartitionResult:
    partition = draft.image.partition_by_id(item.topic_id, item.tp.partition)
    if partition is None:
        known = item.topic_id in draft.image.topics_by_id
        error = ErrorCode.unknown_topic_or_partition if known else ErrorCode.unknown_topic_id
        return AlterPartitionResult(item.tp, item.topic_id, error)
    error = draft.rules.isr_change.verdict(sender, item, partition, draft.image.brokers)
    if error is not NO_ERROR:
        return AlterPartitionResult(partition.tp, item.topic_id, error)
    isr = tuple(member for member, _ in item.isr)
    after = change(draft, partition, isr, draft.active_brokers(), recovery_state=item.leader_recovery_state)
    if after.leader != sender:
        return AlterPartitionResult(partition.tp, item.topic_id, ErrorCode.new_leader_elected)
    return AlterPartitionResult(
        partition.tp,
        item.topic_id,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        partition_epoch=after.partition_epoch,
        leader_recovery_state=after.leader_recovery_state,
    )


def change(
    draft: Draft,
    partition: PartitionImage,
    isr: tuple[NodeId, ...],
    acceptable: frozenset[NodeId],
    *,
    unclean: frozenset[NodeId] = _NOBODY,
    recovery_state: int | None = None,
    assignment: Assignment | None = None,
    unclean_election: bool = False,
) -> PartitionImage:
    """Add the record that takes the partition to this ISR (and assignment), if one is needed; the partition
    as it is then. A reassignment that the ISR makes complete is completed in the same record
    (docs/protocol.md 2.8.1)."""
    image, tp, rules = draft.image, partition.tp, draft.rules
    now = Assignment.of(partition)
    to = assignment or now
    remaining = tuple(member for member in isr if member in to.replicas)
    final_min_isr = image.min_isr_of(tp, len(to.target))
    if rules.reassign.completes(draft.config.reassign_rule, to, remaining, final_min_isr):
        to = rules.reassign.finish(to)
    given = ChangeInput(
        partition=partition,
        target_isr=isr,
        min_isr=image.min_isr_of(tp, to.factor),
        acceptable=rules.reassign.acceptable(partition, isr, acceptable),
        unclean=unclean,
        has_elr=rules.switches.has_elr,
        unclean_election=unclean_election or takes_losses(draft, tp),
        recovery_state=recovery_state,
    )
    stays = to == now
    record = rules.election.change(given) if stays else rules.reassign.change(rules.election, given, to)
    if record is not None:
        draft.add(record)
    after = image.partition(tp)
    assert after is not None, f"{tp} vanished by a partition change"
    return after
