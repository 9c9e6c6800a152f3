"""A rolling upgrade of a cluster whose metadata is in ZooKeeper: the level is raised there, and that of
KIP-866 hands the cluster over to a controller (docs/rolling-upgrades.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random

from wrackline.broker.model.metadata.features import WITH_CONTROLLER, WITH_EPOCHS
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.faults.upgrade import RollingUpgrade
from wrackline.simulator.world.nodes import ZOOKEEPER
from wrackline.simulator.world.world import World
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.administration import cannot_hand_over, lacks_level, raise_level
from wrackline.zookeeper.simulator.ensemble import Ensemble, ensemble_of
from wrackline.zookeeper.simulator.tree import Tree

Disturbance = Callable[[World, Random], Callable[[], None]]
"""A fault of the moment. Takes it back, which may be done twice."""


class ZookeeperUpgrade(RollingUpgrade):
    def _nodes(self) -> list[NodeId]:
        """Controllers that are to take over are of the later profile from the start."""
        return list(self._world.brokers) if self._world.bridges else super()._nodes()

    def _ask(self, answered: Callable[[bool], None]) -> None:
        answered(self._write_level(WITH_EPOCHS))

    def _write_level(self, level: int) -> bool:
        """Writes the level as an administrator does, who looks at what brokers say first."""
        zookeeper = self._zookeeper
        tree = zookeeper.tree
        said = {int(name): tree.data(f"{znodes.LEVELS}/{name}") for name in tree.children(znodes.LEVELS)}
        supported = {node: znodes.to_levels(data) for node, data in said.items() if data is not None}
        members = znodes.to_ids(tree.data(znodes.BROKERS) or b"")
        refusal = lacks_level(members, supported, level)
        if not refusal and level == WITH_CONTROLLER:
            refusal = _no_hand_over(tree)
        elif not refusal and self._driver.options.one_by_one and not self._driver.recovered():
            refusal = "some replica has yet to recover"
        for operation in () if refusal else raise_level(level):
            zookeeper.administer(operation)
        self._world.say(f"level {level}: {refusal or 'done'}")
        return not refusal

    @property
    def _zookeeper(self) -> Ensemble:
        result = ensemble_of(self._world)
        assert result is not None, "the upgrade of a cluster without ZooKeeper"
        return result

    def _raised(self) -> None:
        """Plans the hand-over if there is one: on ZooKeeper the later profile promises no more than the
        former one."""
        if self._world.bridges:
            self._later(self._draw.uniform(0.0, 3_000.0), self._hand_over)

    def _hand_over(self) -> None:
        """Hands over at any moment: a fault may be in force."""
        if self._write_level(WITH_CONTROLLER):
            self._disturb()
        else:
            self._later(100.0, self._hand_over)

    def _disturb(self) -> None:
        """The faults of the plan wait for a cluster that has recovered; so here are some for the time until
        it has, none of which takes anything from a disk."""
        for kind in self._draw.sample(tuple(_DISTURBANCES), self._draw.randint(0, 3)):
            self._later(self._draw.uniform(0.0, 400.0), partial(self._begin, _DISTURBANCES[kind]))

    def _begin(self, disturbance: Disturbance) -> None:
        undo = disturbance(self._world, self._draw)
        self._undo.append(undo)
        self._later(self._draw.uniform(20.0, 2_500.0), undo)


def _no_hand_over(tree: Tree) -> str:
    every = [
        TopicPartition(name, int(one))
        for name in tree.children(znodes.TOPICS)
        for one in tree.children(znodes.topic(name))
    ]
    return cannot_hand_over(
        znodes.to_level(tree.data(znodes.FEATURE) or b""),
        controller=tree.data(znodes.CONTROLLER) is not None,
        moving=[tp for tp in every if tree.data(znodes.reassigned(tp)) is not None],
        without_epoch=[tp for tp in every if tree.data(znodes.epoch(tp)) is None],
    )


def _kill(world: World, draw: Random, nodes: Iterable[NodeId]) -> Callable[[], None]:
    node = draw.choice(sorted(nodes))
    world.say(f"kill of node {node} while a controller takes over")
    world.kill(node)

    def start() -> None:
        if world.server(node).core is None:
            world.start(node)

    return start


def _kill_broker(world: World, draw: Random) -> Callable[[], None]:
    return _kill(world, draw, world.brokers)


def _kill_controller(world: World, draw: Random) -> Callable[[], None]:
    active = world.active_controller()
    return _kill(world, draw, world.controllers if active is None else [active.id])


def _pause_broker(world: World, draw: Random) -> Callable[[], None]:
    node = draw.choice(sorted(world.brokers))
    world.pause(node)

    def resume() -> None:
        world.resume(node)

    return resume


def _cut(world: World, draw: Random, pairs: Sequence[tuple[NodeId, NodeId]]) -> Callable[[], None]:
    a, b = draw.choice(pairs)
    world.say(f"cut of {a} from {b} while a controller takes over")
    world.cut(a, b)
    done: list[bool] = []

    def mend() -> None:
        if not done:
            done.append(True)
            world.mend(a, b)

    return mend


def _cut_zookeeper(world: World, draw: Random) -> Callable[[], None]:
    return _cut(world, draw, [(server.id, ZOOKEEPER) for server in world.servers()])


def _cut_controller(world: World, draw: Random) -> Callable[[], None]:
    return _cut(world, draw, [(one, other) for one in world.brokers for other in world.controllers])


def _cut_brokers(world: World, draw: Random) -> Callable[[], None]:
    one, other = draw.sample(sorted(world.brokers), 2)
    return _cut(world, draw, [(one, other)])


def _expire(world: World, draw: Random) -> Callable[[], None]:
    zookeeper = ensemble_of(world)
    if zookeeper is not None:
        zookeeper.expire(draw.choice([server.id for server in world.servers()]))
    return lambda: None


_DISTURBANCES: Mapping[str, Disturbance] = {
    "kill a broker": _kill_broker,
    "kill the controller": _kill_controller,
    "pause a broker": _pause_broker,
    "cut from ZooKeeper": _cut_zookeeper,
    "cut from the controller": _cut_controller,
    "cut brokers": _cut_brokers,
    "end a session": _expire,
}
