"""Which core a role runs, and how its other nodes are found."""

from __future__ import annotations

from collections.abc import Callable

from broker.core.broker import Broker
from broker.core.config import ControllerConfig
from broker.core.controller import Controller
from broker.core.image import ClusterImage
from broker.core.types import Endpoint, NodeId
from broker.rules.profile import Rules
from broker.server.config import Settings
from broker.server.shell import Core, Endpoints


def make_core(settings: Settings, rules: Rules) -> tuple[Core, Endpoints]:
    if isinstance(settings.node, ControllerConfig):
        controller = Controller(settings.node, rules)
        return controller, _endpoints(settings, lambda: controller.committed)
    broker = Broker(settings.node, rules)
    return broker, _endpoints(settings, lambda: broker.image)


def _endpoints(settings: Settings, image: Callable[[], ClusterImage]) -> Endpoints:
    """Controllers are where the configuration says, brokers where they registered."""
    controllers = {endpoint.node_id: endpoint for endpoint in settings.node.controllers}

    def find(node_id: NodeId) -> Endpoint | None:
        if node_id in controllers:
            return controllers[node_id]
        broker = image().brokers.get(node_id)
        return None if broker is None else Endpoint(node_id, broker.host, broker.port)

    return find
