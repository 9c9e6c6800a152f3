"""Consumer groups and transactions are not served: every client says so at once, and one that is assigned its
partitions works, with a group's id too."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import GroupAuthorizationFailedError, TransactionalIdAuthorizationFailed
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.errors import GroupAuthorizationFailedError as PythonGroupError
from kafka.errors import TransactionalIdAuthorizationFailedError as PythonTransactionError

from tests.broker.clients.logs import produce
from tests.broker.clients.loopback import Cluster
from wrackline.workloads.clients.store import ClientStore

pytestmark = pytest.mark.real

AT_ONCE_S = 10
"""A tenth of a second or two on an idle machine; before it was answered, clients tried for ever."""


@contextmanager
def at_once() -> Iterator[None]:
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < AT_ONCE_S


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    cluster.create_topic("ungrouped")
    produce(cluster.bootstrap, "ungrouped", [b"here"])
    return "ungrouped"


def consumer(cluster: Cluster, **more: object) -> Consumer:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "some", "log_level": 0}
    return Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest", **more})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_in_a_group(cluster: Cluster, topic: str, protocol: str) -> None:
    member = consumer(cluster, **{"group.protocol": protocol})
    member.subscribe([topic])
    with at_once():
        message = member.poll(AT_ONCE_S)
    member.close()
    assert message is not None
    assert message.error() is not None
    assert "Group authorization failed" in message.error().str()


def test_librdkafka_that_is_assigned_its_partitions_has_no_use_for_a_group(
    cluster: Cluster, topic: str
) -> None:
    reader = consumer(cluster)
    reader.assign([TopicPartition(topic, 0, 0)])
    message = reader.poll(AT_ONCE_S)
    assert message is not None
    assert message.value() == b"here"
    assert reader.poll(1) is None, "no error behind it"
    with at_once():
        (committed,) = reader.committed([TopicPartition(topic, 0)], timeout=AT_ONCE_S)
    assert (committed.offset, committed.error) == (OFFSET_INVALID, None)
    with at_once(), pytest.raises(KafkaException, match="Group authorization failed"):
        reader.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    reader.close()


# --- assigned, with a group id and no start: nothing was committed, so it begins at the reset -------------


def test_librdkafka_without_a_start(cluster: Cluster, topic: str) -> None:
    reader = consumer(cluster, **{"enable.auto.commit": True})
    reader.assign([TopicPartition(topic, 0)])
    with at_once():
        message = reader.poll(AT_ONCE_S)
    assert message is not None
    assert (message.error(), message.value()) == (None, b"here")
    assert reader.poll(1) is None, "no error behind it"
    reader.close()


def test_kafka_python_without_a_start(cluster: Cluster, topic: str) -> None:
    reader = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap,
        group_id="some",
        auto_offset_reset="earliest",
        consumer_timeout_ms=1_000 * AT_ONCE_S,
    )
    place = PythonPartition(topic, 0)
    reader.assign([place])
    with at_once():
        assert next(reader).value == b"here"
        assert reader.committed(place) is None
    reader.close()


def test_aiokafka_without_a_start(cluster: Cluster, topic: str) -> None:
    async def read() -> tuple[bytes | None, int | None]:
        reader = AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap, group_id="some", auto_offset_reset="earliest"
        )
        place = AioPartition(topic, 0)
        reader.assign([place])
        await reader.start()
        try:
            async with asyncio.timeout(AT_ONCE_S):
                return (await reader.getone()).value, await reader.committed(place)
        finally:
            await reader.stop()

    assert asyncio.run(read()) == (b"here", None)


JAVA = """
import sys
from wrackline.clients_java.library import Java

kafka = Java("4.1.0")._kafka()
deserializer = kafka.named("org.apache.kafka.common.serialization.ByteArrayDeserializer")
config = {"bootstrap.servers": sys.argv[1], "group.id": "some", "auto.offset.reset": "earliest"}
reader = kafka.made("consumer.KafkaConsumer", config, deserializer(), deserializer())
place = kafka.place(sys.argv[2], 0)
reader.assign(kafka.list([place]))
places = kafka.sets()
places.add(place)
print(reader.committed(places).get(place))
print([bytes(record.value()).decode() for record in reader.poll(kafka.ms(20.0))])
reader.close()
"""


@pytest.mark.nightly
def test_java_without_a_start(cluster: Cluster, topic: str) -> None:
    """In a process of its own: a JVM stays in its process for ever."""
    ClientStore().install("4.1.0")
    done = subprocess.run(
        [sys.executable, "-c", JAVA, cluster.bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == ["None", "['here']"], done.stderr


def test_librdkafka_in_a_transaction(cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "x", "log_level": 0})
    with at_once(), pytest.raises(KafkaException, match="transactions are not served") as raised:
        producer.init_transactions(2 * AT_ONCE_S)
    error = raised.value.args[0]
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error.fatal()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-G", "some", "ungrouped"], "JoinGroup failed: Broker: Group authorization failed"),
        (["-P", "-t", "ungrouped", "-X", "transactional.id=x"], "transactions are not served by this broker"),
    ],
)
@pytest.mark.usefixtures("topic")
def test_kcat(cluster: Cluster, arguments: list[str], says: str) -> None:
    with at_once():
        done = subprocess.run(
            ["kcat", "-b", cluster.bootstrap, *arguments],
            input="a record\n",
            capture_output=True,
            text=True,
            timeout=2 * AT_ONCE_S,
        )
    assert done.returncode == 1
    assert says in done.stderr


def test_kafka_python(cluster: Cluster, topic: str) -> None:
    settings = {"bootstrap_servers": cluster.bootstrap}
    reader = KafkaConsumer(topic, group_id="some", consumer_timeout_ms=20_000, **settings)
    with at_once(), pytest.raises(PythonGroupError):
        next(reader)
    reader.close(autocommit=False)
    producer = KafkaProducer(transactional_id="x", **settings)
    with at_once(), pytest.raises(PythonTransactionError):
        producer.init_transactions()
    producer.close(timeout=1)


def test_aiokafka(cluster: Cluster, topic: str) -> None:
    async def start(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
        try:
            async with asyncio.timeout(AT_ONCE_S):
                await client.start()
        finally:
            await client.stop()

    async def both() -> None:
        settings = {"bootstrap_servers": cluster.bootstrap}
        with pytest.raises(GroupAuthorizationFailedError):
            await start(AIOKafkaConsumer(topic, group_id="some", **settings))
        with pytest.raises(TransactionalIdAuthorizationFailed):
            await start(AIOKafkaProducer(transactional_id="x", **settings))

    asyncio.run(both())
