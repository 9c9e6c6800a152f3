"""The transactions of a simulated ensemble, written as those of a real one are saved
(``zookeeper/systems/servers``)."""

from __future__ import annotations

from typing import Protocol

from wrackline.broker.model.coordination import Answer, Operation
from wrackline.broker.model.types import NodeId
from wrackline.simulator.world.nodes import ZOOKEEPER
from wrackline.simulator.world.world import World
from wrackline.zookeeper.simulator.ensemble import ensemble_of
from wrackline.zookeeper.simulator.tree import Fired


class Write(Protocol):
    """A line of a node's trace. ``at_ms`` is virtual time, ``step`` the number of what the line is of."""

    def __call__(self, at_ms: float, node: NodeId, step: int, kind: str, **fields: object) -> None: ...


def follow(world: World, write: Write) -> None:
    """Write what is in the ensemble's tree, and from now on every transaction."""
    zookeeper = ensemble_of(world)
    assert zookeeper is not None, "the world has no ZooKeeper"
    tree, before, apply = zookeeper.tree, zookeeper.tree.on_change, zookeeper.tree.apply
    asking = 0
    """The session; 0: none, when nodes go with theirs."""

    def transaction(path: str, session: int) -> None:
        node, zxid = tree.nodes.get(path), tree.zxid
        write(
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

    def applied(session: int, operation: Operation) -> tuple[Answer, list[Fired]]:
        nonlocal asking
        asking = session
        try:
            return apply(session, operation)
        finally:
            asking = 0

    def changed(path: str) -> None:
        before(path)
        transaction(path, asking)

    tree.on_change = changed
    tree.apply = applied  # type: ignore[method-assign]
    for path in sorted(tree.nodes, key=lambda one: tree.nodes[one].created):
        transaction(path, 0)
