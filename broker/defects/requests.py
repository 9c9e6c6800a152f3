"""Defects of what a broker makes of requests and answers (docs/protocol.md 4.2, 4.3)."""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.defects.flip import SwitchDefect
from wrackline.broker.rules.replication.fetching import AnswerFacts, FetchRules, MetadataRules
from wrackline.broker.rules.replication.reads import ReadRules


class ApplyStaleOffset(FetchRules):
    """``apply_stale_off``: B23, KAFKA-18723 family. An answer counts whatever offset was asked for.

    One that was overtaken by a later request cuts, or appends, what was right for an earlier state.
    """

    def accepts(self, facts: AnswerFacts) -> bool:
        return facts.asked_epoch == facts.leader_epoch and facts.asked_reset == facts.reset


class ApplyStaleAnswer(FetchRules):
    """``apply_stale_resp``: B23, KAFKA-18723 (fixed in 4.0). Any answer counts: to another offset, in another
    leader epoch, from a former stay in the fetcher. And batches of later epochs are appended."""

    def accepts(self, facts: AnswerFacts) -> bool:  # noqa: ARG002
        return True

    def may_append(self, batch_epoch: int, leader_epoch: int) -> bool:  # noqa: ARG002
        return True


class KeepToldSession(SwitchDefect):
    """``keep_told_session``: docs/protocol.md 2.13, KIP-227. A fetch session goes on over a partition that
    was away from its fetcher when the answer came.

    The leader believes that it told the high watermark, and of an idle partition it says nothing more: the
    follower's stays behind until somebody writes. Found here by random runs; Kafka's incremental sessions
    remember in this way, too.
    """

    flips: ClassVar = {"session_outlives_stay": True}


class NoEpochCheck(ReadRules):
    """``no_client_epoch``: B04, KIP-320, KAFKA-7440. The epoch a fetch names is not looked at.

    A consumer does not notice that the log was cut under it. Fixed in 2.1 (clients 2.3, librdkafka 2.1).
    """

    def epoch_check(self, asked: int, own: int) -> ErrorCode:  # noqa: ARG002
        return ErrorCode.none


class NoTopicId(MetadataRules):
    """``no_topic_id``: B56, KAFKA-12257, KIP-516. A topic is its name: one that was deleted and made again
    takes over the log that a broker still has of the old one.

    Old records are then in the new topic. Fixed in 2.8 (brokers), 3.2 (the metadata of clients).
    """

    def is_another(self, known: UUID, topic_id: UUID) -> bool:  # noqa: ARG002
        return False


class ForgetProducers(SwitchDefect):
    """``forget_producer_state``: B40, the broker's half. A new leader does not know who wrote what.

    The retry of a batch that its predecessor had appended is appended again.
    """

    flips: ClassVar = {"new_leader_forgets_producers": True}


class AckByHighWatermark(SwitchDefect):
    """``ack_by_hwm_only``: B49, KAFKA-20634. A waiting request is acknowledged when the high watermark gets
    there, whoever leads by then.

    What lies at its offset may be another leader's record. Fixed in June 2026.
    """

    flips: ClassVar = {"produce_outlives_leadership": True}
