"""The leader and the ISR after a change (docs/protocol.md 2.8.3 to 2.9; KIP-966; cases A-G).

Pure: a partition and what is asked of it go in, one PartitionChangeRecord (or none) comes out.
"""

from __future__ import annotations

from typing import NamedTuple

from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.metadata.records import LEADER_UNCHANGED, PartitionChangeRecord
from wrackline.broker.model.types import NO_LEADER, NodeId
from wrackline.broker.rules.leadership.eligible import NOBODY, ChangeInput, EligibleRules, if_new

RECOVERED = 0
RECOVERING = 1


class Elected(NamedTuple):
    leader: NodeId
    isr: tuple[NodeId, ...]
    possible_loss: bool = False
    """Not from ISR or ELR: committed records may be gone (R34)."""


class Recovery(NamedTuple):
    """The logs that would be compared for a partition that nobody in ISR and ELR can lead (R27, R28)."""

    candidates: tuple[NodeId, ...]
    missing: tuple[NodeId, ...]
    """Candidates that must come back first."""

    @property
    def ready(self) -> bool:
        """Everyone is there."""
        return bool(self.candidates) and not self.missing

    @property
    def possible(self) -> bool:
        """Somebody is there."""
        return len(self.missing) < len(self.candidates)


class ElectionRules(EligibleRules):
    """Profile kip966. Who is eligible is in ``broker/rules/leadership/eligible.py``."""

    def elect(self, given: ChangeInput) -> Elected:
        """The leader, from the ISR, else the ELR, else uncleanly where that is allowed
        (docs/protocol.md 2.8.3, case B)."""
        old, isr, able = given.partition, given.target_isr, given.acceptable
        if old.leader in isr and old.leader in able:
            return Elected(old.leader, isr)
        for replica in old.replicas:
            if replica in isr and replica in able:
                return Elected(replica, isr)
        standing = self.eligible(given, isr)
        if not isr:
            for replica in old.replicas:
                if replica in standing.elr and replica in able:
                    return Elected(replica, (replica,))
        return self.elect_uncleanly(given)

    def elect_uncleanly(self, given: ChangeInput) -> Elected:
        """Beyond ISR and ELR: any live replica if the topic says so, else none; see ``recovery``."""
        if given.unclean_election:
            for replica in given.partition.replicas:
                if replica in given.acceptable:
                    return Elected(replica, (replica,), possible_loss=True)
        return Elected(NO_LEADER, given.target_isr)

    def recovery(self, partition: PartitionImage, acceptable: frozenset[NodeId]) -> Recovery | None:
        """Balanced recovery's view (2.9, C3, C7), None where a clean election is still possible."""
        if partition.leader != NO_LEADER or partition.isr or partition.elr:
            return None
        missing = tuple(b for b in partition.last_known_elr if b not in acceptable)
        return Recovery(partition.last_known_elr, missing)

    def proactive_recovery(self, partition: PartitionImage, acceptable: frozenset[NodeId]) -> Recovery | None:
        """Proactive recovery's view (docs/protocol.md 2.9): every replica, though an ELR member that is away
        has everything. None where a clean election is possible."""
        if partition.leader != NO_LEADER or acceptable.intersection((*partition.isr, *partition.elr)):
            return None
        return Recovery(partition.replicas, tuple(b for b in partition.replicas if b not in acceptable))

    def recovered(self, partition: PartitionImage, winner: NodeId) -> PartitionChangeRecord:
        """The end of an unclean recovery: the best log leads, alone (docs/protocol.md 2.9)."""
        standing = self.after_recovery(partition, winner)
        return PartitionChangeRecord(
            partition_id=partition.tp.partition,
            topic_id=partition.topic_id,
            isr=(winner,),
            leader=winner,
            elr=if_new(standing.elr, partition.elr),
            last_known_elr=if_new(standing.last_known_elr, partition.last_known_elr),
            leader_recovery_state=RECOVERING,
        )

    def change(self, given: ChangeInput) -> PartitionChangeRecord | None:
        """The record that makes it so, None when nothing changes (docs/protocol.md 2.8.5, 2.8.6)."""
        old = given.partition
        elected = self.elect(given)
        if elected.possible_loss:
            standing, state = NOBODY, RECOVERING
        else:
            standing = self.eligible(given, elected.isr)
            state = old.leader_recovery_state if given.recovery_state is None else given.recovery_state
        record = PartitionChangeRecord(
            partition_id=old.tp.partition,
            topic_id=old.topic_id,
            isr=if_new(elected.isr, old.isr),
            leader=LEADER_UNCHANGED if elected.leader == old.leader else elected.leader,
            elr=if_new(standing.elr, old.elr),
            last_known_elr=if_new(standing.last_known_elr, old.last_known_elr),
            leader_recovery_state=(
                None if state == old.leader_recovery_state and not elected.possible_loss else state
            ),
        )
        nothing = PartitionChangeRecord(partition_id=old.tp.partition, topic_id=old.topic_id)
        return None if record == nothing else record
