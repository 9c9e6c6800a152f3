"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model import admin_messages as a
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Api
from wrackline.broker.wire.declarations import Each, Inline, Message, Row, at, message

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


def _described(
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


def _refused_description(
    request: a.DescribeConfigsRequest, error: ErrorCode, why: str | None
) -> a.DescribeConfigsResponse:
    refused = (a.DescribedResource(resource, error=error, message=why) for resource, _ in request.resources)
    return a.DescribeConfigsResponse(tuple(refused))


_RESOURCE = Inline(message(a.Resource, kind="resource_type", name="resource_name"))
_CHANGE = message(a.ConfigChange, op=at("config_operation", absent=a.AlterOp.SET))
_REPLACEMENT = message(a.ConfigChange, op=at(absent=a.AlterOp.SET), lacking=("op",))


def _altering(model: type, change: Message) -> Message:
    resource = message(a.AlteredResource, resource=_RESOURCE, changes=Each("configs", change))
    return message(model, resources=Each("resources", resource))


_ALTERED = message(
    a.IncrementalAlterConfigsResponse,
    resources=Each("responses", message(a.ResourceOutcome, resource=_RESOURCE)),
)

APIS = (
    Api(
        32,
        "DescribeConfigs",
        clients=(1, 4),
        open_on=(CLIENT,),
        request=message(
            a.DescribeConfigsRequest, resources=Each("resources", Row(_RESOURCE, "configuration_keys"))
        ),
        response=message(
            a.DescribeConfigsResponse,
            form=_DescribeConfigsResponse,
            prepare=_described,
            results=Each(
                "results",
                message(
                    _DescribedResource,
                    resource=_RESOURCE,
                    configs=Each(
                        "configs",
                        message(
                            _Setting,
                            fixed={"is_sensitive": False, "config_type": _STRING, "documentation": None},
                        ),
                    ),
                ),
            ),
        ),
        refuse=_refused_description,
    ),
    Api(
        33,
        "AlterConfigs",
        clients=(0, 2),
        sent=2,
        open_on=(CLIENT, CONTROLLER),
        request=_altering(a.AlterConfigsRequest, _REPLACEMENT),
        response=_ALTERED,
    ),
    Api(
        44,
        "IncrementalAlterConfigs",
        clients=(0, 1),
        sent=1,
        open_on=(CLIENT, CONTROLLER),
        request=_altering(a.IncrementalAlterConfigsRequest, _CHANGE),
        response=_ALTERED,
    ),
)
