"""A cluster of profile zk08 for tests: a stage, and looks into ZooKeeper and into brokers."""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.effects import Trace
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.setting import Setting, T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.broker import ZookeeperBroker
from wrackline.zookeeper.core.replicas.local import Local, Phase
from wrackline.zookeeper.simulator.ensemble import Ensemble, ensemble_of

SESSION_MS = 3_000
QUICK = Setting(profile="zk08", idempotent=False, lag_ms=1_000)


def staged(**changes: Any) -> Stage:
    return Stage(QUICK.but(**changes))


def zookeeper(stage: Stage) -> Ensemble:
    found = ensemble_of(stage.world)
    assert found is not None
    return found


def node_data(stage: Stage, path: str) -> bytes | None:
    return zookeeper(stage).tree.data(path)


def ids_at(stage: Stage, path: str) -> tuple[NodeId, ...] | None:
    data = node_data(stage, path)
    return None if data is None else znodes.to_ids(data)


def local(stage: Stage, node: NodeId) -> Local:
    core = stage.world.brokers[node].core
    assert isinstance(core, ZookeeperBroker)
    found = core.local(T)
    assert found is not None
    return found


def traces(stage: Stage, kind: str) -> list[tuple[NodeId, dict[str, Any]]]:
    """Filled from now on."""
    found: list[tuple[NodeId, dict[str, Any]]] = []

    def look(world: World, step: StepRecord) -> None:
        del world
        for effect in step.effects:
            if isinstance(effect, Trace) and effect.kind == kind:
                found.append((step.node, dict(effect.fields)))

    stage.world.observers.append(look)
    return found


def changes(stage: Stage) -> list[tuple[str, bytes | None]]:
    """Path and data (None: deleted) of each change in ZooKeeper from now on."""
    found: list[tuple[str, bytes | None]] = []
    tree = zookeeper(stage).tree
    tree.on_change = lambda path: found.append((path, tree.data(path)))
    return found


def open_leaders(s: Stage) -> list[NodeId]:
    return [
        node
        for node, server in s.world.brokers.items()
        if server.core and local(s, node).phase is Phase.LEADING
    ]
