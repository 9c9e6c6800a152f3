"""Metadata, the one question about a cluster that every version of Kafka answers, in the versions 0 to 12.

=======  ====================  ==============================================================================
version  Apache Kafka          what the answer has
=======  ====================  ==============================================================================
0        0.8.0                 brokers, leaders, replicas and ISR; nothing of the controller
1        0.10.0                the controller, and which topics are internal
4        0.11.0                a question that creates no topic (where brokers create them by themselves)
7        2.1                   leader epochs
10       2.8                   ids of topics
=======  ====================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from kio.schema.types import TopicName
from kio.static.protocol import RequestPayload, ResponsePayload

from wrackline.kafka_client.model import UNKNOWN, Broker, Metadata, PartitionState, TopicMetadata

KEY = 3
NEWEST = 12
_ALL_IS_NULL = 1
"""From this version on an empty list asks for no topic, and null for all; before it, empty asks for all."""
_CREATES_NONE = 4


def request_for(version: int, topics: Sequence[str] | None) -> tuple[RequestPayload, type[ResponsePayload]]:
    """Returns the request, and the schema of its answer. ``topics`` None: all.

    Before version 4 all are asked for, since a broker would create a topic that it is asked for by name;
    `metadata_of` then leaves out what was not asked for."""
    asking, answering = (
        import_module(f"kio.schema.metadata.v{version}.{one}") for one in ("request", "response")
    )
    if topics is None or version < _CREATES_NONE:
        names: Any = None if version >= _ALL_IS_NULL else ()
    else:
        no_id = {"topic_id": None} if "topic_id" in asking.MetadataRequestTopic.__dataclass_fields__ else {}
        names = tuple(asking.MetadataRequestTopic(name=TopicName(name), **no_id) for name in topics)
    fields = asking.MetadataRequest.__dataclass_fields__
    declined = {name: False for name in fields if name.startswith(("allow_", "include_"))}
    return asking.MetadataRequest(topics=names, **declined), answering.MetadataResponse


def metadata_of(answer: Any, topics: Sequence[str] | None) -> Metadata:
    """Translates an answer of any version."""
    return Metadata(
        int(getattr(answer, "controller_id", UNKNOWN)),
        tuple(_broker(one) for one in answer.brokers),
        tuple(_topic(one) for one in answer.topics if one.name and (topics is None or one.name in topics)),
    )


def _broker(one: Any) -> Broker:
    return Broker(int(one.node_id), str(one.host), int(one.port), getattr(one, "rack", None))


def _topic(topic: Any) -> TopicMetadata:
    name = str(topic.name)
    return TopicMetadata(
        name,
        topic.error_code,
        getattr(topic, "topic_id", None),
        bool(getattr(topic, "is_internal", name.startswith("__"))),
        tuple(
            PartitionState(
                topic=name,
                partition=int(one.partition_index),
                leader=int(one.leader_id),
                leader_epoch=int(getattr(one, "leader_epoch", UNKNOWN)),
                replicas=tuple(map(int, one.replica_nodes)),
                isr=tuple(map(int, one.isr_nodes)),
            )
            for one in topic.partitions
        ),
    )
