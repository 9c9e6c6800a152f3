"""The function that decides each request that may change the cluster (docs/protocol.md 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.brokers import Brokers, allocate_producer_ids, unregister
from wrackline.broker.core.controller.decisions.configs import alter_configs
from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.elections import elect_leaders
from wrackline.broker.core.controller.decisions.features import update_features
from wrackline.broker.core.controller.decisions.partitions import alter_partition
from wrackline.broker.core.controller.decisions.reassignments import alter_reassignments, list_reassignments
from wrackline.broker.core.controller.decisions.topics import create_partitions, create_topics, delete_topics
from wrackline.broker.model.messages import admin
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
)
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest
from wrackline.broker.model.messages.requests import Refused, Request, Response
from wrackline.broker.model.values import NO_ERROR

_DECISIONS: Mapping[type[Request], Callable[[Draft, Any], Response]] = {
    AlterPartitionRequest: alter_partition,
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    AllocateProducerIdsRequest: allocate_producer_ids,
    admin.AlterPartitionReassignmentsRequest: alter_reassignments,
    admin.ListPartitionReassignmentsRequest: list_reassignments,
    admin.ElectLeadersRequest: elect_leaders,
    admin.CreatePartitionsRequest: create_partitions,
    admin.IncrementalAlterConfigsRequest: alter_configs,
    admin.AlterConfigsRequest: alter_configs,
    admin.UpdateFeaturesRequest: update_features,
    admin.UnregisterBrokerRequest: unregister,
}


def decide(draft: Draft, brokers: Brokers, request: Request, now_ms: float) -> Response:
    """The answer, once the records that it puts into the draft are committed."""
    match request:
        case BrokerHeartbeatRequest():
            return brokers.heartbeat(draft, request, now_ms)
        case BrokerRegistrationRequest():
            return brokers.register(draft, request, now_ms)
    decision = _DECISIONS.get(type(request))
    if decision is None:
        refusal = f"a controller does not serve {type(request).__name__}"
        return Refused(ErrorCode.unsupported_version, refusal)
    return decision(draft, request)


def is_final(response: Response) -> bool:
    """An error that makes the asker give something up."""
    return getattr(response, "error", NO_ERROR) is not NO_ERROR
