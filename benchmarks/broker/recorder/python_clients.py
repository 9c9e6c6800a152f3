"""What a broker of ours serves, and what it refuses, asked by the clients that are at home in Python, and by
kcat."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import KafkaError as AioError
from confluent_kafka import Consumer, ElectionType, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.admin import NewTopic as PythonTopic
from kafka.errors import KafkaError as PythonError

_WAIT_S = 15
_VALUES = [b"value %d" % number for number in range(20)]


def librdkafka_client(bootstrap: str) -> None:
    topic = "of-librdkafka"
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "client.id": "librdkafka",
        "log_level": 0,
    }
    admin = AdminClient(settings)

    def done(futures: Mapping[Any, Future[Any]]) -> None:
        # A refusal is an answer too: what counts is that it was asked.
        with suppress(KafkaException):
            for future in futures.values():
                future.result(_WAIT_S)

    done(admin.create_topics([NewTopic(topic, 2, 3, config={"min.insync.replicas": "2"})]))
    for more in ({}, {"enable.idempotence": True, "compression.type": "zstd"}):
        producer = Producer({**settings, "linger.ms": 20, **more})
        for value in _VALUES:
            producer.produce(topic, value, key=b"key", headers={"header": b"of C"}, partition=0)
        producer.flush(_WAIT_S)
    consumer = Consumer({**settings, "group.id": "some", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.consume(20, timeout=_WAIT_S)
    consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_WAIT_S)
    consumer.offsets_for_times([TopicPartition(topic, 0, 1_000)], timeout=_WAIT_S)
    with suppress(KafkaException):
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    with suppress(KafkaException):
        consumer.committed([TopicPartition(topic, 0)], timeout=_WAIT_S)
    consumer.close()
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entry = ConfigEntry("retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    done(admin.describe_configs([resource]))
    done(admin.incremental_alter_configs([changed]))
    done(admin.alter_configs([ConfigResource(ResourceType.TOPIC, topic, {"retention.ms": "86400000"})]))
    done(admin.create_partitions([NewPartitions(topic, 3)]))
    done({"": admin.describe_cluster()})
    done(admin.describe_topics(TopicCollection([topic])))
    done(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()}))
    done({"": admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)])})
    done(admin.delete_records([TopicPartition(topic, 0, 2)]))
    for protocol in ("classic", "consumer"):
        member = Consumer({**settings, "group.id": "some", "group.protocol": protocol})
        member.subscribe([topic])
        member.poll(_WAIT_S)
        member.close()
    with suppress(KafkaException):
        Producer({**settings, "transactional.id": "some"}).init_transactions(_WAIT_S)
    done(admin.delete_topics([topic]))


def kcat_client(bootstrap: str) -> None:
    kcat = ["kcat", "-b", bootstrap, "-X", "client.id=kcat"]
    for arguments in (
        ["-L"],
        ["-P", "-t", "of-kcat"],
        ["-C", "-t", "of-kcat", "-e"],
        ["-G", "some", "of-kcat"],
    ):
        subprocess.run([*kcat, *arguments], input=b"a record\n", timeout=_WAIT_S, capture_output=True)


def kafka_python_client(bootstrap: str) -> None:
    topic = "of-kafka-python"
    settings = {"bootstrap_servers": bootstrap.split(","), "client_id": "kafka-python"}
    admin = KafkaAdminClient(**settings)

    def attempt(call: Callable[[], object]) -> None:
        with suppress(PythonError):
            call()

    admin.create_topics([PythonTopic(topic, 2, 3)])
    producer = KafkaProducer(linger_ms=20, **settings)
    for value in _VALUES:
        producer.send(topic, value, key=b"key", headers=[("header", b"of Python")], partition=0)
    producer.flush(_WAIT_S)
    producer.close(_WAIT_S)
    first = PythonPartition(topic, 0)
    consumer = KafkaConsumer(consumer_timeout_ms=2_000, auto_offset_reset="earliest", **settings)
    consumer.assign([first])
    list(consumer)
    consumer.end_offsets([first])
    consumer.offsets_for_times({first: 1_000})
    consumer.close()
    attempt(lambda: admin.describe_cluster())
    attempt(lambda: admin.describe_topics([topic]))
    attempt(lambda: admin.delete_records({first: 2}, timeout_ms=10_000))
    member = KafkaConsumer(topic, group_id="some", consumer_timeout_ms=5_000, **settings)
    attempt(lambda: next(member))
    member.close(autocommit=False)
    transactional = KafkaProducer(transactional_id="some", **settings)
    attempt(transactional.init_transactions)
    transactional.close(1)
    attempt(lambda: admin.delete_topics([topic]))
    admin.close()


def aiokafka_client(bootstrap: str) -> None:
    asyncio.run(_aiokafka(bootstrap, "of-aiokafka"))


async def _aiokafka(bootstrap: str, topic: str) -> None:
    settings = {"bootstrap_servers": bootstrap, "client_id": "aiokafka"}
    producer = AIOKafkaProducer(enable_idempotence=True, **settings)
    await producer.start()
    for value in _VALUES:
        await producer.send_and_wait(
            topic, value, key=b"key", headers=[("header", b"of asyncio")], partition=0
        )
    await producer.stop()
    consumer = AIOKafkaConsumer(auto_offset_reset="earliest", **settings)
    await consumer.start()
    consumer.assign([AioPartition(topic, 0)])
    async with asyncio.timeout(_WAIT_S):
        for _ in _VALUES:
            await consumer.getone()
    await consumer.end_offsets([AioPartition(topic, 0)])
    await consumer.stop()
    for refused in (
        AIOKafkaConsumer(topic, group_id="some", **settings),
        AIOKafkaProducer(transactional_id="some", **settings),
    ):
        with suppress(AioError, TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                await refused.start()
        await refused.stop()
