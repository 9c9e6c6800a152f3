"""The offset at which a follower truncates its log (docs/protocol.md 2.11, 2.2.4, 2.3)."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from wrackline.broker.model.messages.requests import EpochEndOffset
from wrackline.broker.model.types import NO_EPOCH
from wrackline.broker.model.values import dataclass


class OutOfRange(Enum):
    """The follower's action when its leader says OFFSET_OUT_OF_RANGE."""

    TRUNCATE_TO_LEADER_END = "truncate"
    RESTART_AT_LEADER_START = "restart"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class LeaderRange:
    """The leader's log as it answers ListOffsets to a replica."""

    start: int
    end: int


class Cut(NamedTuple):
    to_offset: int
    ask_again: bool = False
    """The leader knew nothing of the epoch asked for: ask about the end that is left (KIP-279)."""


class TruncationRules:
    """Profile kip966 (and kraft35): diverging epoch on fetch."""

    def on_become_follower(self, leo: int, high_watermark: int) -> int:  # noqa: ARG002
        """The offset to cut to when a replica starts following in a new leader epoch, and at start.

        Nothing is cut before the leader has shown a divergence (K51); HW truncation was B01.
        """
        return leo

    def on_answer(self, own: EpochEndOffset | None, theirs: EpochEndOffset, leo: int) -> Cut:
        """Returns where to truncate when the leader was asked first; ``own`` as in ``on_divergence``
        (KIP-279)."""
        cut = self.on_divergence(own, theirs, leo)
        return Cut(cut, ask_again=own is not None and own.epoch != theirs.epoch)

    def fetched_epoch(self, latest_epoch: int, after_empty: bool = False) -> int:  # noqa: ARG002
        """Returns the epoch that the fetch request says of the end of the follower's own log; -1 asks for no
        check (B55).

        ``after_empty``: the last answer had no records. It makes no difference (KAFKA-15510, B26).
        """
        return latest_epoch

    def diverges(
        self, fetched_epoch: int, fetch_offset: int, leader_end: EpochEndOffset
    ) -> EpochEndOffset | None:
        """Returns, at the leader, where a follower's log diverges: ``leader_end`` is where the follower's
        last epoch ends here (docs/protocol.md 2.2.4).
        ``broker/core/requests/fetch.py::FetchHandler._log_fault`` answers with it and without records."""
        if fetched_epoch == NO_EPOCH:
            return None
        if leader_end.epoch < fetched_epoch or leader_end.end_offset < fetch_offset:
            return leader_end
        return None

    def on_divergence(self, own: EpochEndOffset | None, diverging: EpochEndOffset, leo: int) -> int:
        """Truncation by epoch, at the follower: ``own`` is where the diverging epoch ends in its own log,
        None when it has none.
        ``broker/core/replication/fetching/following.py::Following._diverged`` cuts the log there."""
        if own is None:
            return min(diverging.end_offset, leo)
        if own.epoch != diverging.epoch:
            return min(own.end_offset, leo)
        return min(own.end_offset, diverging.end_offset, leo)

    def on_out_of_range(self, leo: int, leader: LeaderRange) -> OutOfRange:
        """A leadership race must not make a follower drop its log (KAFKA-2143, B38)."""
        if leader.end < leo:
            return OutOfRange.TRUNCATE_TO_LEADER_END
        if leader.start > leo:
            return OutOfRange.RESTART_AT_LEADER_START
        return OutOfRange.RETRY
