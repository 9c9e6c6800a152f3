"""What a fetch session leaves out of a request must not be missing on the wire (docs/protocol.md 2.13)."""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ForgottenPartition,
)
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.api import Listener
from wrackline.broker.wire.codec import Caller, Codec, Incoming

ID, GONE = UUID(int=7), UUID(int=8)
REQUEST = FetchRequest(
    max_wait_ms=500,
    min_bytes=1,
    max_bytes=1_000,
    partitions=(FetchPartition(TopicPartition("a", 1), 5, 100, 2, 1, 0, ID),),
    replica_id=2,
    broker_epoch=9,
    session_id=77,
    session_epoch=3,
    forgotten=(ForgottenPartition(TopicPartition("b", 4), GONE),),
    session_topics=((ID, "a"),),
)

NODE = Caller(Listener.REPLICATION, 2)


def test_session_and_forgotten_partitions_travel() -> None:
    codec = Codec(names={ID: "a", GONE: "b"}.get)
    incoming = codec.decode_request(codec.encode_request(5, "n2", REQUEST)[4:], NODE)
    assert isinstance(incoming, Incoming)
    got = incoming.request
    assert isinstance(got, FetchRequest)
    assert (got.session_id, got.session_epoch) == (77, 3)
    assert (got.partitions, got.forgotten) == (REQUEST.partitions, REQUEST.forgotten)


def test_an_answer_may_name_partitions_that_the_request_does_not() -> None:
    codec = Codec(names={ID: "a", GONE: "b"}.get)
    incoming = codec.decode_request(codec.encode_request(5, "n2", REQUEST)[4:], NODE)
    assert isinstance(incoming, Incoming)
    told = FetchResult(TopicPartition("a", 9), high_watermark=3, records=b"", topic_id=ID)
    frame = codec.encode_response(incoming, FetchResponse((told,), session_id=77))
    response = codec.decode_response(frame[4:], REQUEST)
    assert isinstance(response, FetchResponse)
    assert (response.error, response.session_id) == (ErrorCode.none, 77)
    assert [result.tp for result in response.partitions] == [TopicPartition("a", 9)]
