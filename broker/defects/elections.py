"""Defects of the controller's elections and of the ELR (docs/protocol.md 4.2)."""

from __future__ import annotations

from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER, NodeId
from wrackline.broker.rules.leadership.election import Elected, ElectionRules, Recovery
from wrackline.broker.rules.leadership.eligible import ChangeInput, Eligible, EligibleRules


class ElrNotCleared(EligibleRules):
    """``elr_not_cleared``: B30, B31. Who left the ISR stays eligible although the ISR has MinISR members.

    Those members commit without it (cases D, F, G of KIP-966). No release had it.
    """

    def eligible(self, given: ChangeInput, isr: tuple[NodeId, ...]) -> Eligible:
        standing = super().eligible(given, isr)
        if len(isr) < given.min_isr:
            return standing
        old = given.partition
        elr = (b for b in old.replicas if b in old.elr or b in old.isr)
        return Eligible(tuple(b for b in elr if b not in isr and b not in given.unclean), ())


class ElrKeptOnConfig(EligibleRules):
    """``elr_kept_on_config``: B32, KAFKA-16540. MinISR changes and the ELR stays as it was.

    With a smaller MinISR the leader commits without the members of the ELR. Fixed in 4.0.
    """

    def reconsiders(self, partition: PartitionImage) -> bool:
        return partition.leader == NO_LEADER


class LastKnownLeader(ElectionRules):
    """``last_known_leader``: B59, C13. Without ISR and ELR the last leader is elected as soon as it is back.

    What Kafka 4.0 ships instead of inspecting logs (``useLastKnownLeaderInBalancedRecovery``): the leader may
    be the one that lost its log while another candidate has everything.
    """

    def eligible(self, given: ChangeInput, isr: tuple[NodeId, ...]) -> Eligible:
        """The LastKnownELR is one broker: who led when the ISR became empty."""
        standing, old = super().eligible(given, isr), given.partition
        if isr:
            return standing
        return Eligible(standing.elr, old.last_known_elr[:1] if old.leader == NO_LEADER else (old.leader,))

    def elect_uncleanly(self, given: ChangeInput) -> Elected:
        elected = super().elect_uncleanly(given)
        old = given.partition
        if elected.leader != NO_LEADER or given.target_isr or old.isr or old.elr:
            return elected
        for last in old.last_known_elr[:1]:
            if self.may_lead(last, given):
                return Elected(last, (last,), possible_loss=True)
        return elected

    def may_lead(self, last: NodeId, given: ChangeInput) -> bool:
        return last in given.acceptable

    def recovery(self, partition: PartitionImage, acceptable: frozenset[NodeId]) -> Recovery | None:  # noqa: ARG002
        return None


class LastKnownLeaderDead(LastKnownLeader, ElectionRules):
    """``lke_no_liveness``: B33, KAFKA-19522. The last known leader is elected also while it is fenced.

    The test of its life wrote a log line and went on. Fixed in 4.1 (July 2025).
    """

    def may_lead(self, last: NodeId, given: ChangeInput) -> bool:  # noqa: ARG002
        return True
