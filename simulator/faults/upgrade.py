"""A rolling upgrade under faults: nodes get the later profile one after another, and the level is raised.

It goes on while the plan of faults is carried out and waits for nothing that an impatient operator would not
wait for: the next node's turn may come while the ISR is short. On the way somebody asks for the level too
early, which must be refused: a node that does not support it would end with it, and never come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random

from wrackline.broker.core.zk08.administration import cannot_hand_over, lacks_level, raise_level
from wrackline.broker.model.messages.admin import FeatureUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from wrackline.broker.model.metadata import znodes
from wrackline.broker.model.metadata.features import METADATA_VERSION, WITH_CONTROLLER, WITH_ELR, WITH_EPOCHS
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.faults.driver import FaultDriver
from wrackline.simulator.world.world import World
from wrackline.simulator.zookeeper.ensemble import ZOOKEEPER, Ensemble
from wrackline.simulator.zookeeper.tree import Tree

Disturbance = Callable[[World, Random], Callable[[], None]]
"""A fault of the moment. Takes it back, which may be done twice."""
_LOOK_EVERY_MS = 20.0
_PATIENCE_MS = 3_000.0
"""For a node to stop in the controlled way, and to be back; then the operator goes on."""
_TIMEOUT_MS = 5_000


class RollingUpgrade:
    def __init__(self, driver: FaultDriver, seed: int | str, lossy_limit: int) -> None:
        self._driver = driver
        self._world = driver.world
        self._draw = Random(f"{seed}/upgrade")
        self._lossy_limit = lossy_limit
        """What the later profile promises to survive."""
        self._stopped = False
        self._stopping: NodeId | None = None
        """The node that has been asked to stop, until it is started again."""
        self._undo: list[Callable[[], None]] = []

    def begin(self, length_ms: float) -> None:
        """Nodes in any order, at about even times over the first half of the run."""
        servers = self._world.brokers.values() if self._world.bridges else self._world.servers()
        nodes = [server.id for server in servers]
        self._draw.shuffle(nodes)
        first_ms = self._draw.uniform(0.0, 0.2) * length_ms
        pause_ms = 0.3 * length_ms / len(nodes)
        self._later(first_ms, lambda: self._next(nodes, pause_ms))
        self._later(self._draw.uniform(0.0, 0.5) * length_ms, lambda: self._ask(lambda _: None))

    def stop(self) -> None:
        """Stops the upgrade: whoever has not had its turn stays what it is; a node that is on its way is
        started at once."""
        self._stopped = True
        if self._stopping is not None:
            self._restart(self._stopping)
        for undo in self._undo:
            undo()

    def _later(self, after_ms: float, then: Callable[[], None]) -> None:
        self._world.at(self._world.now_ms + after_ms, lambda: None if self._stopped else then())

    def _next(self, nodes: list[NodeId], pause_ms: float) -> None:
        if not nodes:
            self._raise()
            return
        if self._driver.options.one_by_one and not self._driver.recovered():
            self._later(_LOOK_EVERY_MS, lambda: self._next(nodes, pause_ms))
            return
        node, *rest = nodes
        server = self._world.server(node)
        self._world.say(f"upgrade of node {node}")
        life, until_ms = server.incarnation, self._world.now_ms
        if self._draw.random() < 0.7:
            self._world.clean_stop(node)
            until_ms += _PATIENCE_MS
        then = self._draw.uniform(0.0, 2.0) * pause_ms

        def down() -> None:
            """Takes the node down, which may have been down already, or have come back by itself: then it has
            another life to end."""
            if server.core is not None and server.incarnation == life and self._world.now_ms < until_ms:
                self._later(_LOOK_EVERY_MS, down)
                return
            self._restart(node)
            self._later(then, lambda: self._next(rest, pause_ms))

        self._stopping = node
        down()

    def _restart(self, node: NodeId) -> None:
        self._stopping = None
        self._world.kill(node)
        self._world.upgrade(node)
        self._world.start(node)

    # --- the level -----------------------------------------------------------------------------------------

    def _ask(self, answered: Callable[[bool], None], on_zookeeper: int = WITH_EPOCHS) -> None:
        if self._world.zookeeper is not None:
            answered(self._write_level(self._world.zookeeper, on_zookeeper))
            return
        update = FeatureUpdate(METADATA_VERSION, WITH_ELR)
        asked = self._draw.choice(sorted(self._world.brokers))
        call = self._world.ask(asked, UpdateFeaturesRequest((update,), _TIMEOUT_MS), _TIMEOUT_MS)

        def look() -> None:
            if not call.done:
                self._later(_LOOK_EVERY_MS, look)
                return
            answer = call.response
            done = isinstance(answer, UpdateFeaturesResponse) and answer.error.name == "none"
            self._world.say(f"level {WITH_ELR}: {'done' if done else answer or call.failed}")
            answered(done)

        look()

    def _write_level(self, zookeeper: Ensemble, level: int) -> bool:
        """Writes the level as an administrator does, who looks at what brokers say first."""
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

    def _raise(self) -> None:
        """Raises the level until it is done: a broker may be down, and a controller may have yet to say what
        it supports."""
        self._ask(lambda done: self._raised() if done else self._later(300.0, self._raise))

    def _raised(self) -> None:
        if self._world.bridges:
            self._later(self._draw.uniform(0.0, 3_000.0), self._hand_over)
        else:
            self._allow_losses()

    def _hand_over(self) -> None:
        """Hands over at any moment: a fault may be in force."""
        self._ask(
            lambda done: self._disturb() if done else self._later(100.0, self._hand_over), WITH_CONTROLLER
        )

    def _disturb(self) -> None:
        """The faults of the plan wait for a cluster that has recovered; so here are some for the time until
        it has, none of which takes anything from a disk."""
        for kind in self._draw.sample(tuple(_DISTURBANCES), self._draw.randint(0, 3)):
            self._later(self._draw.uniform(0.0, 400.0), partial(self._begin, _DISTURBANCES[kind]))

    def _begin(self, disturbance: Disturbance) -> None:
        undo = disturbance(self._world, self._draw)
        self._undo.append(undo)
        self._later(self._draw.uniform(20.0, 2_500.0), undo)

    def _allow_losses(self) -> None:
        """Allows the losses that the later profile does not forbid: it promises only what is written from a
        full ISR on, under the MinISR that there is. On ZooKeeper it promises no more than the former one."""
        if self._world.zookeeper is not None:
            return
        image = self._world.image
        least = min(image.min_isr(partition.tp) for partition in image.partitions())
        if self._driver.all_in_sync() and least > self._lossy_limit:
            self._driver.lossy_limit = self._lossy_limit
        else:
            self._later(100.0, self._allow_losses)


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
    if world.zookeeper is not None:
        world.zookeeper.expire(draw.choice([server.id for server in world.servers()]))
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
