"""Unclean recovery by inspection of logs: which answers count, which log is the best
(docs/protocol.md 2.9, R27-R34).

KIP-966, strategy balanced: every member of the LastKnownELR is asked, and all must have answered. If one of
them is complete it is elected, because a log that ends in a later epoch, or in the same one further on, holds
everything that was ever committed in the other (R33). Strategy proactive: every replica is asked, and whoever
has answered when a short time is over is all there is; a complete one that is away loses what only it has
(R27). Strategy manual: a person names the leader (R29).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.controller import ReplicaLogInfo
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER, NodeId, RecoveryStrategy
from wrackline.broker.rules.leadership.election import ElectionRules, Recovery

UNUSABLE = -1
"""In place of the end of a log whose records are there and cannot be used."""


class LogEnd(NamedTuple):
    """The end of one candidate's log."""

    broker: NodeId
    broker_epoch: int
    """The life that said so: the log of another may be shorter."""
    last_written_epoch: int
    leo: int
    """Or UNUSABLE."""


class Verdict(Enum):
    COUNTS = "counts"
    UNUSABLE = "unusable"
    """It has records that it cannot read: nothing better will come of asking again."""
    ASK_AGAIN = "ask again"
    ABORT = "abort"
    """A newer leader epoch exists: somebody else has decided."""


class Named(Enum):
    """The outcome for a leader that a person names (R29)."""

    LEADS = "leads"
    NOT_NEEDED = "not needed"
    """There is a leader."""
    NOT_MANUAL = "not manual"
    """The controller elects by itself."""
    NO_REPLICA = "no replica"
    NOT_LIVE = "not live"


class RecoveryRules:
    """Profile kip966."""

    def view(
        self,
        strategy: RecoveryStrategy,
        rules: ElectionRules,
        partition: PartitionImage,
        acceptable: frozenset[NodeId],
    ) -> Recovery | None:
        """Is there anything to recover, and whose logs would be compared (docs/protocol.md 2.9)?"""
        if strategy is RecoveryStrategy.PROACTIVE:
            return rules.proactive_recovery(partition, acceptable)
        return rules.recovery(partition, acceptable)

    def may_inspect(self, strategy: RecoveryStrategy, recovery: Recovery) -> bool:
        """R27: proactive at once; R28: balanced only when no candidate is missing; R29: manual never."""
        if strategy is RecoveryStrategy.PROACTIVE:
            return recovery.possible
        return strategy is RecoveryStrategy.BALANCED and recovery.ready

    def is_decided(
        self, strategy: RecoveryStrategy, answered: int, candidates: int, *, window_over: bool
    ) -> bool:
        """Balanced: everyone has answered. Proactive: or the window is over and anyone has."""
        if answered == candidates:
            return candidates > 0
        return strategy is RecoveryStrategy.PROACTIVE and window_over and answered > 0

    def named(
        self,
        strategy: RecoveryStrategy,
        partition: PartitionImage,
        leader: NodeId,
        acceptable: frozenset[NodeId],
    ) -> Named:
        """May this replica lead because a person says so, whatever its log lacks?"""
        if partition.leader != NO_LEADER:
            return Named.NOT_NEEDED
        if strategy is not RecoveryStrategy.MANUAL:
            return Named.NOT_MANUAL
        if leader not in partition.replicas:
            return Named.NO_REPLICA
        return Named.LEADS if leader in acceptable else Named.NOT_LIVE

    def judge(
        self, info: ReplicaLogInfo, broker_epoch: int, registered_epoch: int, leader_epoch: int
    ) -> Verdict:
        """Does this answer count, given the broker's registration and the partition's leader epoch?

        A broker that knows only an older leader epoch may still be following, so its log may still change.
        """
        if broker_epoch == registered_epoch and info.error is ErrorCode.kafka_storage_error:
            return Verdict.UNUSABLE
        if broker_epoch != registered_epoch or info.error is not ErrorCode.none:
            return Verdict.ASK_AGAIN
        if info.current_leader_epoch > leader_epoch:
            return Verdict.ABORT
        return Verdict.COUNTS if info.current_leader_epoch == leader_epoch else Verdict.ASK_AGAIN

    def winner(self, ends: Iterable[LogEnd]) -> NodeId | None:
        """The latest epoch, then the longest log, then the lowest id. None: no log can be used, and a person
        must mend one."""
        usable = [end for end in ends if end.leo != UNUSABLE]
        if not usable:
            return None
        return min(usable, key=lambda end: (-end.last_written_epoch, -end.leo, end.broker)).broker
