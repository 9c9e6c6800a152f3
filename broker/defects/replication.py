"""Defects of data replication (protocol.md 4.2)."""

from __future__ import annotations

from broker.core.types import NO_EPOCH, NodeId
from broker.rules.isr import IsrRules, JoinFacts
from broker.rules.truncation import TruncationRules


class TruncateToHighWatermark(TruncationRules):
    """``trunc_hw``: B01, KAFKA-1211, KIP-101 scenario 1. A new follower cuts what it does not know committed."""

    def on_become_follower(self, leo: int, high_watermark: int) -> int:
        return min(leo, high_watermark)


class NoDivergenceCheck(TruncationRules):
    """``no_divergence_check``: B55, half of B02. Followers fetch on at their own end, whatever lies below it."""

    def fetched_epoch(self, latest_epoch: int, after_empty: bool = False) -> int:  # noqa: ARG002
        return NO_EPOCH


class NoMaximalIsr(IsrRules):
    """``no_maximal_isr``: B17, KIP-497 race. A proposed member is not counted until the answer is back."""

    def maximal(self, committed: frozenset[NodeId], proposed: frozenset[NodeId]) -> frozenset[NodeId]:  # noqa: ARG002
        return committed


class ShrinkBeforeCommit(IsrRules):
    """``shrink_before_commit``: B18, B05. A member is dropped when the proposal leaves, not when it is accepted."""

    def maximal(self, committed: frozenset[NodeId], proposed: frozenset[NodeId]) -> frozenset[NodeId]:
        return proposed if proposed < committed else super().maximal(committed, proposed)


class IsrNoLeso(IsrRules):
    """``isr_no_leso``: B15, KAFKA-7128. A stale high watermark is all a joining follower must have reached."""

    def has_former_terms(self, facts: JoinFacts) -> bool:  # noqa: ARG002
        return True
