"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.wire.api import api, of_clients, passed_on
from wrackline.broker.wire.declarations import At, Each, Inline, Message, Row, message

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


def _refused(
    request: a.DescribeConfigsRequest, error: ErrorCode, why: str | None
) -> a.DescribeConfigsResponse:
    refused = (a.DescribedResource(resource, error=error, message=why) for resource, _ in request.resources)
    return a.DescribeConfigsResponse(tuple(refused))


_RESOURCE = Inline(message(a.Resource, kind="resource_type", name="resource_name"))
_CHANGE = message(a.ConfigChange, op=At("config_operation", absent=a.AlterOp.SET))
_REPLACEMENT = message(a.ConfigChange, op=At(absent=a.AlterOp.SET), lacking=("op",))


def _altering(model: type, change: Message) -> Message:
    resource = message(a.AlteredResource, resource=_RESOURCE, changes=Each("configs", change))
    return message(model, resources=Each("resources", resource))


_ALTERED = message(
    a.IncrementalAlterConfigsResponse,
    resources=Each("responses", message(a.ResourceOutcome, resource=_RESOURCE)),
)

APIS = (
    api(
        32,
        "DescribeConfigs",
        of_clients(1, 4),
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
        refuse=_refused,
    ),
    api(
        33,
        "AlterConfigs",
        passed_on(0, 2),
        request=_altering(a.AlterConfigsRequest, _REPLACEMENT),
        response=_ALTERED,
    ),
    api(
        44,
        "IncrementalAlterConfigs",
        passed_on(0, 1),
        request=_altering(a.IncrementalAlterConfigsRequest, _CHANGE),
        response=_ALTERED,
    ),
)
