"""Faults of ZooKeeper, for profile zk08: sessions, connections, the ensemble's leader."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from wrackline.simulator.faults.driver import Begin, Begun, FaultDriver
from wrackline.simulator.faults.kinds import Fault, Kind
from wrackline.simulator.world.nodes import ZOOKEEPER
from wrackline.zookeeper.core.administration import reassign
from wrackline.zookeeper.simulator.ensemble import ensemble_of


def _nothing() -> None:
    """Undoes nothing: the action has no end of its own."""


def _expiry(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """ZooKeeper ends the session of a broker that is well, as when it has heard nothing of it."""
    node, zookeeper = driver.target(fault, draw), ensemble_of(driver.world)
    if zookeeper is None or not zookeeper.expire(node):
        return None
    return Begun(f"n{node}", _nothing, (node,))


def _connection_loss(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    node, zookeeper = driver.target(fault, draw), ensemble_of(driver.world)
    if zookeeper is None or not zookeeper.disconnect(node):
        return None
    return Begun(f"n{node}", _nothing, (node,))


def _leader(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    del draw
    zookeeper = ensemble_of(driver.world)
    if zookeeper is None:
        return None
    zookeeper.change_leader(fault.for_ms)
    return Begun("the ensemble has no leader", _nothing)


def _cut(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """One broker, or all of them, from the ensemble; brokers reach each other."""
    world = driver.world
    if world.zookeeper is None:
        return None
    node = driver.target(fault, draw)
    nodes = sorted(world.brokers) if draw.random() < 0.2 else [node]
    for one in nodes:
        world.cut(one, ZOOKEEPER)

    def undo() -> None:
        for one in nodes:
            world.mend(one, ZOOKEEPER)

    return Begun(" ".join(f"n{one}" for one in nodes), undo, tuple(nodes))


def _move(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """Gives the partition other replicas, or another preferred one, as an administrator does: no failure, but
    a bad moment for one."""
    world, partition = driver.world, driver.partition(fault)
    zookeeper = ensemble_of(world)
    if zookeeper is None or not world.on_zookeeper or partition is None:
        return None
    target = tuple(draw.sample(sorted(world.brokers), len(partition.replicas)))
    if target == partition.replicas or world.moves(partition.tp):
        return None
    for operation in reassign(partition.tp, target):
        zookeeper.administer(operation)
    return Begun(f"{partition.tp} to {','.join(map(str, target))}", _nothing)


ZOOKEEPER_FAULTS: Mapping[Kind, Begin] = {
    "session-expiry": _expiry,
    "connection-loss": _connection_loss,
    "zookeeper-leader": _leader,
    "cut-zookeeper": _cut,
    "move-replicas": _move,
}
