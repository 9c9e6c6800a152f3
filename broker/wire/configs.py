"""DescribeConfigs (key 32, versions 1 to 4), AlterConfigs (key 33, 0 to 2) and IncrementalAlterConfigs (key
44, 0 and 1). The last two differ in the names of their messages, and in the kind of each change."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.messages.admin import (
    AlterConfigsRequest,
    AlteredResource,
    AlterOp,
    ConfigChange,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    Resource,
    ResourceOutcome,
    Setting,
)
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames
from wrackline.broker.wire.schema import Schema

_STRING = 2
"""Kafka's number for the type of a setting's value."""


def decode_describe(entity: Any, _: TopicNames) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        tuple(
            (
                Resource(item.resource_type, item.resource_name),
                None if item.configuration_keys is None else tuple(item.configuration_keys),
            )
            for item in entity.resources
        ),
        getattr(entity, "include_synonyms", False),
    )


def encode_describe_response(
    schema: Schema, request: DescribeConfigsRequest, response: DescribeConfigsResponse
) -> Any:
    return schema.make(
        "DescribeConfigsResponse",
        throttle_time=NO_THROTTLE,
        results=tuple(
            schema.make(
                "DescribeConfigsResult",
                error_code=found.error,
                error_message=found.message,
                resource_type=found.resource.kind,
                resource_name=found.resource.name,
                configs=tuple(
                    _setting(schema, values, request.include_synonyms) for values in found.settings
                ),
            )
            for found in response.resources
        ),
    )


def _setting(schema: Schema, values: tuple[Setting, ...], include_synonyms: bool) -> Any:
    holds = values[0]
    synonyms = ()
    if include_synonyms:
        synonyms = tuple(
            schema.make("DescribeConfigsSynonym", name=each.name, value=each.value, source=int(each.source))
            for each in values
        )
    return schema.make(
        "DescribeConfigsResourceResult",
        name=holds.name,
        value=holds.value,
        read_only=holds.read_only,
        config_source=int(holds.source),
        is_sensitive=False,
        synonyms=synonyms,
        config_type=_STRING,
        documentation=None,
    )


def decode_alter(entity: Any, _: TopicNames) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        tuple(
            AlteredResource(
                Resource(item.resource_type, item.resource_name),
                tuple(
                    ConfigChange(change.name, getattr(change, "config_operation", AlterOp.SET), change.value)
                    for change in item.configs
                ),
            )
            for item in entity.resources
        ),
        entity.validate_only,
    )


def decode_replace(entity: Any, names: TopicNames) -> AlterConfigsRequest:
    asked = decode_alter(entity, names)
    return AlterConfigsRequest(asked.resources, asked.validate_only)


def encode_alter_request(schema: Schema, request: IncrementalAlterConfigsRequest) -> Any:
    make = schema.make
    return make(
        schema.root.__name__,
        resources=tuple(
            make(
                "AlterConfigsResource",
                resource_type=item.resource.kind,
                resource_name=item.resource.name,
                configs=tuple(
                    make(
                        "AlterableConfig",
                        name=change.name,
                        config_operation=int(change.op),
                        value=change.value,
                    )
                    for change in item.changes
                ),
            )
            for item in request.resources
        ),
        validate_only=request.validate_only,
    )


def encode_alter_response(
    schema: Schema, _: IncrementalAlterConfigsRequest, response: IncrementalAlterConfigsResponse
) -> Any:
    return schema.make(
        schema.root.__name__,
        throttle_time=NO_THROTTLE,
        responses=tuple(
            schema.make(
                "AlterConfigsResourceResponse",
                error_code=item.error,
                error_message=item.message,
                resource_type=item.resource.kind,
                resource_name=item.resource.name,
            )
            for item in response.resources
        ),
    )


def decode_alter_response(entity: Any, _: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        tuple(
            ResourceOutcome(
                Resource(item.resource_type, item.resource_name), item.error_code, item.error_message
            )
            for item in entity.responses
        )
    )
