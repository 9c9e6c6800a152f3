"""Answers to DescribeConfigs from the image of a broker (docs/protocol.md 5.1, key 32).

For each setting the values that could hold, the one that does first: the topic's own, the cluster's made by
clients, the cluster's from the controller's file, what is built in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum

from kio.schema.errors import ErrorCode

from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.messages.admin import (
    BROKER,
    TOPIC,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedResource,
    Resource,
    Setting,
    Source,
)
from wrackline.broker.model.metadata.image import CLUSTER_DEFAULTS, CLUSTER_DYNAMIC, ClusterImage
from wrackline.broker.rules.placement.topics import CLUSTER_SETTINGS, SETTINGS

_BUILT_IN = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
}
Values = tuple[Setting, ...]


def describe_configs(
    image: ClusterImage, config: BrokerConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        tuple(_resource(image, config, resource, wanted) for resource, wanted in request.resources)
    )


def _resource(
    image: ClusterImage, config: BrokerConfig, resource: Resource, wanted: tuple[str, ...] | None
) -> DescribedResource:
    if resource.kind == TOPIC:
        if resource.name not in image.topics_by_name:
            why = f"there is no topic {resource.name!r}"
            return DescribedResource(resource, error=ErrorCode.unknown_topic_or_partition, message=why)
        result = [_topic_setting(image, config, resource.name, name) for name in sorted(SETTINGS)]
    elif resource.kind == BROKER and resource.name in ("", str(config.node_id)):
        result = [tuple(_cluster_values(image, name)) for name in sorted(CLUSTER_SETTINGS)]
        if resource.name:
            result += _own(config)
    else:
        why = f"resource {resource.name!r} of type {resource.kind}: ask that broker itself, or for a topic"
        return DescribedResource(resource, error=ErrorCode.invalid_request, message=why)
    listed = tuple(values for values in result if values and (wanted is None or values[0].name in wanted))
    return DescribedResource(resource, listed)


def _topic_setting(image: ClusterImage, config: BrokerConfig, topic: str, name: str) -> Values:
    """Empty for a setting that nobody has made and that has no value of its own here."""
    values = []
    own = image.topic_config(topic, name)
    if own is not None:
        values.append(Setting(name, own, Source.TOPIC))
    values += _cluster_values(image, name)
    if name == "max.message.bytes":
        values.append(Setting(name, str(config.max_message_bytes), Source.STATIC))
    if name in _BUILT_IN:
        values.append(Setting(name, _BUILT_IN[name], Source.DEFAULT))
    return tuple(values)


def _cluster_values(image: ClusterImage, name: str) -> Iterator[Setting]:
    for key, source in ((CLUSTER_DYNAMIC, Source.CLUSTER), (CLUSTER_DEFAULTS, Source.STATIC)):
        value = image.configs.get(key, {}).get(name)
        if value is not None:
            yield Setting(name, value, source)


def _own(config: BrokerConfig) -> list[Values]:
    """The broker's file, in Kafka's spelling: to be read, not to be changed here."""
    listed: list[Values] = []
    for spec in fields(config):
        value = getattr(config, spec.name)
        if isinstance(value, bool):
            text = "true" if value else "false"
        elif isinstance(value, Enum):
            text = str(value.value)
        elif isinstance(value, str | int):
            text = str(value)
        else:
            continue
        listed.append((Setting(spec.name.replace("_", "."), text, Source.STATIC, read_only=True),))
    return listed
