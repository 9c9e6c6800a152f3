"""The function that decides each request that may change the cluster."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.admin import administer
from wrackline.broker.core.controller.decisions.brokers import Brokers, allocate_producer_ids
from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.partitions import alter_partition
from wrackline.broker.core.controller.decisions.topics import create_topics, delete_topics
from wrackline.broker.model.messages.admin import DecidedRequest
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
)
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest
from wrackline.broker.model.messages.requests import Refused, Request, Response
from wrackline.broker.model.values import NO_ERROR


def decide(draft: Draft, brokers: Brokers, request: Request, now_ms: float) -> Response:
    """The answer, once the records that it puts into the draft are committed."""
    match request:
        case BrokerHeartbeatRequest():
            return brokers.heartbeat(draft, request, now_ms)
        case AlterPartitionRequest():
            return alter_partition(draft, request)
        case BrokerRegistrationRequest():
            return brokers.register(draft, request, now_ms)
        case CreateTopicsRequest():
            return create_topics(draft, request)
        case DeleteTopicsRequest():
            return delete_topics(draft, request)
        case AllocateProducerIdsRequest():
            return allocate_producer_ids(draft, request)
        case _ if isinstance(request, DecidedRequest):
            return administer(draft, request)
        case _:
            return Refused(
                ErrorCode.unsupported_version, f"a controller does not serve {type(request).__name__}"
            )


def is_final(response: Response) -> bool:
    """An error that makes the asker give something up."""
    return getattr(response, "error", NO_ERROR) is not NO_ERROR
