"""The migration from ZooKeeper to a controller (KIP-866; docs/rolling-upgrades.md): why there is a fence."""

from __future__ import annotations

from wrackline.broker.model.metadata.features import WITH_CONTROLLER
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.schedule import guided
from wrackline.simulator.guided.setting import CONTROLLER, Setting
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.nodes import ZOOKEEPER
from wrackline.zookeeper.core.administration import raise_level
from wrackline.zookeeper.simulator.ensemble import ensemble_of

ZOOKEEPER_ERA = Setting(profile="zk08-kip101", upgrade_to="kip101", idempotent=False, lag_ms=1_000)


def bridge(s: Stage, *nodes: NodeId) -> None:
    """Restarts these brokers, one after another, with the program that can go on under a controller."""
    for node in nodes or sorted(s.world.brokers):
        s.stop(node)
        s.world.upgrade(node)
        s.start(node)
        s.until(lambda: s.leader is not None and s.isr == s.replicas, f"{node} back", 15_000)
        s.run(1_500)  # a member that lags is dropped by then
        s.until(lambda: s.leader is not None and s.isr == s.replicas, f"{node} in sync", 15_000)


def hand_over(s: Stage) -> None:
    """The level on which a controller takes over is in ZooKeeper."""
    zookeeper = ensemble_of(s.world)
    if zookeeper is None:
        raise SimulationError("there is no ZooKeeper to take over from")
    s.say(f"level {WITH_CONTROLLER}")
    for operation in raise_level(WITH_CONTROLLER):
        zookeeper.administer(operation)


@guided(
    "migrate_without_fence",
    "2.15",
    "lost-write",
    "I01",
    "I07",
    "I17",
    setting=ZOOKEEPER_ERA,
    hunted={"upgrade_to": "kip101"},
)
def leads_on(s: Stage) -> None:
    """2.15. The leader reaches ZooKeeper and its clients, and neither the controller nor another broker, when
    the controller takes over."""
    bridge(s)
    s.commit(b"m1")
    first = s.ready()
    others = [node for node in s.world.brokers if node != first]
    s.cut(first, CONTROLLER, *others)
    hand_over(s)
    s.produce(first, b"x")
    s.until(lambda: s.leader in others, "another leads", 10_000)
    s.run(4_000)
    s.produce(s.ready(), b"y")
    s.run(1_000)


@guided(
    "migrate_early_watermark",
    "2.15",
    "I02",
    setting=ZOOKEEPER_ERA,
    hunted={"upgrade_to": "kip101"},
)
def opens_early(s: Stage) -> None:
    """2.15. 2 alone has the last record of leader 1, which is gone, and wins the race in ZooKeeper. It waits
    for 3, which is in the ISR and lacks that record, when the controller takes over."""
    bridge(s)
    s.commit(b"m1")
    first = s.ready()
    second, third = (node for node in sorted(s.world.brokers) if node != first)
    s.cut(first, third)
    s.write(first, b"tail")
    s.until(lambda: s.leo(second) == s.leo(first), f"the record at {second}")
    s.cut(second, third)
    s.kill(first)
    s.run(2_000)
    s.cut(third, ZOOKEEPER)  # for less than its session

    def is_opening() -> bool:
        replica = s.replica(second)
        return replica is not None and replica.leader is not None and not replica.leader.open

    s.until(is_opening, f"{second} waits for {third}", 10_000)
    s.mend(third, ZOOKEEPER)
    hand_over(s)
    s.run(1_000)
    s.mend(second, third)
    s.start(first)
    s.mend(first, third)
    s.until(lambda: s.leader is not None and s.isr == s.replicas, "all are in sync", 20_000)
    s.produce(s.ready(), b"m2")
    s.run(1_000)


SCHEDULES = (leads_on, opens_early)
