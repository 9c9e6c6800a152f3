"""Defects of the ISR: at the leader that proposes it and at the controller that accepts it
(docs/protocol.md 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from kio.schema.errors import ErrorCode

from wrackline.broker.defects.flip import SwitchDefect
from wrackline.broker.model.messages.controller import AlterPartitionItem
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.replication.isr import IsrChangeRules, IsrRules, JoinFacts


class NoMaximalIsr(IsrRules):
    """``no_maximal_isr``: B17, KIP-497 race. A proposed member is not counted until the answer is back.

    The controller may have it in the ISR already, and elect it. Found while KIP-497 was made
    (docs/protocol.md 2.7).
    """

    def maximal(self, committed: frozenset[NodeId], proposed: frozenset[NodeId]) -> frozenset[NodeId]:  # noqa: ARG002
        return committed


class ShrinkBeforeCommit(IsrRules):
    """``shrink_before_commit``: B18, B05. A member is dropped when the proposal leaves, not when it is
    accepted.

    If the request never arrives, the one that was dropped can still be elected. No release since 0.8 had it.
    """

    def maximal(self, committed: frozenset[NodeId], proposed: frozenset[NodeId]) -> frozenset[NodeId]:
        return proposed if proposed < committed else super().maximal(committed, proposed)


class IsrNoLeso(IsrRules):
    """``isr_no_leso``: B15, KAFKA-7128. A stale high watermark is all a joining follower must have reached.

    A new leader's high watermark lags behind what its predecessor had committed. Fixed in 2.1.
    """

    def has_former_terms(self, facts: JoinFacts) -> bool:  # noqa: ARG002
        return True


class IsrNoHighWatermark(IsrRules):
    """``isr_no_hw``: B16. A follower may join behind the high watermark (with ``isr_no_leso``: anywhere).

    No release had it; it is a CHECK of the TLA+ model (docs/protocol.md 4.5).
    """

    def has_committed(self, facts: JoinFacts) -> bool:  # noqa: ARG002
        return True


class JoinFarBehind(IsrRules):
    """``isr_no_recency``: B45, KAFKA-19996. A follower joins at the high watermark, however far the leader's
    log goes on behind it.

    Below MinISR the high watermark stands still: the follower joins, empties the ELR, lags and is dropped,
    again and again while load lasts. Kafka's own test is the high watermark and the LESO alone.
    """

    def is_recent(self, facts: JoinFacts) -> bool:  # noqa: ARG002
        return True


class KeepStalePeers(IsrRules):
    """``keep_stale_peers``: B21. Re-elected in a new epoch, a leader believes all it knew of its followers.

    One that was removed and added again meanwhile has an empty log. A CHECK of the TLA+ model
    (docs/protocol.md 4.5).
    """

    def kept_in_new_epoch(
        self,
        followers: Iterable[NodeId],
        isr: frozenset[NodeId],  # noqa: ARG002
        epochs: int,  # noqa: ARG002
    ) -> frozenset[NodeId]:
        return frozenset(followers)


class LeakSlot(SwitchDefect):
    """``inflight_leak``: B41, KAFKA-12686, KAFKA-12751, KAFKA-14010. The slot of an overtaken request stays
    taken.

    When metadata settles a proposal before its answer comes, no ISR of this leader ever changes again. Fixed
    in 3.0 and 3.3.
    """

    flips: ClassVar = {"overtaken_answer_frees_slot": False}


class NoIsrBrokerEpoch(IsrChangeRules):
    """``no_isr_broker_epoch``: B19, KIP-903, KAFKA-14617. The proposal does not say which life of a broker it
    means.

    It may have lost its log since the fetches that proved it in sync. Fixed in 3.5, the last race in 3.7.
    """

    def has_epoch(self, broker: BrokerImage, epoch: int) -> bool:  # noqa: ARG002
        return True


class AllowFencedIsr(IsrChangeRules):
    """``allow_fenced_isr``: B20, KIP-841, KAFKA-13916, KAFKA-14140. Nobody looks whether a joining broker is
    fenced.

    It can neither lead nor follow, and the ISR counts it. Fixed in 3.3.
    """

    def is_active(self, broker: BrokerImage | None) -> bool:
        return broker is not None


class NoPartitionEpoch(IsrChangeRules):
    """``no_partition_epoch``: B22. The controller takes a proposal built on a partition that has changed
    since.

    The last writer wins, with an ISR nobody has now. A CHECK of the TLA+ model (docs/protocol.md 4.5).
    """

    def is_outdated(self, item: AlterPartitionItem, partition: PartitionImage) -> bool:  # noqa: ARG002
        return False


class FenceFutureLeader(IsrChangeRules):
    """``zombie_ctl_fenced``: B42, KAFKA-14154. A controller that was deposed fences a leader newer than it
    knows.

    The leader takes the answer as final and waits for metadata that it has already. Fixed in 3.4.
    """

    def verdict(
        self,
        sender: NodeId,
        item: AlterPartitionItem,
        partition: PartitionImage,
        brokers: Mapping[NodeId, BrokerImage],
    ) -> ErrorCode:
        if item.leader_epoch > partition.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        return super().verdict(sender, item, partition, brokers)
