"""What a changed MinISR does to ELR and LastKnownELR (docs/protocol.md 2.8, config; B32; KAFKA-16540)."""

from __future__ import annotations

from broker.core.image import PartitionImage
from broker.core.records import PartitionChangeRecord
from broker.rules.election import Eligible, _if_new


class SettingsRules:
    """Profile kip966."""

    def after_min_isr_change(self, partition: PartitionImage, min_isr: int) -> Eligible:
        """The ELR is empty: its members were complete by the old measure, and with a lower one the leader may
        commit without them.

        Kafka forgets them altogether. Here, while the ISR is below the new MinISR, they stay candidates of
        balanced recovery, which compares logs before it believes anyone: the quorum that holds what is
        committed is not forgotten (R32).
        """
        if len(partition.isr) >= min_isr:
            return Eligible((), ())
        known = {*partition.elr, *partition.last_known_elr}
        return Eligible((), tuple(b for b in partition.replicas if b in known))

    def change(self, partition: PartitionImage, min_isr: int, *, rebuilds: bool) -> PartitionChangeRecord:
        """Always a record: with it the partition epoch goes up, so an ISR proposal of a leader that has yet to
        hear of the new MinISR is refused, and leader and controller count by the same one."""
        standing = Eligible(partition.elr, partition.last_known_elr)
        if rebuilds:
            standing = self.after_min_isr_change(partition, min_isr)
        return PartitionChangeRecord(
            partition_id=partition.tp.partition,
            topic_id=partition.topic_id,
            elr=_if_new(standing.elr, partition.elr),
            last_known_elr=_if_new(standing.last_known_elr, partition.last_known_elr),
        )
