"""Questions about how far consumers may read, put to our own broker over a real socket, and the errors of
coordinators. Apache Kafka is asked in tests/harness/run/liveness/test_on_hosts.py."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

import pytest
from kio.schema.describe_producers.v0.response import DescribeProducersResponse
from kio.schema.describe_transactions.v0 import response as kio_schemas
from kio.schema.errors import ErrorCode
from kio.schema.offset_fetch.v5.response import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.serial import entity_reader
from kio.serial.errors import SerialError
from kio.static.constants import EntityType
from kio.static.primitive import TZAware, i16, i32, i64

from tests.broker.clients.logs import produce
from tests.broker.clients.loopback import Cluster, wait_for
from wrackline import kafka_client
from wrackline.kafka_client import coordination
from wrackline.kafka_client.connection import Connection, duration
from wrackline.kafka_client.model import TopicSpec
from wrackline.kafka_client.own_schemas import DescribedTransaction, DescribeTransactionsResponse
from wrackline.kafka_client.transport import Rejected


def test_a_leader_says_where_its_partitions_end_and_a_follower_that_it_does_not_lead(tmp_path: Any) -> None:
    with Cluster(tmp_path) as cluster:
        with Connection("127.0.0.1", cluster.brokers[1].port, timeout_s=10) as first:
            first.create_topic(TopicSpec("log", 2, 3, {}), timeout_s=10)
            wait_for(
                "the leaders",
                lambda: (
                    len(found := first.cluster_state(["log"]).partitions) == 2
                    and all(one.leader > 0 for one in found)
                ),
            )
            leaders = {one.place: one.leader for one in first.cluster_state(["log"]).partitions}
        produce(cluster.bootstrap, "log", [b"a", b"b", b"c"])
        places = sorted(leaders)
        for node in set(leaders.values()):
            with Connection("127.0.0.1", cluster.brokers[node].port, timeout_s=10) as asked:
                assert coordination.knows(asked, coordination.LIST_OFFSETS, 2)
                assert not coordination.knows(asked, coordination.DESCRIBE_TRANSACTIONS)
                for committed in (False, True):
                    ends = coordination.end_offsets(asked, places, committed=committed)
                    assert ends == {
                        place: (3 if place == ("log", 0) else 0)
                        if leaders[place] == node
                        else ErrorCode.not_leader_or_follower
                        for place in places
                    }


class Answer:
    """A connection that gives one answer."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def request(self, *_: Any) -> Any:
        return self._answer


def described(error: ErrorCode) -> Any:
    state = DescribedTransaction(
        error_code=error,
        transactional_id=TransactionalId("x"),
        transaction_state="PrepareCommit",
        transaction_timeout=duration(5),
        transaction_start_time=i64(0),
        producer_id=ProducerId(12),
        producer_epoch=i16(3),
        topics=(),
    )
    return Answer(DescribeTransactionsResponse(throttle_time=duration(0), transaction_states=(state,)))


def test_a_transaction_is_told_in_one_value_and_one_that_nobody_has_is_none() -> None:
    one = coordination.transaction(described(ErrorCode.none), "x")
    assert one == coordination.TransactionState("x", 12, 3, "PrepareCommit", 5.0)
    assert coordination.transaction(described(ErrorCode.transactional_id_not_found), "x") is None
    with pytest.raises(Rejected, match="not_coordinator"):
        coordination.transaction(described(ErrorCode.not_coordinator), "x")


@pytest.mark.parametrize("whole", [True, False])
def test_an_error_of_a_group_or_of_its_partition_is_no_offset(whole: bool) -> None:
    def answer(error: ErrorCode) -> Any:
        partition = OffsetFetchResponsePartition(
            partition_index=i32(0),
            committed_offset=i64(7),
            metadata=None,
            error_code=ErrorCode.none if whole else error,
        )
        topic = OffsetFetchResponseTopic(name=TopicName("log"), partitions=(partition,))
        return Answer(
            OffsetFetchResponse(
                throttle_time=duration(0), topics=(topic,), error_code=error if whole else ErrorCode.none
            )
        )

    assert coordination.fetch_committed(answer(ErrorCode.none), "g", ("log", 0)) == 7
    with pytest.raises(Rejected, match="coordinator_load_in_progress"):
        coordination.fetch_committed(answer(ErrorCode.coordinator_load_in_progress), "g", ("log", 0))


class Octets:
    """A connection whose answers have this body."""

    def __init__(self, *parts: bytes) -> None:
        self._body = b"".join(parts)

    def request(self, _: Any, answer: type[Any]) -> Any:
        response, end = entity_reader(answer)(self._body, 0)
        assert end == len(self._body)
        return response


NO_TRANSACTION = (
    struct.pack(">i", 0),  # throttled
    b"\x02" + b"\0\0" + b"\x02x" + b"\x0fCompleteCommit",
    struct.pack(">iqqh", 5_000, -1, 12, 3),  # time-out, start, producer, epoch
    b"\x01\0" + b"\0",
)
"""How Apache Kafka describes a transactional id without an open transaction."""


def test_a_transaction_that_has_not_begun_has_no_start() -> None:
    one = coordination.transaction(Octets(*NO_TRANSACTION), "x")  # type: ignore[arg-type]
    assert one == coordination.TransactionState("x", 12, 3, "CompleteCommit", 5.0)
    with pytest.raises(SerialError, match="negative timestamp"):
        Octets(*NO_TRANSACTION).request(None, kio_schemas.DescribeTransactionsResponse)


def test_a_producer_may_have_nothing_but_its_id_and_an_open_transaction() -> None:
    producers = (
        struct.pack(">qiiqiq", 12, -1, -1, -1, -1, 5) + b"\0",
        struct.pack(">qiiqiq", 13, 0, -1, -1, -1, -1) + b"\0",
    )
    answer = Octets(
        struct.pack(">i", 0),
        b"\x02" + b"\x04log",
        b"\x02" + struct.pack(">ih", 0, 0) + b"\0",
        b"\x03" + b"".join(producers),
        b"\0" * 3,
    )
    assert coordination.open_producers(answer, [("log", 0)]) == {  # type: ignore[arg-type]
        ("log", 0): [coordination.OpenProducer(12, -1, 5)]
    }


def times(entity: Any) -> Iterator[str]:
    """The fields of a schema that refuse -1, which is Kafka's word for no time."""
    for one in fields(entity):
        if one.type is TZAware:
            yield f"{entity.__module__}.{entity.__name__}.{one.name}"
        for inner in (one.type, *get_args(one.type)):
            if is_dataclass(inner):
                yield from times(inner)


def test_no_answer_that_the_client_reads_has_a_time_that_cannot_be_none() -> None:
    modules = [
        import_module(f"{kafka_client.__name__}.{one.name}") for one in iter_modules(kafka_client.__path__)
    ]
    answers = {
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and getattr(one, "__type__", None) is EntityType.response
    }
    assert {DescribeProducersResponse, DescribeTransactionsResponse} < answers
    assert list(times(kio_schemas.DescribeTransactionsResponse)), "kio needs no mending any more"
    assert [line for one in answers for line in times(one)] == []
