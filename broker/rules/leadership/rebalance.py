"""Leadership back to the preferred replicas (docs/protocol.md 2.16; ElectLeaders, key 43)."""

from __future__ import annotations

from collections.abc import Iterable

from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.metadata.records import PartitionChangeRecord
from wrackline.broker.model.types import NodeId


class RebalanceRules:
    def preferred(self, partition: PartitionImage) -> NodeId:
        return partition.replicas[0]

    def may_prefer(self, partition: PartitionImage, active: frozenset[NodeId]) -> bool:
        """Tells whether the preferred replica may lead: it is in the ISR and unfenced."""
        return self.preferred(partition) in partition.isr and self.preferred(partition) in active

    def prefer(self, partition: PartitionImage) -> PartitionChangeRecord:
        return PartitionChangeRecord(
            partition_id=partition.tp.partition,
            topic_id=partition.topic_id,
            leader=self.preferred(partition),
        )

    def to_rebalance(
        self, partitions: Iterable[PartitionImage], active: frozenset[NodeId], percent: int
    ) -> tuple[PartitionImage, ...]:
        """Returns the partitions that brokers could lead now, of every broker that does not lead more than
        ``percent`` of the partitions that prefer it (Kafka's ``leader.imbalance.per.broker.percentage``)."""
        preferring: dict[NodeId, list[PartitionImage]] = {}
        for partition in partitions:
            preferring.setdefault(self.preferred(partition), []).append(partition)
        chosen = []
        for broker, mine in preferring.items():
            elsewhere = [partition for partition in mine if partition.leader != broker]
            if len(elsewhere) * 100 > percent * len(mine):
                chosen += [partition for partition in elsewhere if self.may_prefer(partition, active)]
        return tuple(chosen)
