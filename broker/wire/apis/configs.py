"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.wire.api import api, client_access, forwarded_access
from wrackline.broker.wire.translation.declarations import Array, FieldPath, Inline, Items, Message, message

_STRING = 2
"""Kafka's number for the type of a setting's value."""


class _Synonym(NamedTuple):
    name: str
    value: str | None
    source: int


class _Setting(NamedTuple):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    synonyms: tuple[_Synonym, ...]


@dataclass(frozen=True, slots=True)
class _DescribedResource:
    resource: a.Resource
    error: ErrorCode
    message: str | None
    configs: tuple[_Setting, ...]


@dataclass(frozen=True, slots=True)
class _DescribeConfigsResponse:
    results: tuple[_DescribedResource, ...]


def _form_of_response(
    response: a.DescribeConfigsResponse, request: a.DescribeConfigsRequest, _: int
) -> _DescribeConfigsResponse:
    def setting(values: tuple[a.Setting, ...]) -> _Setting:
        holds = values[0]
        synonyms = (_Synonym(each.name, each.value, each.source) for each in values)
        return _Setting(
            holds.name,
            holds.value,
            holds.read_only,
            holds.source,
            tuple(synonyms) if request.include_synonyms else (),
        )

    return _DescribeConfigsResponse(
        tuple(
            _DescribedResource(each.resource, each.error, each.message, tuple(map(setting, each.settings)))
            for each in response.resources
        )
    )


def _refusal(
    request: a.DescribeConfigsRequest, error: ErrorCode, why: str | None
) -> a.DescribeConfigsResponse:
    refused = (a.DescribedResource(resource, error=error, message=why) for resource, _ in request.resources)
    return a.DescribeConfigsResponse(tuple(refused))


_RESOURCE = Inline(message(a.Resource, kind="resource_type", name="resource_name"))
_CHANGE = message(a.ConfigChange, op=FieldPath("config_operation", absent=a.AlterOp.SET))
_REPLACEMENT = message(a.ConfigChange, op=FieldPath(absent=a.AlterOp.SET), missing=("op",))


def _alteration(model: type, change: Message) -> Message:
    resource = message(a.AlteredResource, resource=_RESOURCE, changes=Array("configs", change))
    return message(model, resources=Array("resources", resource))


_OUTCOMES = message(
    a.IncrementalAlterConfigsResponse,
    resources=Array("responses", message(a.ResourceOutcome, resource=_RESOURCE)),
)

APIS = (
    api(
        32,
        "DescribeConfigs",
        client_access(1, 4),
        request=message(
            a.DescribeConfigsRequest, resources=Array("resources", Items(_RESOURCE, "configuration_keys"))
        ),
        response=message(
            a.DescribeConfigsResponse,
            form=_DescribeConfigsResponse,
            to_form=_form_of_response,
            results=Array(
                "results",
                message(
                    _DescribedResource,
                    resource=_RESOURCE,
                    configs=Array(
                        "configs",
                        message(
                            _Setting,
                            constants={"is_sensitive": False, "config_type": _STRING, "documentation": None},
                        ),
                    ),
                ),
            ),
        ),
        refuse=_refusal,
    ),
    api(
        33,
        "AlterConfigs",
        forwarded_access(0, 2),
        request=_alteration(a.AlterConfigsRequest, _REPLACEMENT),
        response=_OUTCOMES,
    ),
    api(
        44,
        "IncrementalAlterConfigs",
        forwarded_access(0, 1),
        request=_alteration(a.IncrementalAlterConfigsRequest, _CHANGE),
        response=_OUTCOMES,
    ),
)
