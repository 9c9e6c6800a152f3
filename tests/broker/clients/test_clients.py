"""Unmodified clients work with our brokers: librdkafka, kafka-python, aiokafka and kcat."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from tests.broker.clients.logs import consume, end_offset, produce
from tests.broker.clients.loopback import Cluster, wait_for

pytestmark = pytest.mark.real


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_reads_what_it_wrote_in_every_compression(cluster: Cluster, codec: str) -> None:
    topic = f"compressed-{codec}"
    cluster.create_topic(topic)
    values = [b"%d:" % i + b"compressible " * 40 for i in range(500)]
    acked = produce(cluster.bootstrap, topic, values, compression_type=codec, linger_ms=5)
    assert sorted(acked.values()) == list(range(500))
    assert consume(cluster.bootstrap, topic, 500) == sorted(
        (offset, value) for value, offset in acked.items()
    )


def test_an_idempotent_producer_keeps_five_requests_in_flight(cluster: Cluster) -> None:
    cluster.create_topic("idempotent", partitions=3)
    for partition in range(3):
        values = [b"%d" % i for i in range(2_000)]
        acked = produce(
            cluster.bootstrap,
            "idempotent",
            values,
            partition=partition,
            enable_idempotence=True,
            batch_num_messages=20,
        )
        assert [acked[value] for value in values] == list(range(2_000)), "in the order they were sent"


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(cluster: Cluster, acks: object) -> None:
    topic = f"acks-{acks}"
    cluster.create_topic(topic)
    produce(cluster.bootstrap, topic, [b"%d" % i for i in range(100)], acks=acks)
    assert [value for _, value in consume(cluster.bootstrap, topic, 100)] == [b"%d" % i for i in range(100)]


def test_big_records_and_many_segments(cluster: Cluster) -> None:
    """65 KiB segments, so reads cross many rolls, and batches are bigger than one fetch of a small reader."""
    cluster.create_topic("big")
    values = [b"%06d" % i + bytes([i % 251]) * 30_000 for i in range(60)]
    acked = produce(cluster.bootstrap, "big", values, linger_ms=0, message_max_bytes=1_000_000)
    assert len(acked) == 60
    got = consume(
        cluster.bootstrap, "big", 60, **{"fetch.message.max.bytes": 10_000, "fetch.max.bytes": 1_000_000}
    )
    assert [value for _, value in got] == values


def test_a_consumer_waits_for_what_comes_later(cluster: Cluster) -> None:
    cluster.create_topic("later")

    async def both() -> tuple[float, float]:
        waiting = asyncio.create_task(asyncio.to_thread(consume, cluster.bootstrap, "later", 1))
        await asyncio.sleep(1.0)
        begin = time.monotonic()
        await asyncio.to_thread(produce, cluster.bootstrap, "later", [b"now"])
        await waiting
        return begin, time.monotonic()

    begin, end = asyncio.run(both())
    assert end - begin < 1.5, "the long poll was woken, it did not run out"


def test_offsets_by_time(cluster: Cluster) -> None:
    cluster.create_topic("times")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    for i in range(50):
        producer.produce("times", b"%d" % i, partition=0, timestamp=1_000_000 + 10 * i)
        producer.flush(5)
    where = TopicPartition("times", 0)
    admin = cluster.admin()

    def offset(spec: OffsetSpec) -> int:
        return int(admin.list_offsets({where: spec})[where].result(10).offset)

    assert offset(OffsetSpec.for_timestamp(1_000_000)) == 0
    assert offset(OffsetSpec.for_timestamp(1_000_105)) == 11
    assert offset(OffsetSpec.for_timestamp(2_000_000)) == -1
    assert offset(OffsetSpec.max_timestamp()) == 49
    assert offset(OffsetSpec.latest()) == 50
    assert offset(OffsetSpec.earliest()) == 0


def test_topics_are_made_described_and_deleted(cluster: Cluster) -> None:
    cluster.create_topic("short-lived", partitions=4, min_insync_replicas="1")
    admin = cluster.admin()
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([NewTopic("short-lived", 1, 1)])["short-lived"].result(10)
    assert failure.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([NewTopic("too-wide", 1, 9)])["too-wide"].result(10)
    assert failure.value.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR
    partitions = cluster.describe("short-lived")
    assert sorted(partitions) == [0, 1, 2, 3]
    assert all(sorted(part.replicas) == [1, 2, 3] for part in partitions.values())
    produce(cluster.bootstrap, "short-lived", [b"x"])
    folders = [node.data_dir / "short-lived-0" for node in cluster.brokers.values()]
    assert all(folder.is_dir() for folder in folders)
    admin.delete_topics(["short-lived"])["short-lived"].result(10)
    wait_for("the deletion of the logs", lambda: not any(folder.exists() for folder in folders))
    cluster.create_topic("short-lived")
    assert end_offset(cluster.bootstrap, "short-lived") == 0


def test_describe_cluster(cluster: Cluster) -> None:
    found = cluster.admin().describe_cluster().result(10)
    assert found.cluster_id == "loopback"
    assert sorted(node.id for node in found.nodes) == [1, 2, 3]


def test_kafka_python(cluster: Cluster) -> None:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as Partition

    cluster.create_topic("kafka-python")
    values = [b"%d" % i for i in range(300)]
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), acks="all", compression_type="gzip", linger_ms=5
    )
    futures = [producer.send("kafka-python", value, partition=0) for value in values]
    assert [future.get(10).offset for future in futures] == list(range(300))
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap.split(","), enable_auto_commit=False, consumer_timeout_ms=5_000
    )
    consumer.assign([Partition("kafka-python", 0)])
    consumer.seek(Partition("kafka-python", 0), 0)
    got = [next(consumer).value for _ in values]
    assert consumer.end_offsets([Partition("kafka-python", 0)]) == {Partition("kafka-python", 0): 300}
    consumer.close()
    assert got == values


def test_kafka_python_admin(cluster: Cluster) -> None:
    from kafka.admin import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    admin.create_topics({"kafka-python-admin": {"num_partitions": 2, "replication_factor": 3}})
    wait_for("the topic", lambda: "kafka-python-admin" in cluster.admin().list_topics(timeout=5).topics)
    admin.delete_topics(["kafka-python-admin"])
    wait_for("its end", lambda: "kafka-python-admin" not in cluster.admin().list_topics(timeout=5).topics)
    admin.close()


@pytest.mark.parametrize("idempotent", [False, True])
def test_aiokafka(cluster: Cluster, idempotent: bool) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka import TopicPartition as Partition

    topic = f"aiokafka-{idempotent}"
    cluster.create_topic(topic)
    values = [b"%d" % i for i in range(300)]

    async def both() -> tuple[list[int], list[bytes]]:
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap,
            acks="all",
            enable_idempotence=idempotent,
            compression_type="gzip",
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, value, partition=0) for value in values]
            offsets = [(await future).offset for future in sent]
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap, enable_auto_commit=False)
        await consumer.start()
        try:
            consumer.assign([Partition(topic, 0)])
            consumer.seek(Partition(topic, 0), 0)
            got = [(await asyncio.wait_for(consumer.getone(), 10)).value for _ in values]
        finally:
            await consumer.stop()
        return offsets, got

    offsets, got = asyncio.run(both())
    assert offsets == list(range(300))
    assert got == values


def test_kcat(cluster: Cluster) -> None:
    kcat = shutil.which("kcat")
    assert kcat is not None, "kcat is missing: apt-get install kcat"
    cluster.create_topic("kcat")
    text = "".join(f"line {i}\n" for i in range(200))
    base = [kcat, "-b", cluster.bootstrap, "-t", "kcat", "-p", "0"]
    subprocess.run([*base, "-P", "-z", "lz4"], input=text, text=True, check=True, timeout=20)
    read = subprocess.run(
        [*base, "-C", "-e", "-q", "-o", "beginning"], capture_output=True, text=True, check=True, timeout=20
    )
    assert read.stdout == text
    listed = subprocess.run(
        [kcat, "-b", cluster.bootstrap, "-L"], capture_output=True, text=True, check=True, timeout=20
    )
    assert 'topic "kcat" with 1 partitions' in listed.stdout


def test_every_replica_holds_the_same_bytes(cluster: Cluster) -> None:
    cluster.create_topic("replicas")
    produce(cluster.bootstrap, "replicas", [b"%d" % i * 50 for i in range(3_000)], batch_num_messages=50)

    def contents() -> list[dict[str, bytes]]:
        return [
            {path.name: path.read_bytes() for path in (node.data_dir / "replicas-0").glob("*.log")}
            for node in cluster.brokers.values()
        ]

    assert len(contents()[0]) > 1, "several segments"
    wait_for("equal segments on all replicas", lambda: contents()[0] == contents()[1] == contents()[2])
