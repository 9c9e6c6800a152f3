"""Consumer groups and transactions: every version of what is not served is refused in words its client can
read."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.wire.encoder import filled
from tests.broker.wire.entities import make
from wrackline.broker.model.types import Endpoint
from wrackline.broker.wire.api import Listener
from wrackline.broker.wire.apis import advertised
from wrackline.broker.wire.codec import AnswerNow, Caller, Codec
from wrackline.broker.wire.schema import WireError, request_schema, response_schema
from wrackline.broker.wire.unserved import NO_GROUPS, NO_TRANSACTIONS, NONE_COMMITTED, UNSERVED

CASES = [
    (key, version) for key, api in UNSERVED.items() for version in range(api.versions[0], api.versions[1] + 1)
]
OFFSET_FETCH, FIND_COORDINATOR = 9, 10


def answered(key: int, version: int, request: object = None) -> object:
    schema = request_schema(key, version)
    body = schema.write(filled(schema.root) if request is None else request)
    tags = b"\x00" if schema.flexible else b""
    codec = Codec(names=lambda _: None, me=Endpoint(3, "n3", 9092))
    answer = codec.decode_request(struct.pack(">hhih", key, version, 7, 2) + b"me" + tags + body)
    assert isinstance(answer, AnswerNow)
    size, correlation = struct.unpack(">ii", answer.frame[:8])
    assert (size, correlation) == (len(answer.frame) - 4, 7)
    return response_schema(key, version).read(answer.frame, 9 if schema.flexible else 8)


def errors(entity: object) -> set[ErrorCode]:
    """Of a whole answer: at its top and per item."""
    own = {entity.error_code} if hasattr(entity, "error_code") else set()
    parts = (getattr(entity, name, None) or () for name in ("topics", "partitions", "groups", "coordinators"))
    return own.union(*(errors(part) for group in parts for part in group))


@pytest.mark.parametrize(
    ("key", "version"), [case for case in CASES if case[0] not in (OFFSET_FETCH, FIND_COORDINATOR)]
)
def test_what_needs_a_group_gets_the_final_error(key: int, version: int) -> None:
    answer = answered(key, version)
    # Some versions have a place for it per topic and at the top, and then say it in both.
    assert errors(answer) - {ErrorCode.none} == {ErrorCode.group_authorization_failed}
    assert getattr(answer, "error_message", NO_GROUPS) == NO_GROUPS


@pytest.mark.parametrize("version", range(1, 9))
def test_no_offset_was_ever_committed(version: int) -> None:
    """A consumer that is assigned its partitions without a start asks, and begins where it is told to."""
    schema = request_schema(OFFSET_FETCH, version)
    asked: dict[str, object] = {"name": "t", "partition_indexes": (0, 3)}
    if version < 8:
        request = make(
            schema,
            "OffsetFetchRequest",
            group_id="g",
            topics=(make(schema, "OffsetFetchRequestTopic", **asked),),
        )
    else:
        topics = (make(schema, "OffsetFetchRequestTopics", **asked),)
        group = make(schema, "OffsetFetchRequestGroup", group_id="g", topics=topics)
        request = make(schema, "OffsetFetchRequest", groups=(group,))
    answer: Any = answered(OFFSET_FETCH, version, request)
    assert errors(answer) == {ErrorCode.none}
    (group,) = getattr(answer, "groups", (answer,))
    assert getattr(group, "group_id", "g") == "g"
    (topic,) = group.topics
    found = [(part.partition_index, part.committed_offset, part.metadata) for part in topic.partitions]
    assert (topic.name, found) == ("t", [(0, NONE_COMMITTED, ""), (3, NONE_COMMITTED, "")])


@pytest.mark.parametrize("version", range(2, 9))
def test_of_all_topics_none_has_a_committed_offset(version: int) -> None:
    """Null instead of a list of topics asks for all there are, as administration does."""
    schema = request_schema(OFFSET_FETCH, version)
    groups = (make(schema, "OffsetFetchRequestGroup", group_id="g", topics=None),) if version == 8 else ()
    answer: Any = answered(
        OFFSET_FETCH, version, make(schema, "OffsetFetchRequest", group_id="g", topics=None, groups=groups)
    )
    (group,) = getattr(answer, "groups", (answer,))
    assert (errors(answer), group.topics) == ({ErrorCode.none}, ())


@pytest.mark.parametrize("version", range(5))
def test_a_coordinator_is_found_for_a_group_only(version: int) -> None:
    schema = request_schema(FIND_COORDINATOR, version)
    for kind, error, node in (
        (0, ErrorCode.none, (3, "n3", 9092)),
        (1, ErrorCode.transactional_id_authorization_failed, (-1, "", -1)),
    ):
        if version == 0 and kind == 1:
            continue  # it knows groups alone
        asked = make(schema, "FindCoordinatorRequest", key="x", key_type=kind, coordinator_keys=("x", "y"))
        answer = answered(FIND_COORDINATOR, version, asked)
        found = getattr(answer, "coordinators", (answer,))
        assert [getattr(one, "key", "x") for one in found] == ["x", "y"][: len(found)]
        for one in found:
            assert (one.error_code, (one.node_id, one.host, one.port)) == (error, node)
            if error is not ErrorCode.none:
                assert one.error_message == NO_TRANSACTIONS


def test_brokers_advertise_them_and_controllers_do_not() -> None:
    assert UNSERVED.keys() <= {key for key, _, _ in advertised(Listener.CLIENT)}
    assert not UNSERVED.keys() & {key for key, _, _ in advertised(Listener.CONTROLLER)}
    with pytest.raises(WireError, match="API key 11 is not served on the listener CONTROLLER"):
        Codec(names=lambda _: None).decode_request(
            struct.pack(">hhih", 11, 5, 7, -1), Caller(Listener.CONTROLLER)
        )
    with pytest.raises(WireError, match="JoinGroup version 99 is not spoken here"):
        Codec(names=lambda _: None).decode_request(struct.pack(">hhih", 11, 99, 7, -1))
