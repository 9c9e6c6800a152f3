"""Members of the ISR, and the meaning of an unanswered proposal (docs/protocol.md 2.5, 2.6, K38-K46).

The leader decides whom to propose (``IsrRules``), the controller whether it takes the proposal
(``IsrChangeRules``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.controller import AlterPartitionItem
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage
from wrackline.broker.model.types import NO_EPOCH, NodeId
from wrackline.broker.model.values import dataclass
from wrackline.broker.rules.leadership.election import RECOVERED, RECOVERING


class AfterAlter(Enum):
    """The leader's decision on its pending proposal when the controller has refused it (docs/protocol.md
    2.6)."""

    ROLL_BACK = "roll back"
    RETRY = "retry"
    WAIT = "wait"
    """Stay pending, with the wide maximal ISR, until metadata with a higher partition epoch comes."""


@dataclass(frozen=True, slots=True)
class LagFacts:
    leo: int
    leader_leo: int
    last_caught_up_ms: float
    now_ms: float
    lag_max_ms: float


@dataclass(frozen=True, slots=True)
class JoinFacts:
    """One follower fetch, as seen by the leader that wonders whether to propose the follower for the ISR.

    One snapshot for the check and for the epoch put into the proposal (KAFKA-15221).
    """

    leo: int
    high_watermark: int
    leso: int
    fetched_in_epoch: int
    leader_epoch: int
    broker_epoch: int
    registered_epoch: int
    """-1 when the metadata knows no such broker."""
    active: bool
    """Neither fenced nor shutting down, by the leader's metadata."""
    lag: LagFacts
    """How far behind the leader's log it is, and since when."""


class IsrRules:
    """Rules of the ISR at the leader."""

    def maximal(self, committed: frozenset[NodeId], proposed: frozenset[NodeId]) -> frozenset[NodeId]:
        """Returns the union of the committed and the proposed ISR: while a proposal is in flight either may
        be the true one (KIP-497, K44)."""
        return committed | proposed

    def may_join(self, facts: JoinFacts) -> bool:
        """ISR join: has the follower all that may be committed (K40), would it stay (K39), and is it this
        life of a broker that may be in an ISR (KIP-841, KIP-903)? If so,
        ``broker/core/replication/leader.py::_expand`` proposes it to the controller and counts it at once;
        until the controller agrees it is in the maximal ISR alone."""
        return (
            self.has_committed(facts)
            and self.has_former_terms(facts)
            and self.is_recent(facts)
            and facts.fetched_in_epoch == facts.leader_epoch
            and facts.active
            and facts.broker_epoch != NO_EPOCH
            and facts.broker_epoch == facts.registered_epoch
        )

    def has_committed(self, facts: JoinFacts) -> bool:
        """Tells whether a follower has everything this leader knows to be committed (B16)."""
        return facts.leo >= facts.high_watermark

    def has_former_terms(self, facts: JoinFacts) -> bool:
        """Tells whether a follower has everything former leaders may have committed: up to the end of log at
        election (B15, KAFKA-7128)."""
        return facts.leo >= facts.leso

    def is_recent(self, facts: JoinFacts) -> bool:
        """Tells whether a follower would not be dropped again at once for its lag. While the ISR is below
        MinISR the high watermark stands still, so a follower far behind the leader's log reaches it (B45)."""
        return not self.lags(facts.lag)

    def lags(self, facts: LagFacts) -> bool:
        """H08, K39: neither at the end of the leader's log nor recently so. Silence alone is no lag (C16)."""
        return facts.leo != facts.leader_leo and facts.now_ms - facts.last_caught_up_ms > facts.lag_max_ms

    def kept_in_new_epoch(
        self, followers: Iterable[NodeId], isr: frozenset[NodeId], epochs: int
    ) -> frozenset[NodeId]:
        """Re-elected ``epochs`` later: whose follower state is still true (B21, K50).

        Of an ISR member in the very next epoch: it can have joined by this leader's proposal alone. Metadata
        that comes late shows several epochs as one change, and others may have led in between: a follower may
        have been removed, have lost its log and have joined their ISR with less than it once fetched from
        here."""
        return frozenset(followers) & isr if epochs == 1 else frozenset()

    def after_refusal(self, error: ErrorCode) -> AfterAlter:
        """Returns what becomes of a refused proposal: only two errors prove that nothing was written; after
        any other the change may stand (2.6b)."""
        match error:
            case ErrorCode.ineligible_replica | ErrorCode.operation_not_attempted:
                return AfterAlter.ROLL_BACK
            case (
                ErrorCode.unknown_topic_id
                | ErrorCode.unknown_topic_or_partition
                | ErrorCode.fenced_leader_epoch
                | ErrorCode.invalid_request
                | ErrorCode.invalid_update_version
                | ErrorCode.new_leader_elected
            ):
                return AfterAlter.WAIT
            case _:
                return AfterAlter.RETRY


class IsrChangeRules:
    """Rules of the ISR at the controller: may a leader change the ISR like this (docs/protocol.md 2.6, K42,
    K43)?

    Each test answers whether it fails; ``verdict`` runs them in the order of the table.
    """

    def verdict(
        self,
        sender: NodeId,
        item: AlterPartitionItem,
        partition: PartitionImage,
        brokers: Mapping[NodeId, BrokerImage],
    ) -> ErrorCode:
        """``broker/core/controller/decisions/partitions.py::alter_partition`` writes the ISR when there is
        no error."""
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
