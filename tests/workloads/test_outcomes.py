"""The error taxonomy of docs/anomalies.md, as a table: what proves that a record was not appended?"""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN, Type
from wrackline.workloads.clients.outcomes import Outcome, delivered, error_of, failed, type_of

CERTAIN = [10, 21, 87]
CERTAIN_OF_ONE_TRY = [3, 19, 100, KafkaError._PURGE_QUEUE]
"""librdkafka may have tried twice even without retries: NOT_LEADER_OR_FOLLOWER (6) is sent again."""
FOR_EVER_UNKNOWN = [6, 7, 13, 20, 56, 2, 5, 14, 45, 46, 47, -1]
"""6 not leader, 7 timed out, 13 network, 20 not enough replicas after append, 56 storage; and others."""
NEVER_SENT = [
    KafkaError._QUEUE_FULL,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
]
MAYBE_SENT = [
    KafkaError._MSG_TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._FATAL,
    KafkaError._DESTROY,
]


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("code", CERTAIN + NEVER_SENT)
def test_these_errors_prove_a_failure_on_the_first_try_but_not_after_a_retry(
    code: int, acks: int | str
) -> None:
    assert failed(code, "X", first_try=True, acks=acks) == Outcome(FAILED, "X")
    assert failed(code, "X", first_try=False, acks=acks) == Outcome(UNKNOWN, "X")


@pytest.mark.parametrize("code", CERTAIN_OF_ONE_TRY)
def test_these_errors_prove_a_failure_on_the_first_try_with_acks_1_only(code: int) -> None:
    assert failed(code, "X", first_try=True, acks=1) == Outcome(FAILED, "X")
    assert failed(code, "X", first_try=True, acks="all") == Outcome(UNKNOWN, "X")
    assert failed(code, "X", first_try=False, acks=1) == Outcome(UNKNOWN, "X")


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("code", FOR_EVER_UNKNOWN + MAYBE_SENT)
def test_these_errors_never_prove_a_failure(code: int, acks: int | str) -> None:
    assert failed(code, "X", first_try=True, acks=acks).offset == UNKNOWN
    assert failed(code, "X", first_try=False, acks=acks).offset == UNKNOWN


@pytest.mark.parametrize(
    ("offset", "acks", "reported"),
    [
        (41, "all", 41),
        (0, 1, 0),
        (None, "all", ACKED_WITHOUT_OFFSET),
        (-1, 1, ACKED_WITHOUT_OFFSET),
        (41, 0, ACKED_WITHOUT_OFFSET),
    ],
)
def test_an_offset_is_evidence_only_when_a_broker_told_it(
    offset: int | None, acks: int | str, reported: int
) -> None:
    assert delivered(offset, 5, acks=acks) == Outcome(reported, None, 5)


@pytest.mark.parametrize(
    ("offsets", "kind"),
    [
        ([1, 2], Type.OK),
        ([ACKED_WITHOUT_OFFSET], Type.OK),
        ([1, FAILED], Type.INFO),
        ([FAILED, FAILED], Type.FAIL),
        ([1, UNKNOWN], Type.INFO),
        ([FAILED, UNKNOWN], Type.INFO),
    ],
)
def test_an_operation_is_ok_or_failed_only_as_a_whole(offsets: list[int], kind: Type) -> None:
    assert type_of([Outcome(offset) for offset in offsets]) is kind


def test_the_error_of_an_unknown_record_is_the_one_told() -> None:
    assert error_of([Outcome(FAILED, "A"), Outcome(UNKNOWN, "B")]) == "B"
    assert error_of([Outcome(4), Outcome(FAILED, "A")]) == "A"
    assert error_of([Outcome(4)]) is None
