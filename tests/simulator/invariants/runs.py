"""Random runs of the world, small and with every fault, for the tests of the invariants."""

from __future__ import annotations

from random import Random
from typing import Any

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.lifecycle import State
from wrackline.broker.model.batches import batch
from wrackline.broker.model.messages.requests import ProducePartition, ProduceRequest
from wrackline.broker.model.types import TopicPartition
from wrackline.simulator.invariants.checker import Checker
from wrackline.simulator.invariants.invariant import Violation
from wrackline.simulator.world.world import World, WorldOptions

T = TopicPartition("t", 0)
TPS = (T, TopicPartition("t", 1))


class Run:
    """Three brokers, one topic of two partitions, produces and faults; ``power``: how many power cuts at a
    time may still be healing."""

    def __init__(
        self, seed: int, *, faults: bool = True, only: set[str] | None = None, **options: Any
    ) -> None:
        self.random = Random(f"{seed}/run")
        self.world = World(seed, WorldOptions(**options))
        self.checker = Checker(self.world, only=only)
        self.world.observers.append(self.checker)
        self.faults = faults
        self.values = 0
        self.world.create_topic("t", 2)
        self.done: list[str] = []

    def produce(self, tp: TopicPartition, acks: int = -1) -> None:
        leader = self.world.leader(tp)
        leaders = [
            node
            for node, server in self.world.brokers.items()
            if server.core is not None and (r := server.core.replica(tp)) is not None and r.leader is not None
        ]
        if leaders and self.random.random() < 0.3:
            leader = self.random.choice(leaders)
        if leader < 0:
            return
        self.values += 1
        data = batch.build([b"%d" % self.values], 0, -1, int(self.world.now_ms))
        self.world.ask(leader, ProduceRequest(acks, 2_000, (ProducePartition(tp, data),)), 3_000)

    def act(self) -> None:
        draw, world = self.random, self.world
        for _ in range(draw.randint(0, 3)):
            self.produce(draw.choice(TPS), draw.choice((-1, -1, -1, 1)))
        if not self.faults or draw.random() < 0.5:
            return
        for down in world.controllers.values():
            if down.core is None and draw.random() < 0.4:
                world.start(down.id)
        node = draw.choice(list(world.brokers))
        server = world.brokers[node]
        if server.core is None or server.paused:
            what = "start" if server.core is None else "pause"
        else:
            quorum = ("controller",) * (5 if len(world.controllers) > 1 else 1)
            what = draw.choice(
                ("kill", "power", "stop", "cut", "heal", "heal", "pause", "cut controller", *quorum)
            )
        self.done.append(f"{world.now_ms:.0f} {what} {node}")
        if what == "controller":
            node = draw.choice(list(world.controllers))
            controller = world.controllers[node]
            if draw.random() < 0.3:
                world.cut(node, draw.choice([*world.controllers, *world.brokers]))
            elif controller.core is None:
                world.start(node)
            elif draw.random() < 0.5:
                world.kill(node)
            else:
                world.power(node)
        elif what == "start" and server.core is None:
            world.start(node)
        elif what == "kill":
            world.kill(node)
        elif what == "power":
            world.power(node)
        elif what == "stop":
            world.clean_stop(node)
        elif what == "cut":
            world.cut(node, draw.choice([other for other in world.brokers if other != node]))
        elif what == "cut controller":
            world.cut(node, draw.choice(list(world.controllers)))
        elif what == "heal":
            world.heal()
        elif what == "pause":
            (world.resume if server.paused else world.pause)(node)

    def go(self, ms: float) -> list[Violation]:
        end = self.world.now_ms + ms
        while self.world.now_ms < end and not self.checker.violations:
            self.act()
            self.world.run(self.random.choice((5, 50, 300, 1_000)))
        return self.checker.violations

    def recover(self) -> None:
        """End every fault."""
        self.world.heal()
        for server in self.world.servers():
            if server.paused:
                self.world.resume(server.id)
            if isinstance(server.core, Broker) and server.core.state in (State.STOPPING, State.CLOSED):
                self.world.kill(server.id)
            if server.core is None:
                self.world.start(server.id)
