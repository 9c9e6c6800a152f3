"""A rolling upgrade under faults: nodes get the later profile one after another, and the level is raised.

It goes on while the plan of faults is carried out and waits for nothing that an impatient operator would not
wait for: the next node's turn may come while the ISR is short. On the way somebody asks for the level too
early, which must be refused: a node that does not support it would end with it, and never come back.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from wrackline.broker.model.messages.admin import FeatureUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from wrackline.broker.model.metadata.features import METADATA_VERSION, WITH_ELR
from wrackline.broker.model.types import NodeId
from wrackline.simulator.faults.driver import FaultDriver
from wrackline.simulator.world.zookeeper_door import of_zookeeper

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
        nodes = self._nodes()
        self._draw.shuffle(nodes)
        first_ms = self._draw.uniform(0.0, 0.2) * length_ms
        pause_ms = 0.3 * length_ms / len(nodes)
        self._later(first_ms, lambda: self._next(nodes, pause_ms))
        self._later(self._draw.uniform(0.0, 0.5) * length_ms, lambda: self._ask(lambda _: None))

    def _nodes(self) -> list[NodeId]:
        return [server.id for server in self._world.servers()]

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

    def _ask(self, answered: Callable[[bool], None]) -> None:
        """Asks for the level of the later profile."""
        update = FeatureUpdate(METADATA_VERSION, WITH_ELR)
        broker = self._draw.choice(sorted(self._world.brokers))
        call = self._world.ask(broker, UpdateFeaturesRequest((update,), _TIMEOUT_MS), _TIMEOUT_MS)

        def look() -> None:
            if not call.done:
                self._later(_LOOK_EVERY_MS, look)
                return
            answer = call.response
            done = isinstance(answer, UpdateFeaturesResponse) and answer.error.name == "none"
            self._world.say(f"level {WITH_ELR}: {'done' if done else answer or call.failed}")
            answered(done)

        look()

    def _raise(self) -> None:
        """Raises the level until it is done: a broker may be down, and a controller may have yet to say what
        it supports."""
        self._ask(lambda done: self._raised() if done else self._later(300.0, self._raise))

    def _raised(self) -> None:
        """Allows the losses that the later profile does not forbid: it promises only what is written from a
        full ISR on, under the MinISR that there is."""
        image = self._world.image
        least = min(image.min_isr(partition.tp) for partition in image.partitions())
        if self._driver.all_in_sync() and least > self._lossy_limit:
            self._driver.lossy_limit = self._lossy_limit
        else:
            self._later(100.0, self._raised)


def upgrade_of(driver: FaultDriver, seed: int | str, lossy_limit: int) -> RollingUpgrade:
    make: type[RollingUpgrade] = RollingUpgrade if driver.world.zookeeper is None else of_zookeeper("upgrade")
    return make(driver, seed, lossy_limit)
