"""Defects of truncation and of the epoch cache (docs/protocol.md 4.2)."""

from __future__ import annotations

from typing import ClassVar

from wrackline.broker.defects.flip import SwitchDefect
from wrackline.broker.model.messages.requests import EpochEndOffset
from wrackline.broker.model.types import NO_EPOCH
from wrackline.broker.rules.replication.truncation import Cut, LeaderRange, OutOfRange, TruncationRules


class TruncateToHighWatermark(TruncationRules):
    """``trunc_hw``: B01, KAFKA-1211, KIP-101 scenario 1. A new follower cuts what it does not know committed.

    Its high watermark is a round trip old: what it cuts may be committed. Fixed in 0.11.
    """

    def on_become_follower(self, leo: int, high_watermark: int) -> int:
        return min(leo, high_watermark)


class NoDivergenceCheck(SwitchDefect):
    """``no_divergence_check``: B55, half of B02. Followers fetch on at their own end, whatever lies below it.

    Neither the fetch nor a question before it names the epoch of the follower's last record. Before 0.11.
    """

    flips: ClassVar = {"fetch_names_epoch": False}


class AnswerWithoutEpoch(TruncationRules):
    """``kip101_v0``: B03, KIP-279, KAFKA-6361; profile kip101. The leader's answer was an offset only.

    A leader that knows nothing of the epoch asked for answers with the start of the next one, and the
    follower took that for the end of its own. Fixed in 2.0.
    """

    only_with = "asks_epoch_first"

    def on_answer(self, own: EpochEndOffset | None, theirs: EpochEndOffset, leo: int) -> Cut:  # noqa: ARG002
        return Cut(min(theirs.end_offset, leo))


class DropEpochAfterEmpty(TruncationRules):
    """``drop_lfe_on_empty``: B26, KAFKA-15510. After an answer without records the next fetch names no epoch.

    The fetch state took its epoch from the last batch received, and there was none. Fixed in 3.7.
    """

    flips: ClassVar = {"fetch_names_epoch": True}
    """Also in a profile whose fetches name none."""

    def fetched_epoch(self, latest_epoch: int, after_empty: bool = False) -> int:
        return NO_EPOCH if after_empty else latest_epoch


class StickyEmpty(SwitchDefect):
    """``lfe_sticky``: B26, what makes ``drop_lfe_on_empty`` lose data: a new leader does not change it.

    Kafka re-read the epoch from the log whenever it added the partition to a fetcher, so it was lucky.
    """

    flips: ClassVar = {"empty_answer_outlives_epoch": True}


class DropBegunBatch(SwitchDefect):
    """``drop_begun_batch``: H18. A batch that begins before the follower's end is not taken.

    The leader answers a fetch from its middle with the whole batch, so the follower asks for it for ever. Nor
    does it take the high watermark that comes with it.
    KIP-101 names it as what logs of compressed sets that differ come to at worst.
    """

    flips: ClassVar = {"takes_begun_batch": False}


class RestartWhenOutOfRange(TruncationRules):
    """``oor_to_start``: B38, KAFKA-2143. Out of range means starting anew at the leader's start.

    A follower that was ahead of its leader for a moment dropped its whole log. Fixed in 0.10.
    """

    def on_out_of_range(self, leo: int, leader: LeaderRange) -> OutOfRange:  # noqa: ARG002
        return OutOfRange.RESTART_AT_LEADER_START


class KeepEpochsOfShortLog(SwitchDefect):
    """``keep_epoch_on_noop_trunc``: B25, KAFKA-10706. Nothing to cut in the log, so nothing cut in the cache.

    An epoch in which the follower, once leader, had written nothing stays in its cache for ever and makes
    every later question about the end of the log wrong. Fixed in 2.8.
    """

    flips: ClassVar = {"cuts_epochs_of_short_log": False}


class NoEpochOnElection(SwitchDefect):
    """``no_epoch_assign``: B25, KAFKA-7415. A leader enters its epoch only with its first record.

    Until then it does not know its own epoch and answers questions about former ones with its log's end, or
    not at all. Fixed in 2.1.
    """

    flips: ClassVar = {"assigns_epoch_on_election": False}
