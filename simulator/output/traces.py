"""The traces that the nodes of a simulated cluster would have written, had they been real: the same lines,
with the same values, on virtual time (docs/broker.md, "Trace"). So whoever reads traces reads these."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

import orjson

from wrackline.broker.model import effects as fx
from wrackline.broker.model.coordination import Answer, Operation
from wrackline.broker.model.events import Boot
from wrackline.broker.model.traced_values import OPTIONS, plain
from wrackline.broker.model.types import NodeId
from wrackline.simulator.world.world import StepRecord, World
from wrackline.simulator.zookeeper.ensemble import ZOOKEEPER, Ensemble
from wrackline.simulator.zookeeper.tree import Fired


class Traces:
    """An observer of the world. Of a world with a ZooKeeper it also writes the ensemble's transactions, as
    ``systems/zookeeper`` saves them."""

    def __init__(self, world: World | None = None) -> None:
        """``world``: one that has done nothing yet; needed where it has a ZooKeeper."""
        self.lines: dict[NodeId, list[bytes]] = defaultdict(list)
        """Node -> what it wrote; ``ZOOKEEPER``: the transactions."""
        self._incarnation: dict[NodeId, str] = {}
        self._seq: dict[NodeId, int] = {}
        if world is not None and world.zookeeper is not None:
            self._follow(world, world.zookeeper)

    def _follow(self, world: World, zookeeper: Ensemble) -> None:
        tree, before, apply = zookeeper.tree, zookeeper.tree.on_change, zookeeper.tree.apply
        asking = 0
        """The session; 0: none, when nodes go with theirs."""

        def applied(session: int, operation: Operation) -> tuple[Answer, list[Fired]]:
            nonlocal asking
            asking = session
            try:
                return apply(session, operation)
            finally:
                asking = 0

        def changed(path: str) -> None:
            before(path)
            self._transaction(world, zookeeper, path, asking)

        tree.on_change = changed
        tree.apply = applied  # type: ignore[method-assign]
        for path in sorted(tree.nodes, key=lambda one: tree.nodes[one].created):
            self._transaction(world, zookeeper, path, 0)

    def _transaction(self, world: World, zookeeper: Ensemble, path: str, session: int) -> None:
        node, zxid = zookeeper.tree.nodes.get(path), zookeeper.tree.zxid
        self._write(
            world.now_ms,
            ZOOKEEPER,
            zxid,
            "zk_write",
            zxid=zxid,
            path=path,
            data=None if node is None else node.data.decode(),
            version=0 if node is None else node.version,
            session=session,
            ephemeral=node is not None and bool(node.owner),
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
            "time_ns": int(at_ms * 1_000_000),
            "node": node,
            "step": step,
            "incarnation": self._incarnation.get(node, str(UUID(int=node))),
            "seq": seq,
            "kind": kind,
            **fields,
        }
        self.lines[node].append(orjson.dumps(line, default=plain, option=OPTIONS))
