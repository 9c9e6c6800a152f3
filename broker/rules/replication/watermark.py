"""The high watermark: what is committed (docs/protocol.md 2.4, R01, R14, K15, K31, C9)."""

from __future__ import annotations

from collections.abc import Iterable

UNKNOWN_OFFSET = -1


class HighWatermarkRules:
    """Profile kip966: minimum over the maximal ISR and those about to join it, frozen while the ISR is below
    MinISR."""

    def may_advance(self, isr_size: int, maximal_size: int, min_isr: int) -> bool:  # noqa: ARG002
        """The gate is on the committed ISR: on the maximal one it breaks consistent reads (B12, B13)."""
        return isr_size >= min_isr

    def candidate(self, own_leo: int, members: Iterable[int], flushed: int | None) -> int:
        """High watermark candidate: the minimum of the leader's end and of every follower's that is waited
        for: the maximal ISR, and whoever ``waits_for`` names.
        ``broker/core/replication/leader.py::advance`` moves the high watermark to it, unless ``may_advance``
        forbids that; what is below it is then acknowledged and shown to consumers.

        ``members``: last fetch offset of each, UNKNOWN_OFFSET when it never fetched from this leader: then
        nothing advances. ``flushed``: the leader's own flushed end when every write is flushed before it
        counts (R01), else None.
        """
        candidate = own_leo if flushed is None else min(own_leo, flushed)
        for leo in members:
            if leo < candidate:
                candidate = leo
        return candidate

    def waits_for(self, caught_up: bool, eligible: bool) -> bool:
        """Beside the maximal ISR: is this follower about to join, so that the high watermark must not run
        away from it (H08, B60)?

        ``caught_up``: it had the end of the leader's log within the last lag time. ``eligible``: this life of
        its broker may be in an ISR now; nobody waits for one that may not (KAFKA-15021, B43).
        """
        return caught_up and eligible

    def at_leader(self, current: int, candidate: int) -> int:
        """Never lowered within a term (H05)."""
        return candidate if candidate > current else current

    def at_follower(self, current: int, from_leader: int, leo: int) -> int:  # noqa: ARG002
        """min(leader's, own end); may go down (C9, H03)."""
        return min(from_leader, leo)

    def on_divergence(self, current: int, from_leader: int, leo: int) -> int:  # noqa: ARG002
        """A diverging answer says where to cut and nothing else: its high watermark speaks of records that
        this follower does not have yet (KAFKA-14704, B27)."""
        return current

    def at_start(self, checkpoint: int, log_start: int, leo: int) -> int:
        """Returns the high watermark after a restart: the checkpoint, within the log (docs/protocol.md
        2.4)."""
        return max(log_start, min(checkpoint, leo))

    def may_show_end(self, high_watermark: int, leso: int) -> bool:
        """A new leader's high watermark may lag behind what clients saw (KIP-207, B14)."""
        return high_watermark >= leso
