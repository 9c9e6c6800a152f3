"""Records of before 0.10 have no timestamp, and librdkafka calls that 0."""

from __future__ import annotations

from typing import cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from wrackline.workloads.clients.librdkafka.consumers import _timestamp


class Consumed:
    """What a consumer is given, as far as it is asked here."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def timestamp(self) -> tuple[int, int]:
        return self._kind, 0


@pytest.mark.parametrize(
    ("kind", "timestamp_ms"),
    [(TIMESTAMP_NOT_AVAILABLE, -1), (TIMESTAMP_CREATE_TIME, 0), (TIMESTAMP_LOG_APPEND_TIME, 0)],
)
def test_a_record_without_a_timestamp_is_told_from_one_of_1970(kind: int, timestamp_ms: int) -> None:
    assert _timestamp(cast(Message, Consumed(kind))) == timestamp_ms
