"""Replicas that may be elected beside the ISR, and those whose logs are compared when nobody is left: all
that writes the ELR and the LastKnownELR of a partition (docs/protocol.md 2.8.2, 2.9; KIP-966, cases A to G;
R13, R32).

The ELR are replicas outside the ISR that have everything committed: the high watermark stands still while the
ISR is below MinISR, so whoever left it then stays complete. The LastKnownELR are those that may have lost
records since. The ISR and the two are disjoint, and together they never shrink below MinISR (R32).

Each method answers with both sets. The record that writes them comes from ``record_of`` here, from
``broker/rules/leadership/election.py`` with a leader, or from ``broker/rules/placement/reassign.py`` with
other replicas.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.metadata.records import PartitionChangeRecord
from wrackline.broker.model.types import NO_LEADER, NodeId
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class ChangeInput:
    """The state that a change starts from."""

    partition: PartitionImage
    target_isr: tuple[NodeId, ...]
    min_isr: int
    """Effective: min(min.insync.replicas, replication factor)."""
    acceptable: frozenset[NodeId]
    """Registered, unfenced, not shutting down, not being removed; a broker being unfenced counts."""
    unclean: frozenset[NodeId] = frozenset()
    """Replicas that may have lost records in an unclean shutdown."""
    has_elr: bool = True
    """``Switches.has_elr``: without an ELR nobody outside the ISR is remembered."""
    unclean_election: bool = False
    recovery_state: int | None = None
    """As the leader reported it; None: unchanged."""


class Eligible(NamedTuple):
    """Both in the order of the partition's replicas."""

    elr: tuple[NodeId, ...]
    last_known_elr: tuple[NodeId, ...]


NOBODY = Eligible((), ())


class EligibleRules:
    """Profile kip966. ``ElectionRules`` has these too, since whom it elects depends on them."""

    def eligible(self, given: ChangeInput, isr: tuple[NodeId, ...]) -> Eligible:
        """ELR on fencing: who is eligible beside the new ``isr``, when a broker was fenced, shut down, lost
        its log or was unregistered, or when the leader changed its ISR. A fencing is carried out by
        ``broker/core/controller/decisions/partitions.py::remove_broker``, whose record comes from
        ``broker/rules/leadership/election.py::ElectionRules.change``.

        Below MinISR, whoever leaves the ISR goes to the ELR (cases A, C). Once the ISR is large enough nobody
        outside is known to be complete (D, F, G). Whoever may have lost records goes from the ELR to the
        LastKnownELR (R15).
        """
        if not given.has_elr or len(isr) >= given.min_isr:
            return NOBODY
        old = given.partition
        former = [b for b in old.replicas if b in old.elr or b in old.isr]
        outside = [b for b in former if b not in isr]
        elr = tuple(b for b in outside if b not in given.unclean)
        last_known = tuple(
            b
            for b in old.replicas
            if b not in isr and b not in elr and (b in old.last_known_elr or b in outside)
        )
        return Eligible(elr, last_known)

    def is_concerned(self, partition: PartitionImage, broker: NodeId, *, unclean: bool) -> bool:
        """Does the partition rest on this broker, which is leaving? By the ISR always; by the ELR when its
        log may be gone: after an unclean shutdown, or when it is unregistered for good."""
        return broker in partition.isr or (unclean and broker in partition.elr)

    def after_recovery(self, partition: PartitionImage, winner: NodeId) -> Eligible:
        """Beside a leader that an unclean recovery chose: the rest of the quorum is remembered until the ISR
        reaches MinISR (KIP-966's description, 5.3.1).

        The table of docs/protocol.md 2.9 clears it with the election, as Kafka does after an unclean one;
        then the winner alone would be the quorum for that time, and R32 would not hold.
        """
        former = (*partition.elr, *partition.last_known_elr)
        return Eligible((), tuple(b for b in partition.replicas if b in former and b != winner))

    def after_min_isr_change(self, partition: PartitionImage, min_isr: int) -> Eligible:
        """The ELR is empty: its members were complete by the old measure, and with a lower one the leader may
        commit without them (docs/protocol.md 2.8, config; B32, KAFKA-16540).

        Kafka forgets them altogether. Here, while the ISR is below the new MinISR, they stay candidates of
        balanced recovery, which compares logs before it believes anyone: the quorum that holds what is
        committed is not forgotten (R32).
        """
        if len(partition.isr) >= min_isr:
            return NOBODY
        known = {*partition.elr, *partition.last_known_elr}
        return Eligible((), tuple(b for b in partition.replicas if b in known))

    def reconsiders(self, partition: PartitionImage) -> bool:
        """Tells whether eligibility depended on a MinISR that has changed (KAFKA-16540, B32)."""
        return bool(partition.elr or partition.last_known_elr) or partition.leader == NO_LEADER

    def min_isr_changed(self, partition: PartitionImage, min_isr: int) -> PartitionChangeRecord:
        """Always a record: with it the partition epoch goes up, so an ISR proposal of a leader that has yet
        to hear of the new MinISR is refused, and leader and controller count by the same one."""
        standing = Eligible(partition.elr, partition.last_known_elr)
        if self.reconsiders(partition):
            standing = self.after_min_isr_change(partition, min_isr)
        return record_of(partition, standing)

    def within(self, partition: PartitionImage, replicas: Collection[NodeId]) -> Eligible:
        """Returns what a reassignment leaves of both sets: a removed replica deletes its log."""
        return Eligible(
            tuple(b for b in partition.elr if b in replicas),
            tuple(b for b in partition.last_known_elr if b in replicas),
        )


def record_of(partition: PartitionImage, standing: Eligible) -> PartitionChangeRecord:
    """The record that writes both sets and nothing else."""
    return PartitionChangeRecord(
        partition_id=partition.tp.partition,
        topic_id=partition.topic_id,
        elr=if_new(standing.elr, partition.elr),
        last_known_elr=if_new(standing.last_known_elr, partition.last_known_elr),
    )


def if_new(wanted: tuple[NodeId, ...], known: tuple[NodeId, ...]) -> tuple[NodeId, ...] | None:
    """Returns None for an unchanged set: the order of its members means nothing."""
    return None if set(wanted) == set(known) else wanted
