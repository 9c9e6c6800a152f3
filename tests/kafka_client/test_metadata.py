"""Metadata in every version that the harness asks for, and a broker that is older than ApiVersions."""

from __future__ import annotations

import io
import socket
import struct
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.response_header.v0.header import ResponseHeader
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32

from wrackline.kafka_client import metadata
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.model import UNKNOWN, Broker, Metadata, TopicMetadata
from wrackline.kafka_client.transport import ProtocolError

TOPIC_ID = uuid.UUID(int=7)
VERSIONS = range(metadata.NEWEST + 1)


def made(kind: Any, **values: Any) -> Any:
    """One of kio's entities, with those of the values that its version has."""
    fields = kind.__dataclass_fields__
    return kind(**{name: value for name, value in values.items() if name in fields})


def answer(version: int) -> Any:
    schema = import_module(f"kio.schema.metadata.v{version}.response")
    nothing = getattr(schema.MetadataResponse.__dataclass_fields__.get("throttle_time"), "default", None)
    partition = made(
        schema.MetadataResponsePartition,
        error_code=ErrorCode.none,
        partition_index=0,
        leader_id=2,
        leader_epoch=5,
        replica_nodes=(1, 2),
        isr_nodes=(2,),
        offline_replicas=(),
    )
    topics = [
        made(
            schema.MetadataResponseTopic,
            error_code=ErrorCode.none,
            name=name,
            topic_id=TOPIC_ID,
            is_internal=name.startswith("__"),
            partitions=(partition,),
            topic_authorized_operations=-1,
        )
        for name in ("log", "__consumer_offsets")
    ]
    broker = made(schema.MetadataResponseBroker, node_id=2, host="there", port=9092, rack=None)
    return made(
        schema.MetadataResponse,
        throttle_time=nothing,
        brokers=(broker,),
        cluster_id=None,
        controller_id=2,
        topics=tuple(topics),
        cluster_authorized_operations=-1,
    )


def written(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_says_the_same_but_for_what_it_has_not(version: int) -> None:
    seen = metadata.metadata_of(answer(version), None)
    assert seen.controller == (2 if version >= 1 else UNKNOWN)
    assert seen.brokers == (Broker(2, "there", 9092),)
    assert [one.name for one in seen.topics] == ["log", "__consumer_offsets"]
    assert [one.is_internal for one in seen.topics] == [False, True]
    log = seen.topics[0]
    assert log.topic_id == (TOPIC_ID if version >= 10 else None)
    [partition] = log.partitions
    assert (partition.leader, partition.replicas, partition.isr) == (2, (1, 2), (2,))
    assert partition.leader_epoch == (5 if version >= 7 else UNKNOWN)
    assert [one.name for one in metadata.metadata_of(answer(version), ("log",)).topics] == ["log"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("topics", [None, ("log",)], ids=["all", "one"])
def test_no_question_makes_a_topic(version: int, topics: tuple[str, ...] | None) -> None:
    request, answering = metadata.request_for(version, topics)
    again, _ = entity_reader(type(request))(written(request), 0)
    assert again == request
    assert answering.__version__ == version
    if version < 4:  # these versions make what they are asked for by name
        assert again.topics == (() if version == 0 else None)
    else:
        assert again.topics is None if topics is None else [one.name for one in again.topics] == ["log"]
        assert not again.allow_auto_topic_creation


@contextmanager
def old_broker(lets_in_again: bool = True) -> Iterator[int]:
    """Its port. It hangs up when it hears ApiVersions, as those before 0.10 do, and answers Metadata 0."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                while len(head := connection.recv(4, socket.MSG_WAITALL)) == 4:
                    frame = connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
                    key, version, correlation = struct.unpack_from(">hhi", frame)
                    if key != metadata.KEY:
                        if not lets_in_again:
                            server.close()
                        break
                    assert version == 0
                    body = written(ResponseHeader(correlation_id=i32(correlation))) + written(answer(0))
                    connection.sendall(struct.pack(">i", len(body)) + body)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.close()


def test_a_broker_that_is_older_than_the_question_for_versions_is_asked_in_the_oldest() -> None:
    with old_broker() as port, Connection("127.0.0.1", port, timeout_s=5) as connection:
        assert connection.api_versions() == {}
        seen = connection.metadata(("log",))
        assert isinstance(seen, Metadata)
        assert [type(one) for one in seen.topics] == [TopicMetadata]
        state = connection.cluster_state()
        assert (state.controller, state.brokers) == (-1, (2,))
        assert [one.topic for one in state.partitions] == ["log"]


def test_a_broker_that_ends_while_it_is_asked_is_no_old_one() -> None:
    with (
        old_broker(lets_in_again=False) as port,
        Connection("127.0.0.1", port, timeout_s=2) as connection,
        pytest.raises(ProtocolError, match=f"127.0.0.1:{port}"),
    ):
        connection.metadata()
