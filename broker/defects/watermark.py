"""Defects of the high watermark and of what it stands for (docs/protocol.md 4.2, 4.3, 4.5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wrackline.broker.defects.flip import SwitchDefect
from wrackline.broker.rules.replication.watermark import UNKNOWN_OFFSET, HighWatermarkRules


class AdvanceBelowMinIsr(SwitchDefect):
    """``hw_no_minisr``: B12, KAFKA-15583. The high watermark moves although the ISR is below MinISR.

    With an ELR that is a loss: whoever is in it was promised that nothing is committed without it. Fixed in
    3.7, before the ELR was there to be used.
    """

    flips: ClassVar = {"min_isr_gates_high_watermark": False}


class GateOnMaximalIsr(HighWatermarkRules):
    """``hw_gate_maximal``: B13. The gate counts members that are only proposed.

    No release had it; the model of KIP-966 shows what it would cost.
    """

    flips: ClassVar = {"min_isr_gates_high_watermark": True}
    """There is a gate in a profile that has none, too."""

    def may_advance(self, isr_size: int, maximal_size: int, min_isr: int) -> bool:  # noqa: ARG002
        return maximal_size >= min_isr


class ShowStaleEnd(HighWatermarkRules):
    """``no_offset_not_available``: B14, KIP-207, KAFKA-2334. A new leader shows its stale high watermark.

    The end of the log goes back for a moment, and clients that ask for it read again. Fixed in 2.2.
    """

    def may_show_end(self, high_watermark: int, leso: int) -> bool:  # noqa: ARG002
        return True


class MoveBeforeTruncation(HighWatermarkRules):
    """``hw_before_trunc``: B27, KAFKA-14704. A diverging answer moves the follower's high watermark.

    It passes over the follower's own records, which are about to be cut, and covers them until they are.
    Fixed in 3.5.
    """

    def on_divergence(self, current: int, from_leader: int, leo: int) -> int:
        return self.at_follower(current, from_leader, leo)


class IgnoreUnknownEnds(HighWatermarkRules):
    """``hw_ignores_unknown``: A check of docs/protocol.md 4.5. A member that has not fetched from this leader
    is not waited for.

    A new leader then commits alone whatever it appends before its followers come. No release had it.
    """

    def candidate(self, own_leo: int, members: Iterable[int], flushed: int | None) -> int:
        return super().candidate(own_leo, (leo for leo in members if leo != UNKNOWN_OFFSET), flushed)


class StayOnIsrChange(SwitchDefect):
    """``no_adv_on_isr``: B43, KAFKA-13091. The controller's answer changes the ISR, the high watermark waits.

    Without another fetch the acks=all requests wait too, in the end for their time-out. Fixed in 3.1.
    """

    flips: ClassVar = {"isr_change_moves_high_watermark": False}


class WaitForIneligible(HighWatermarkRules):
    """``hw_waits_ineligible``: B43, KAFKA-15021. The leader waits for a caught-up follower that may not join.

    One in controlled shutdown or fenced holds acks=all up for a whole lag window. Fixed in 3.6.
    """

    def waits_for(self, caught_up: bool, eligible: bool) -> bool:  # noqa: ARG002
        return caught_up


class PassJoining(SwitchDefect):
    """``hw_passes_joining``: B60, KAFKA-4485. Nobody outside of the maximal ISR is waited for.

    While records keep coming, a follower that has all but the last of them is always behind the high
    watermark, and never joins. Kafka waits for it since 0.10.2.
    """

    flips: ClassVar = {"waits_for_joining": False}


class LeaveOutOfCheckpoint(SwitchDefect):
    """``hw_ckpt_skip``: B37, KAFKA-1647. A partition without a leader is left out of the checkpoint file.

    After the next start its high watermark is 0, and with ``trunc_hw`` everything is cut. Fixed in 0.8.2.
    """

    flips: ClassVar = {"checkpoints_leaderless": False}
