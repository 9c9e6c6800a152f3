"""One error for a whole request of administration, in its response's own way (see ``refusals``)."""

from __future__ import annotations

from wrackline.broker.model.messages.admin import (
    AdminRequest,
    AdminResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedResource,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionOutcome,
    ResourceOutcome,
    TopicOutcome,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from wrackline.broker.model.messages.requests import Refused


def expand_admin(request: AdminRequest, refused: Refused) -> AdminResponse:
    error, message = refused.error, refused.message or None
    match request:
        case AlterPartitionReassignmentsRequest():
            return AlterPartitionReassignmentsResponse((), error, message)
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse((), error, message)
        case ElectLeadersRequest():
            # Version 0 has no error of its own, so every partition gets it too.
            outcomes = (PartitionOutcome(tp, error, message) for tp in request.partitions or ())
            return ElectLeadersResponse(tuple(outcomes), error)
        case CreatePartitionsRequest():
            return CreatePartitionsResponse(
                tuple(TopicOutcome(topic.topic, error, message) for topic in request.topics)
            )
        case IncrementalAlterConfigsRequest():
            return IncrementalAlterConfigsResponse(
                tuple(ResourceOutcome(item.resource, error, message) for item in request.resources)
            )
        case DescribeConfigsRequest():
            return DescribeConfigsResponse(
                tuple(
                    DescribedResource(resource, error=error, message=message)
                    for resource, _ in request.resources
                )
            )
        case UnregisterBrokerRequest():
            return UnregisterBrokerResponse(error, message)
        case UpdateFeaturesRequest():
            return UpdateFeaturesResponse(error, message)
        case DescribeQuorumRequest():
            return DescribeQuorumResponse(error, message)
