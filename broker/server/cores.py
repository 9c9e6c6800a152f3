"""The core that a role runs, how its other nodes are found, and when it may be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from wrackline.broker.core.bridging import BridgingBroker
from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.zk08.broker import ZookeeperBroker
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import Endpoint, NodeId
from wrackline.broker.rules.profile import Rules
from wrackline.broker.server.config import Settings
from wrackline.broker.server.metrics import Read
from wrackline.broker.wire.features import AskFeatures, Features


class Core(Protocol):
    """`wrackline.broker.core.broker.Broker` or `wrackline.broker.core.controller.controller.Controller`."""

    def handle(self, event: Event, now_ms: float) -> list[Effect]: ...


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
    if isinstance(settings.node, ControllerConfig):
        controller = Controller(settings.node, rules, bridges=settings.shell.zookeeper_connect is not None)
        endpoints = _endpoints(settings, lambda: controller.committed)
        return Role(
            controller,
            endpoints,
            lambda: True,
            lambda: _features(rules, controller.committed),
            controller.metrics,
        )
    broker = _broker(settings, settings.node, rules)
    # Until it has caught up with its own registration a broker would tell clients of a former life's leaders.
    return Role(
        broker,
        _endpoints(settings, lambda: broker.image),
        lambda: broker.state is not State.STARTING,
        lambda: None if _on_zookeeper(broker) else _features(rules, broker.image),
        broker.metrics,
    )


def _broker(
    settings: Settings, config: BrokerConfig, rules: Rules
) -> Broker | ZookeeperBroker | BridgingBroker:
    if not rules.switches.has_controller:
        return ZookeeperBroker(config, rules)
    bridges = settings.shell.zookeeper_connect is not None
    return BridgingBroker(config, rules) if bridges else Broker(config, rules)


def _on_zookeeper(broker: Broker | ZookeeperBroker | BridgingBroker) -> bool:
    """ZooKeeper is in charge still."""
    return isinstance(broker, BridgingBroker) and isinstance(broker.now, ZookeeperBroker)


def _features(rules: Rules, image: ClusterImage) -> Features | None:
    if not rules.switches.has_controller:
        return None
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
