"""May a leader change the ISR like this? The controller's tests of an AlterPartition
(docs/protocol.md 2.6, K42, K43)."""

from __future__ import annotations

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from broker.core.image import BrokerImage, PartitionImage
from broker.core.messages import AlterPartitionItem
from broker.core.types import NodeId
from broker.rules.election import RECOVERED, RECOVERING


class IsrChangeRules:
    """Each test answers whether it fails; ``verdict`` runs them in the order of the table."""

    def verdict(
        self,
        sender: NodeId,
        item: AlterPartitionItem,
        partition: PartitionImage,
        brokers: Mapping[NodeId, BrokerImage],
    ) -> ErrorCode:
        if self.from_the_future(item, partition):
            return ErrorCode.not_controller
        if item.leader_epoch < partition.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        if sender != partition.leader:
            return ErrorCode.invalid_request
        if self.is_outdated(item, partition):
            return ErrorCode.invalid_update_version
        if self.is_malformed(item, partition):
            return ErrorCode.invalid_request
        if self.ineligible(item, brokers):
            return ErrorCode.ineligible_replica
        return ErrorCode.none

    def from_the_future(self, item: AlterPartitionItem, partition: PartitionImage) -> bool:
        """The leader knows more than this controller, which must be a zombie (KAFKA-14154)."""
        return item.leader_epoch > partition.leader_epoch or item.partition_epoch > partition.partition_epoch

    def is_outdated(self, item: AlterPartitionItem, partition: PartitionImage) -> bool:
        """Built on a partition that has changed since (K38, B22)."""
        return item.partition_epoch < partition.partition_epoch

    def is_malformed(self, item: AlterPartitionItem, partition: PartitionImage) -> bool:
        isr = [broker for broker, _ in item.isr]
        recovering = item.leader_recovery_state == RECOVERING
        return (
            len(set(isr)) != len(isr)
            or not set(isr) <= set(partition.replicas)
            or partition.leader not in isr
            or item.leader_recovery_state not in (RECOVERED, RECOVERING)
            or (recovering and len(isr) > 1)
            or (recovering and partition.leader_recovery_state == RECOVERED)
        )

    def ineligible(
        self, item: AlterPartitionItem, brokers: Mapping[NodeId, BrokerImage]
    ) -> tuple[NodeId, ...]:
        """Proposed members that may not be in an ISR now (KIP-841, KIP-903)."""
        return tuple(
            broker
            for broker, epoch in item.isr
            if not self.is_active(brokers.get(broker)) or not self.has_epoch(brokers[broker], epoch)
        )

    def is_active(self, broker: BrokerImage | None) -> bool:
        """Registered, unfenced, not shutting down (B20)."""
        return broker is not None and broker.active

    def has_epoch(self, broker: BrokerImage, epoch: int) -> bool:
        """The fetches that proved it in sync came from its present uptime (B19); -1: not told."""
        return epoch in (-1, broker.epoch)
