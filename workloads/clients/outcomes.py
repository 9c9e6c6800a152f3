"""Outcomes of a record that was sent: acked, certainly not appended, or unknown for ever (docs/anomalies.md).

An error code is evidence only if it is about the *first* try: after a retry inside the client, "not enough
replicas" may be the answer to the second copy of a record whose first copy is in the log. So the workload
sends without retries unless it is told otherwise. With retries (idempotent producers always retry) only what
the client refused before it queued the record is certain.

Without retries librdkafka still sends again what was refused with NOT_LEADER_OR_FOLLOWER, for it takes that
as a proof that nothing was appended. With acks=all it is none: a leader that is replaced while records wait
for their followers answers so too, and they may be in the log. Then only what every try must be refused for
is certain.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError

from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN, Type
from wrackline.history.values import dataclass

EVERY_TRY_CODES = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,  # 10
        KafkaError.INVALID_REQUIRED_ACKS,  # 21
        KafkaError.INVALID_RECORD,  # 87
    }
)
"""A broker's answers that it would have given to any try: it appended nothing."""

THIS_TRY_CODES = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,  # 3
        KafkaError.NOT_ENOUGH_REPLICAS,  # 19; 20, "after append", is unknown
        KafkaError.UNKNOWN_TOPIC_ID,  # 100
    }
)
"""A broker's answers that prove it appended nothing this time."""

NEVER_SENT_CODES = frozenset(
    {
        KafkaError._QUEUE_FULL,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._PURGE_QUEUE,
    }
)
"""librdkafka's own errors for records that were still in its queue. ``_MSG_TIMED_OUT`` is not here: it is
given both to records that never left and to records whose answer never came, and this client cannot tell
which."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one record: its offset, or UNKNOWN, FAILED, ACKED_WITHOUT_OFFSET; ``error`` is Kafka's
    name for it."""

    offset: int
    error: str | None = None
    timestamp_ms: int = -1


def refused(name: str) -> Outcome:
    """The client did not take the record: it was never queued, whatever the settings."""
    return Outcome(FAILED, name)


def failed(code: int, name: str, *, first_try: bool, acks: int | str) -> Outcome:
    """The delivery report carries an error. ``first_try``: the client is configured not to retry."""
    certain = first_try and (code in EVERY_TRY_CODES or code in NEVER_SENT_CODES or code in THIS_TRY_CODES)
    if acks == "all" and (code in THIS_TRY_CODES or code == KafkaError._PURGE_QUEUE):
        certain = False  # it may be about the second copy, or the second copy may have been queued
    return Outcome(FAILED if certain else UNKNOWN, name)


def delivered(offset: int | None, timestamp_ms: int, *, acks: int | str) -> Outcome:
    """The delivery report carries no error. Without acks librdkafka makes the offset up: no evidence."""
    reported = offset if acks != 0 and offset is not None and offset >= 0 else ACKED_WITHOUT_OFFSET
    return Outcome(reported, None, timestamp_ms)


def type_of(outcomes: Sequence[Outcome]) -> Type:
    """Returns the type of the whole operation: ``ok`` when every record was acked, ``fail`` when none was
    appended for certain, ``info`` otherwise (docs/decisions/0003)."""
    if all(outcome.offset == FAILED for outcome in outcomes):
        return Type.FAIL
    return Type.INFO if any(outcome.offset in (UNKNOWN, FAILED) for outcome in outcomes) else Type.OK


def error_of(outcomes: Sequence[Outcome]) -> str | None:
    """The error to record for the operation: that of an unknown record before that of a refused one."""
    unknown = (outcome.error for outcome in outcomes if outcome.error and outcome.offset == UNKNOWN)
    return next(unknown, None) or next((outcome.error for outcome in outcomes if outcome.error), None)
