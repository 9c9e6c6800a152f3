"""The trace that a simulated cluster would have written, had its nodes been real: the same lines by the same
writer's code, on virtual time. Its ZooKeeper's transactions are lines as ``systems/zookeeper`` saves them."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

import orjson

from wrackline.broker.model import effects as fx
from wrackline.broker.model.events import Boot
from wrackline.broker.model.types import NodeId
from wrackline.broker.server.trace import OPTIONS, plain
from wrackline.simulator.traced.lines import Trace
from wrackline.simulator.world.world import StepRecord, World
from wrackline.simulator.zookeeper.ensemble import ZOOKEEPER, Ensemble


class Tracing:
    """An observer of the world."""

    def __init__(self, world: World | None = None) -> None:
        """``world``: one that has done nothing yet; needed where it has a ZooKeeper."""
        self.lines: dict[NodeId, list[bytes]] = defaultdict(list)
        self._incarnation: dict[NodeId, str] = {}
        self._seq: dict[NodeId, int] = {}
        if world is not None and world.zookeeper is not None:
            self._follow(world, world.zookeeper)

    def _follow(self, world: World, zookeeper: Ensemble) -> None:
        tree, before = zookeeper.tree, zookeeper.tree.on_change

        def changed(path: str) -> None:
            before(path)
            self._transaction(world, zookeeper, path)

        tree.on_change = changed
        for path in sorted(tree.nodes, key=lambda one: tree.nodes[one].created):
            self._transaction(world, zookeeper, path)

    def _transaction(self, world: World, zookeeper: Ensemble, path: str) -> None:
        node, zxid = zookeeper.tree.nodes.get(path), zookeeper.tree.zxid
        owner = 0 if node is None else node.owner
        self._write(
            world.now_ms,
            ZOOKEEPER,
            zxid,
            "zk_write",
            zxid=zxid,
            path=path,
            data=None if node is None else node.data.decode(),
            version=0 if node is None else node.version,
            session=owner,
            ephemeral=bool(owner),
        )

    def __call__(self, world: World, step: StepRecord) -> None:  # noqa: ARG002
        if isinstance(step.event, Boot):
            self._incarnation[step.node] = str(step.event.incarnation_id)
            self._seq[step.node] = 0
        for effect in step.effects:
            if isinstance(effect, fx.Trace):
                self._write(step.at_ms, step.node, step.number, effect.kind, **effect.fields)

    def _write(self, at_ms: float, node: NodeId, step: int, kind: str, **fields: object) -> None:
        seq = self._seq[node] = self._seq.get(node, 0) + 1
        line = {
            "time_ns": round(at_ms * 1e6),
            "node": node,
            "step": step,
            "incarnation": self._incarnation.get(node, str(UUID(int=node))),
            "seq": seq,
            "kind": kind,
            **fields,
        }
        self.lines[node].append(orjson.dumps(line, default=plain, option=OPTIONS))

    def traces(self, *, ahead_ns: dict[NodeId, int] | None = None) -> list[Trace]:
        """One of each node that wrote anything."""
        ahead = ahead_ns or {}
        return [
            Trace(f"n{node}/trace.jsonl", lines, ahead.get(node, 0))
            for node, lines in self.lines.items()
            if lines
        ]
