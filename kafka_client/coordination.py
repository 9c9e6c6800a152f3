"""Questions about transactions and groups, and how far consumers may read: to the leader of a partition, to a
coordinator. Each takes a connection to the broker that is to answer, and raises ProtocolError; Rejected for
an error code that concerns all that was asked.

ListOffsets is asked as Kafka has understood it since 0.11, OffsetFetch since 2.1, what an administrator
asks of transactions since 3.0 (KIP-664).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kio.schema.describe_producers.v0 import DescribeProducersRequest, DescribeProducersResponse
from kio.schema.describe_producers.v0.request import TopicRequest
from kio.schema.describe_transactions.v0 import DescribeTransactionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v2 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v2.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.list_transactions.v0 import ListTransactionsRequest, ListTransactionsResponse
from kio.schema.offset_fetch.v5 import OffsetFetchRequest, OffsetFetchResponse
from kio.schema.offset_fetch.v5.request import OffsetFetchRequestTopic
from kio.schema.types import BrokerId, GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i8, i32, i64

from wrackline.kafka_client.connection import LATEST, Connection, by_topic
from wrackline.kafka_client.model import Place
from wrackline.kafka_client.own_schemas import DescribeTransactionsResponse
from wrackline.kafka_client.transport import Rejected

LIST_OFFSETS, OFFSET_FETCH, LIST_REASSIGNMENTS = 2, 9, 46
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
"""Keys of the requests, for whoever looks whether a broker knows them."""


@dataclass(frozen=True, slots=True)
class OpenProducer:
    """A producer with a transaction that is open in a partition, by its leader."""

    producer_id: int
    epoch: int
    first_offset: int
    """Of the transaction: the last stable offset does not pass it."""


@dataclass(frozen=True, slots=True)
class TransactionState:
    """A transaction as its coordinator has it."""

    transactional_id: str
    producer_id: int
    epoch: int
    state: str
    """``Ongoing``, ``PrepareCommit``, ``CompleteAbort`` and so on."""
    timeout_s: float


def knows(connection: Connection, key: int, version: int = 0) -> bool:
    """Tells whether the broker understands this version of a request."""
    lowest, highest = connection.api_versions().get(key, (0, -1))
    return lowest <= version <= highest


def end_offsets(
    connection: Connection, places: Iterable[Place], *, committed: bool
) -> dict[Place, int | ErrorCode]:
    """Returns the end of each partition that the broker leads, or the error that it has in place of one.
    ``committed``: as far as a consumer of committed records may read, which is the last stable offset; else
    the high watermark."""
    topics = tuple(
        ListOffsetsTopic(
            name=TopicName(topic),
            partitions=tuple(
                ListOffsetsPartition(partition_index=i32(one), timestamp=i64(LATEST)) for one in partitions
            ),
        )
        for topic, partitions in by_topic((place, place[1]) for place in sorted(places))
    )
    request = ListOffsetsRequest(replica_id=BrokerId(-1), isolation_level=i8(committed), topics=topics)
    return {
        (str(topic.name), int(one.partition_index)): int(one.offset)
        if one.error_code is ErrorCode.none
        else one.error_code
        for topic in connection.request(request, ListOffsetsResponse).topics
        for one in topic.partitions
    }


def open_producers(connection: Connection, places: Iterable[Place]) -> dict[Place, list[OpenProducer]]:
    """Returns the producers whose transactions are open, in partitions that the broker leads."""
    topics = tuple(
        TopicRequest(name=TopicName(topic), partition_indexes=tuple(map(i32, partitions)))
        for topic, partitions in by_topic((place, place[1]) for place in sorted(places))
    )
    answer = connection.request(DescribeProducersRequest(topics=topics), DescribeProducersResponse)
    return {
        (str(topic.name), int(partition.partition_index)): sorted(
            (
                OpenProducer(int(one.producer_id), int(one.producer_epoch), int(one.current_txn_start_offset))
                for one in partition.active_producers
                if one.current_txn_start_offset >= 0
            ),
            key=lambda one: one.first_offset,
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


def transaction(connection: Connection, transactional_id: str) -> TransactionState | None:
    """Returns the state of a transaction that the broker coordinates; None where nothing is known of it."""
    request = DescribeTransactionsRequest(transactional_ids=(TransactionalId(transactional_id),))
    for one in connection.request(request, DescribeTransactionsResponse).transaction_states:
        if one.error_code is ErrorCode.transactional_id_not_found:
            return None
        if one.error_code is not ErrorCode.none:
            raise Rejected(f"DescribeTransactions({transactional_id})", one.error_code)
        return TransactionState(
            transactional_id,
            int(one.producer_id),
            int(one.producer_epoch),
            one.transaction_state,
            one.transaction_timeout.total_seconds(),
        )
    return None


def transactions_of(connection: Connection, producer_ids: Collection[int]) -> Mapping[int, str]:
    """Returns producer id -> transactional id, of those that the broker coordinates."""
    request = ListTransactionsRequest(
        state_filters=(), producer_id_filters=tuple(map(ProducerId, sorted(producer_ids)))
    )
    answer = connection.request(request, ListTransactionsResponse)
    if answer.error_code is not ErrorCode.none:
        raise Rejected("ListTransactions", answer.error_code)
    return {int(one.producer_id): str(one.transactional_id) for one in answer.transaction_states}


def fetch_committed(connection: Connection, group: str, place: Place) -> int:
    """Returns the offset that a group has committed in one partition, by its coordinator; -1 for none."""
    topic = OffsetFetchRequestTopic(name=TopicName(place[0]), partition_indexes=(i32(place[1]),))
    request = OffsetFetchRequest(group_id=GroupId(group), topics=(topic,))
    answer = connection.request(request, OffsetFetchResponse)
    each = [one for of_topic in answer.topics for one in of_topic.partitions]
    for error in (answer.error_code, *(one.error_code for one in each)):
        if error is not ErrorCode.none:
            raise Rejected(f"OffsetFetch({group})", error)
    return max((int(one.committed_offset) for one in each), default=-1)
