"""A follower's decisions on its leader's answer (docs/protocol.md 2.11 below the table, K46, K51-K54)."""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """One partition of a fetch response beside the follower's own state."""

    asked_offset: int
    asked_epoch: int
    asked_reset: int
    """How often the partition had been (re-)added to a fetcher when the request was made."""
    request_last_epoch: int
    """Of the last record that the follower had then: its log may have been cut since, and have grown to the
    same end."""
    leo: int
    leader_epoch: int
    reset: int
    last_epoch: int


class FetchRules:
    """Profile kip966."""

    def accepts(self, facts: AnswerFacts) -> bool:
        """Accepts only the answer to the very state the follower is in (B23, KAFKA-18723)."""
        return (
            facts.asked_offset == facts.leo
            and facts.asked_epoch == facts.leader_epoch
            and facts.asked_reset == facts.reset
            and facts.request_last_epoch == facts.last_epoch
        )

    def may_append(self, batch_epoch: int, leader_epoch: int) -> bool:
        """Refuses a batch from a later leader than the one the follower follows (KAFKA-18723)."""
        return batch_epoch <= leader_epoch

    def backoff_ms(self, error: ErrorCode, configured_ms: float) -> float:
        """A leader that has yet to hear of its election hears of it within a metadata round trip: ask
        soon."""
        if error in (ErrorCode.not_leader_or_follower, ErrorCode.unknown_leader_epoch):
            return configured_ms / 10
        return configured_ms


class MetadataRules:
    """Profile kip966."""

    def applies(self, known_partition_epoch: int, partition_epoch: int) -> bool:
        """The epoch guard (K46). Equal is what the leader already learnt from an AlterPartition response;
        taking it again would drop a proposal made since, and narrow the maximal ISR (B17)."""
        return partition_epoch > known_partition_epoch

    def is_another(self, known: UUID, topic_id: UUID) -> bool:
        """A topic of the same name with another id is another topic: what is on disk of the old one is of no
        use (KIP-516, KAFKA-12257, B56)."""
        return known != topic_id
