"""Administration at the controller: which function decides which request (docs/protocol.md 5.1)."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.configs import alter_configs
from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.elections import elect_leaders
from wrackline.broker.core.controller.decisions.features import update_features
from wrackline.broker.core.controller.decisions.partitions import remove_broker
from wrackline.broker.core.controller.decisions.reassignments import alter_reassignments, list_reassignments
from wrackline.broker.core.controller.decisions.topics import create_partitions
from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DecidedRequest,
    ElectLeadersRequest,
    ForwardedResponse,
    IncrementalAlterConfigsRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
)
from wrackline.broker.model.metadata.records import UnregisterBrokerRecord


def administer(draft: Draft, request: DecidedRequest) -> ForwardedResponse:
    match request:
        case AlterPartitionReassignmentsRequest():
            return alter_reassignments(draft, request)
        case ListPartitionReassignmentsRequest():
            return list_reassignments(draft, request)
        case ElectLeadersRequest():
            return elect_leaders(draft, request)
        case CreatePartitionsRequest():
            return create_partitions(draft, request)
        case IncrementalAlterConfigsRequest():
            return alter_configs(draft, request)
        case UpdateFeaturesRequest():
            return update_features(draft, request)
        case UnregisterBrokerRequest():
            return _unregister(draft, request)


def _unregister(draft: Draft, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Unregisters a broker for good: whoever comes back under this id has proved nothing about its logs, so
    it leaves the ELR too."""
    broker = draft.image.brokers.get(request.broker_id)
    if broker is None:
        return UnregisterBrokerResponse(
            ErrorCode.broker_id_not_registered, f"broker {request.broker_id} is not registered"
        )
    if not broker.fenced:
        return UnregisterBrokerResponse(
            ErrorCode.invalid_request, f"broker {broker.id} is running; stop it first"
        )
    remove_broker(draft, broker.id, unclean=True)
    draft.add(UnregisterBrokerRecord(broker.id, broker.epoch))
    return UnregisterBrokerResponse()
