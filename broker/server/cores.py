"""The core that a role runs, how its other nodes are found, and when it may be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.zookeeper_door import BrokerCore, zookeeper_broker, zookeeper_migration
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import Endpoint, NodeId
from wrackline.broker.rules.profile import Rules
from wrackline.broker.server.config import Settings
from wrackline.broker.server.metrics import Read
from wrackline.broker.wire.apis.features import AskFeatures, Features


class Core(Protocol):
    """`wrackline.broker.core.broker.Broker` or `wrackline.broker.core.controller.controller.Controller`."""

    def handle(self, event: Event, now_ms: float) -> list[Effect]: ...


class ZooKeeper(Protocol):
    """Carries out what a core asks of ZooKeeper, on one event loop."""

    carriers: Mapping[type, Callable[[Any], None]]
    """By the effect."""

    async def closed(self) -> None:
        """Waits until a session that was closed is closed at the server, too."""


def connect_zookeeper(
    servers: str, post: Callable[[Event], None], before_asking: Callable[[], None]
) -> ZooKeeper:
    """Found by name, as the cores of that era are. ``servers``: ``host:port,...``. ``post`` hands an event to
    the core; ``before_asking`` is called before anything leaves for ZooKeeper."""
    client: ZooKeeper = resolve_name("wrackline.zookeeper.server.session:ZooKeeper")(
        servers, post, before_asking
    )
    return client


Endpoints = Callable[[NodeId], Endpoint | None]
"""Where a node is reached, as far as is known."""


@dataclass(frozen=True, slots=True)
class Role:
    """A core, and what the shell must know of it besides."""

    core: Core
    endpoints: Endpoints
    ready: Callable[[], bool]
    """May clients be let in?"""
    features: AskFeatures = lambda: None
    """What ApiVersions says of them."""
    metrics: Read = tuple


def make_role(settings: Settings, rules: Rules) -> Role:
    has_zookeeper = settings.shell.zookeeper_connect is not None
    if isinstance(settings.node, ControllerConfig):
        migration = zookeeper_migration(settings.node, rules) if has_zookeeper else None
        controller = Controller(settings.node, rules, migration)
        endpoints = _endpoints(settings, lambda: controller.committed)
        return Role(
            controller,
            endpoints,
            lambda: True,
            lambda: _features(rules, controller.committed),
            controller.metrics,
        )
    on_zookeeper = has_zookeeper or not rules.switches.has_controller
    make: Callable[[BrokerConfig, Rules], BrokerCore] = zookeeper_broker if on_zookeeper else Broker
    broker = make(settings.node, rules)
    # Until it has caught up with its own registration a broker would tell clients of a former life's leaders.
    return Role(
        broker,
        _endpoints(settings, lambda: broker.image),
        lambda: broker.state is not State.STARTING,
        lambda: None if broker.acting.on_zookeeper else _features(rules, broker.image),
        broker.metrics,
    )


def _features(rules: Rules, image: ClusterImage) -> Features:
    return Features(rules.levels, image.level, image.metadata_offset)


def _endpoints(settings: Settings, image: Callable[[], ClusterImage]) -> Endpoints:
    """Controllers are where the configuration says, brokers where they registered."""
    controllers = {endpoint.node_id: endpoint for endpoint in settings.node.controllers}

    def find(node_id: NodeId) -> Endpoint | None:
        if node_id in controllers:
            return controllers[node_id]
        broker = image().brokers.get(node_id)
        return None if broker is None else Endpoint(node_id, broker.host, broker.replication_port)

    return find
