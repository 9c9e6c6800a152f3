"""What nodes say to the active controller: BrokerRegistration, ControllerRegistration (KIP-919),
BrokerHeartbeat, AlterPartition; and UnregisterBroker, which a person asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.model import admin_messages as a
from wrackline.broker.model import controller_messages as c
from wrackline.broker.model.features import METADATA_VERSION, NOT_SAID, Levels
from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Api, Listener
from wrackline.broker.wire.declarations import Each, Grouped, Row, TopicNames, message
from wrackline.broker.wire.schema import NO_UUID, WireError

_PLAINTEXT, _SASL_PLAINTEXT = 0, 2


class _Listener(NamedTuple):
    name: str
    host: str
    port: int
    security_protocol: int


class _Feature(NamedTuple):
    name: str
    min_supported_version: int
    max_supported_version: int


def _levels_in(features: Iterable[_Feature]) -> Levels:
    """Of a registration; ``NOT_SAID`` where it says nothing of the metadata's."""
    found = (Levels(*levels) for name, *levels in features if name == METADATA_VERSION)
    return next(found, NOT_SAID)


def _features(levels: Levels) -> tuple[_Feature, ...]:
    return (_Feature(METADATA_VERSION, *levels),)


@dataclass(frozen=True, slots=True)
class _BrokerRegistration:
    broker_id: NodeId
    cluster_id: str
    incarnation_id: UUID
    listeners: tuple[_Listener, ...]
    features: tuple[_Feature, ...]
    rack: str | None
    previous_broker_epoch: int


def _registered_broker(form: _BrokerRegistration) -> c.BrokerRegistrationRequest:
    """Raises WireError when the broker lacks a listener: nobody could reach it."""
    listeners = {listener.name: listener for listener in form.listeners}
    for needed in (Listener.CLIENT, Listener.REPLICATION):
        if needed.value not in listeners:
            raise WireError(f"broker {form.broker_id} registers without a listener {needed.value}")
    return c.BrokerRegistrationRequest(
        form.broker_id,
        form.cluster_id,
        form.incarnation_id,
        listeners[Listener.CLIENT.value].host,
        listeners[Listener.CLIENT.value].port,
        form.rack,
        form.previous_broker_epoch,
        _levels_in(form.features),
        listeners[Listener.REPLICATION.value].port,
    )


def _registering_broker(request: c.BrokerRegistrationRequest, *_: object) -> _BrokerRegistration:
    return _BrokerRegistration(
        request.broker_id,
        request.cluster_id,
        request.incarnation_id,
        (
            _Listener(Listener.CLIENT.value, request.host, request.port, _PLAINTEXT),
            _Listener(Listener.REPLICATION.value, request.host, request.replication_port, _SASL_PLAINTEXT),
        ),
        _features(request.levels),
        request.rack,
        request.previous_broker_epoch,
    )


@dataclass(frozen=True, slots=True)
class _ControllerRegistration:
    controller_id: NodeId
    incarnation_id: UUID
    listeners: tuple[_Listener, ...]
    features: tuple[_Feature, ...]


def _registered_controller(form: _ControllerRegistration) -> c.ControllerRegistrationRequest:
    """Raises WireError when the controller names no listener."""
    if not form.listeners:
        raise WireError(f"controller {form.controller_id} registers without a listener")
    listener = form.listeners[0]
    return c.ControllerRegistrationRequest(
        form.controller_id, form.incarnation_id, listener.host, listener.port, _levels_in(form.features)
    )


def _registering_controller(request: c.ControllerRegistrationRequest, *_: object) -> _ControllerRegistration:
    listener = _Listener(Listener.CONTROLLER.value, request.host, request.port, _PLAINTEXT)
    return _ControllerRegistration(
        request.controller_id, request.incarnation_id, (listener,), _features(request.levels)
    )


def _kept_topics(names: TopicNames) -> TopicNames:
    return lambda topic_id: names(topic_id or NO_UUID)


def _asked_topics(request: c.AlterPartitionRequest) -> TopicNames:
    asked = {item.topic_id: item.tp.topic for item in request.partitions}
    return lambda topic_id: asked.get(topic_id or NO_UUID)


APIS = (
    Api(
        56,
        "AlterPartition",
        peers=(3, 3),
        sent=3,
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        request=message(
            c.AlterPartitionRequest,
            names=_kept_topics,
            partitions=Grouped(
                "topics",
                message(
                    c.AlterPartitionItem, isr=Each("new_isr_with_epochs", Row("broker_id", "broker_epoch"))
                ),
                by_id=True,
            ),
        ),
        response=message(
            c.AlterPartitionResponse,
            names=_asked_topics,
            partitions=Grouped("topics", message(c.AlterPartitionResult), by_id=True),
        ),
    ),
    Api(
        62,
        "BrokerRegistration",
        peers=(4, 4),
        sent=4,
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        request=message(
            c.BrokerRegistrationRequest,
            form=_BrokerRegistration,
            finish=_registered_broker,
            prepare=_registering_broker,
        ),
        response=message(c.BrokerRegistrationResponse),
    ),
    Api(
        63,
        "BrokerHeartbeat",
        peers=(1, 1),
        sent=1,
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        request=message(c.BrokerHeartbeatRequest),
        response=message(c.BrokerHeartbeatResponse),
    ),
    Api(
        64,
        "UnregisterBroker",
        clients=(0, 0),
        sent=0,
        open_on=(CLIENT, CONTROLLER),
        request=message(a.UnregisterBrokerRequest),
        response=message(a.UnregisterBrokerResponse),
    ),
    Api(
        70,
        "ControllerRegistration",
        peers=(0, 0),
        sent=0,
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("controller_id"),
        request=message(
            c.ControllerRegistrationRequest,
            form=_ControllerRegistration,
            finish=_registered_controller,
            prepare=_registering_controller,
            fixed={"zk_migration_ready": False},
        ),
        response=message(c.ControllerRegistrationResponse),
    ),
)
