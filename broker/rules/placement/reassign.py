"""Moving a partition to other replicas (docs/protocol.md 2.8.1, 2.10, C11; KIP-455).

Grow, catch up, shrink: the replicas of the target are added to those there are; each joins the ISR by the
leader's ordinary AlterPartition; when enough of them are in it, the ones to be removed go in one record,
which starts a new leader epoch. A reassignment by itself never takes the ISR below MinISR and never adds to
it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from wrackline.broker.model.metadata.image import PartitionImage, changed
from wrackline.broker.model.metadata.records import LEADER_UNCHANGED, PartitionChangeRecord
from wrackline.broker.model.types import NodeId, ReassignRule
from wrackline.broker.model.values import dataclass
from wrackline.broker.rules.leadership.election import ElectionRules
from wrackline.broker.rules.leadership.eligible import ChangeInput, if_new


@dataclass(frozen=True, slots=True)
class Assignment:
    """The three lists of a partition's registration that a reassignment changes."""

    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()

    @classmethod
    def of(cls, partition: PartitionImage) -> Assignment:
        return cls(partition.replicas, partition.adding, partition.removing)

    @property
    def moves(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[NodeId, ...]:
        return tuple(b for b in self.replicas if b not in self.removing)

    @property
    def original(self) -> tuple[NodeId, ...]:
        """Returns the replicas as they were before, but for the order."""
        return tuple(b for b in self.replicas if b not in self.adding)

    @property
    def factor(self) -> int:
        """The replication factor MinISR is measured by: who is still being added does not count yet."""
        return len(self.replicas) - len(self.adding)


class ReassignRules:
    """Profile kip966."""

    def begin(self, partition: PartitionImage, target: tuple[NodeId, ...]) -> Assignment:
        """Grown towards ``target``. A reassignment that is under way is replaced: what it had added and is
        not wanted now goes again, and cancelling still leads back to the first replicas (KIP-455)."""
        original = Assignment.of(partition).original
        adding = tuple(b for b in target if b not in original)
        removing = tuple(b for b in original if b not in target)
        return Assignment(target + removing, adding, removing)

    def cancel(self, partition: PartitionImage) -> Assignment:
        return Assignment(Assignment.of(partition).original)

    def finish(self, assignment: Assignment) -> Assignment:
        return Assignment(assignment.target)

    def may_leave(
        self, partition: PartitionImage, leaving: Collection[NodeId], min_isr: int, unclean_election: bool
    ) -> bool:
        """May replicas that were being added go again? Not when what is committed may rest on them, unless
        the topic takes losses (docs/protocol.md 2.10)."""
        counted = {*partition.isr, *partition.elr, *partition.last_known_elr}
        kept = [b for b in partition.isr if b not in leaving]
        return unclean_election or len(kept) >= min_isr or counted.isdisjoint(leaving)

    def acceptable(
        self, partition: PartitionImage, isr: Collection[NodeId], acceptable: frozenset[NodeId]
    ) -> frozenset[NodeId]:
        """Returns the replicas that may lead while others are being added: one that was never in sync may
        have next to nothing, and only an unclean election could choose it. It is chosen when nobody else is
        left."""
        known = {*isr, *partition.isr, *partition.elr, *partition.last_known_elr}
        sound = acceptable - (set(partition.adding) - known)
        return sound if sound.intersection(partition.replicas) else acceptable

    def completes(
        self, rule: ReassignRule, assignment: Assignment, isr: Collection[NodeId], min_isr: int
    ) -> bool:
        """Tells whether the reassignment is at its end with this ISR (C11). ``min_isr``: effective for the
        target."""
        if not assignment.moves:
            return False
        final = [b for b in isr if b in assignment.target]
        match rule:
            case ReassignRule.D4:
                return set(assignment.adding) <= set(isr) and self.has_min_isr(final, min_isr)
            case ReassignRule.ALL_TARGETS:
                return set(assignment.target) <= set(isr)
            case ReassignRule.ADDING_ONLY:
                return set(assignment.adding) <= set(isr) and bool(final)

    def has_min_isr(self, final_isr: Collection[NodeId], min_isr: int) -> bool:
        """Tells whether what was committed by MinISR replicas stays so on those that remain (B36,
        KAFKA-15665)."""
        return bool(final_isr) and len(final_isr) >= min_isr

    def ends_leader_epoch(self, old: Assignment, new: Assignment) -> bool:
        """A new leader epoch, even under the same leader, when a replica leaves the set or a reassignment is
        complete: no fetch of a removed replica counts after it (docs/protocol.md 2.8.5)."""
        return not set(old.replicas) <= set(new.replicas) or (old.moves and not new.moves)

    def change(
        self, election: ElectionRules, given: ChangeInput, to: Assignment
    ) -> PartitionChangeRecord | None:
        """The record that takes the partition to this assignment, and to ``given``'s ISR as far as it is in
        it: ISR, ELR and LastKnownELR restricted, the leader kept if it may stay, all in one."""
        old = given.partition
        left = election.within(old, to.replicas)
        staged = replace(
            old,
            replicas=to.replicas,
            adding=to.adding,
            removing=to.removing,
            elr=left.elr,
            last_known_elr=left.last_known_elr,
        )
        isr = tuple(b for b in given.target_isr if b in to.replicas)
        decided = election.change(replace(given, partition=staged, target_isr=isr))
        after = staged if decided is None else changed(staged, decided)
        leads = after.leader != old.leader or (decided is not None and decided.leader != LEADER_UNCHANGED)
        leads = leads or self.ends_leader_epoch(Assignment.of(old), to)
        record = PartitionChangeRecord(
            partition_id=old.tp.partition,
            topic_id=old.topic_id,
            isr=if_new(after.isr, old.isr),
            leader=after.leader if leads else LEADER_UNCHANGED,
            replicas=None if to.replicas == old.replicas else to.replicas,
            adding_replicas=if_new(to.adding, old.adding),
            removing_replicas=if_new(to.removing, old.removing),
            elr=if_new(after.elr, old.elr),
            last_known_elr=if_new(after.last_known_elr, old.last_known_elr),
            leader_recovery_state=None if decided is None else decided.leader_recovery_state,
        )
        nothing = PartitionChangeRecord(partition_id=old.tp.partition, topic_id=old.topic_id)
        return None if record == nothing else record
