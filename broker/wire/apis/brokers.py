"""The requests of nodes to the active controller: BrokerRegistration, ControllerRegistration (KIP-919),
BrokerHeartbeat, AlterPartition; and UnregisterBroker, which a person asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.messages import controller as c
from wrackline.broker.model.metadata.features import METADATA_VERSION, NOT_SAID, Levels
from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.api import Listener, api, forwarded_access, node_access
from wrackline.broker.wire.schema import NO_UUID, Entity, WireError
from wrackline.broker.wire.translation.declarations import (
    Array,
    Items,
    Rows,
    TopicNames,
    copy_fields,
    message,
)

_PLAINTEXT, _SASL_PLAINTEXT = 0, 2


class _Feature(NamedTuple):
    name: str
    min_supported_version: int
    max_supported_version: int


def _levels_in(features: Iterable[_Feature]) -> Levels:
    """Returns the levels of the metadata in a registration; ``NOT_SAID`` where it says nothing of them."""
    result = (Levels(*levels) for name, *levels in features if name == METADATA_VERSION)
    return next(result, NOT_SAID)


def _features(levels: Levels) -> tuple[_Feature, ...]:
    return (_Feature(METADATA_VERSION, *levels),)


_LEVELS = Array("features", _Feature, read=_levels_in, write=_features)


class _Listener(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class _BrokerRegistration:
    broker_id: NodeId
    cluster_id: str
    incarnation_id: UUID
    listeners: tuple[_Listener, ...]
    levels: Levels
    rack: str | None
    previous_broker_epoch: int


def _registration_of_form(form: _BrokerRegistration) -> c.BrokerRegistrationRequest:
    """Raises WireError when the broker lacks a listener: nobody could reach it."""
    listeners = {listener.name: listener for listener in form.listeners}
    for needed in (Listener.CLIENT, Listener.REPLICATION):
        if needed.value not in listeners:
            raise WireError(f"broker {form.broker_id} registers without a listener {needed.value}")
    clients, nodes = listeners[Listener.CLIENT.value], listeners[Listener.REPLICATION.value]
    return copy_fields(
        form, c.BrokerRegistrationRequest, host=clients.host, port=clients.port, replication_port=nodes.port
    )


def _form_of_registration(request: c.BrokerRegistrationRequest, *_: object) -> _BrokerRegistration:
    listeners = (
        _Listener(Listener.CLIENT.value, request.host, request.port, _PLAINTEXT),
        _Listener(Listener.REPLICATION.value, request.host, request.replication_port, _SASL_PLAINTEXT),
    )
    return copy_fields(request, _BrokerRegistration, listeners=listeners)


def _check_listener(entity: Entity) -> None:
    """Raises WireError when the controller names no listener."""
    if not entity.listeners:
        raise WireError(f"controller {entity.controller_id} registers without a listener")


def _names_of_node(names: TopicNames) -> TopicNames:
    return lambda topic_id: names(topic_id or NO_UUID)


def _names_in_request(request: c.AlterPartitionRequest) -> TopicNames:
    asked = {item.topic_id: item.tp.topic for item in request.partitions}
    return lambda topic_id: asked.get(topic_id or NO_UUID)


_ALTERATION = message(
    c.AlterPartitionItem, isr=Array("new_isr_with_epochs", Items("broker_id", "broker_epoch"))
)

APIS = (
    api(
        56,
        "AlterPartition",
        node_access(3, "broker_id"),
        request=message(
            c.AlterPartitionRequest, topic_names=_names_of_node, partitions=Rows("topics", _ALTERATION)
        ),
        response=message(c.AlterPartitionResponse, topic_names=_names_in_request, partitions="topics"),
    ),
    api(
        62,
        "BrokerRegistration",
        node_access(4, "broker_id"),
        request=message(
            c.BrokerRegistrationRequest,
            form=_BrokerRegistration,
            from_form=_registration_of_form,
            to_form=_form_of_registration,
            levels=_LEVELS,
        ),
        response=c.BrokerRegistrationResponse,
    ),
    api(
        63,
        "BrokerHeartbeat",
        node_access(1, "broker_id"),
        request=c.BrokerHeartbeatRequest,
        response=c.BrokerHeartbeatResponse,
    ),
    api(
        64, "UnregisterBroker", forwarded_access(0, 0), a.UnregisterBrokerRequest, a.UnregisterBrokerResponse
    ),
    api(
        70,
        "ControllerRegistration",
        node_access(0, "controller_id"),
        request=message(
            c.ControllerRegistrationRequest,
            check=_check_listener,
            constants={
                "zk_migration_ready": False,
                "listeners.name": Listener.CONTROLLER.value,
                "listeners.security_protocol": _PLAINTEXT,
            },
            host="listeners.host",
            port="listeners.port",
            levels=_LEVELS,
        ),
        response=c.ControllerRegistrationResponse,
    ),
)
