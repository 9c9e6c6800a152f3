"""What a cluster is asked about itself beside its state: the levels of its features, a node's settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kio.schema.api_versions.v3 import request as versions_request
from kio.schema.api_versions.v3 import response as versions_response
from kio.schema.describe_configs.v4 import request as configs_request
from kio.schema.describe_configs.v4 import response as configs_response
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v3 import request as coordinator_request
from kio.schema.find_coordinator.v3 import response as coordinator_response
from kio.static.primitive import i8

from wrackline.systems.base import DeployError, Node
from wrackline.systems.protocol import Connection, ProtocolError

ASK_S = 2.0
"""How long one node may take."""
_BROKER = 4
"""The resource type of DescribeConfigs that stands for a node."""
_KEY_TYPES = {"group": 0, "transaction": 1}
_DEFAULT_CONFIG = 5
"""The source of a setting that nobody has given."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as a node runs with it."""

    name: str
    value: str | None
    """None: it is kept secret, or has none."""
    given: bool
    """False: it is the program's own default."""


def finalized_features(connection: Connection) -> dict[str, int]:
    """Name of each feature -> the level that the cluster runs at; none of a cluster that knows no features.
    Raises ProtocolError."""
    answer = connection.request(
        versions_request.ApiVersionsRequest(client_software_name="wrackline", client_software_version="1"),
        versions_response.ApiVersionsResponse,
    )
    if answer.error_code is not ErrorCode.none:
        raise ProtocolError(f"ApiVersions to {connection.address}: {answer.error_code.name}")
    return {one.name: int(one.max_version_level) for one in answer.finalized_features}


def effective_settings(connection: Connection, node_id: int) -> list[Setting]:
    """All settings of the node that is asked, by name. Raises ProtocolError."""
    resource = configs_request.DescribeConfigsResource(
        resource_type=i8(_BROKER), resource_name=str(node_id), configuration_keys=None
    )
    answer = connection.request(
        configs_request.DescribeConfigsRequest(resources=(resource,)),
        configs_response.DescribeConfigsResponse,
    )
    for result in answer.results:
        if result.error_code is not ErrorCode.none:
            said = f"{result.error_code.name}: {result.error_message or 'no message'}"
            raise ProtocolError(f"DescribeConfigs({node_id}) to {connection.address}: {said}")
    return sorted(
        (
            Setting(one.name, one.value, given=int(one.config_source) != _DEFAULT_CONFIG)
            for result in answer.results
            for one in result.configs
        ),
        key=lambda one: one.name,
    )


def coordinator_of(connection: Connection, what: str, name: str) -> int:
    """The node that coordinates a ``group`` or ``transaction``. Raises ProtocolError, also when there is none
    now."""
    answer = connection.request(
        coordinator_request.FindCoordinatorRequest(key=name, key_type=i8(_KEY_TYPES[what])),
        coordinator_response.FindCoordinatorResponse,
    )
    if answer.error_code is not ErrorCode.none:
        raise ProtocolError(f"FindCoordinator({name}) to {connection.address}: {answer.error_code.name}")
    return int(answer.node_id)


def first_answer(
    nodes: Sequence[Node],
    connect: Callable[[Node, float], Connection],
    question: Callable[[Connection], T],
    timeout_s: float,
) -> T:
    """Of the nodes in turn, again and again. Raises DeployError when nobody has answered in time."""
    deadline = time.monotonic() + timeout_s
    last = "nobody was asked"
    while True:
        for node in nodes:
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeployError(f"nobody answered within {timeout_s:g} s; last answer: {last}")
            try:
                with connect(node, min(left, ASK_S)) as connection:
                    return question(connection)
            except ProtocolError as wrong:
                last = f"{node.host.name}: {wrong}"
        time.sleep(0.1)


def features_of(
    nodes: Sequence[Node], connect: Callable[[Node, float], Connection], timeout_s: float
) -> Mapping[str, int]:
    """As any of these brokers reports them. Raises DeployError."""
    return first_answer(nodes, connect, finalized_features, timeout_s)
