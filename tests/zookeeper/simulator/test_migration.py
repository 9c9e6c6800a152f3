"""From ZooKeeper to a controller (docs/rolling-upgrades.md): nothing is lost, whoever ends on the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.zookeeper.simulator.zk08 import zookeeper
from wrackline.broker.core.broker import Broker
from wrackline.broker.model.coordination import Coordinate, Coordinated, Create, Set
from wrackline.broker.model.metadata.features import WITH_CONTROLLER, WITH_EPOCHS
from wrackline.broker.model.metadata.records import POST_MIGRATION
from wrackline.broker.model.metadata.snapshot_format import read, write
from wrackline.broker.model.types import NodeId, SnapshotId, TopicPartition
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.guided.setting import CONTROLLER, T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.run import run
from wrackline.simulator.run.session import Run
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.administration import cannot_hand_over, lacks_level
from wrackline.zookeeper.core.broker import ZookeeperBroker
from wrackline.zookeeper.core.level import ClusterLevel
from wrackline.zookeeper.simulator.ensemble import ZOOKEEPER
from wrackline.zookeeper.simulator.scenes.migration import ZOOKEEPER_ERA, bridge, hand_over


@pytest.fixture
def s() -> Stage:
    return bridged()


def bridged(seed: int = 3, controllers: int = 1, defects: tuple[str, ...] = ()) -> Stage:
    """Every broker can go on under a controller, and ZooKeeper is in charge."""
    stage = Stage(ZOOKEEPER_ERA.but(controllers=controllers), defects, seed)
    bridge(stage)
    stage.commit(b"before")
    return stage


def under_controller(s: Stage, *nodes: NodeId) -> bool:
    acting = [s.world.brokers[node].acting for node in nodes or s.world.brokers]
    return all(isinstance(core, Broker) for core in acting) and s.leader is not None


def taken_over(s: Stage, *nodes: NodeId) -> None:
    s.until(lambda: under_controller(s, *nodes), "the controller in charge, and a leader", 20_000)


def assert_nothing_lost(s: Stage, *values: bytes) -> None:
    s.finish()
    assert s.findings() == ()
    leader = s.leader
    assert leader is not None
    assert [value for value in values if value not in s.values(leader)] == []


def test_as_long_as_the_level_is_below_zookeeper_is_in_charge(s: Stage) -> None:
    assert all(isinstance(server.acting, ZookeeperBroker) for server in s.world.brokers.values())
    assert zookeeper(s).tree.data(znodes.CONTROLLER) == b"101"
    core = s.world.controllers[CONTROLLER].core
    assert core is not None
    assert not core.committed.brokers
    assert not core.committed.topics_by_name


def test_a_controller_takes_over_logs_isr_and_epochs_in_the_same_processes(s: Stage) -> None:
    lives = {node: server.incarnation for node, server in s.world.brokers.items()}
    former = znodes.to_epoch(zookeeper(s).tree.data(znodes.epoch(T)) or b"").number
    hand_over(s)
    taken_over(s)
    partition = s.world.image.partition(T)
    assert partition is not None
    assert partition.leader_epoch > former
    assert s.isr == {1, 2, 3}, "none of them has lost anything"
    assert {node: server.incarnation for node, server in s.world.brokers.items()} == lives
    s.commit(b"after")
    log = s.world.brokers[s.ready()].disk.logs[T]
    epochs = [stored.header.leader_epoch for stored in log.batches]
    assert epochs == sorted(epochs)
    assert epochs[0] <= former < epochs[-1]
    assert_nothing_lost(s, b"before", b"after")


def test_afterwards_zookeeper_is_gone_and_the_cluster_goes_on(s: Stage) -> None:
    hand_over(s)
    taken_over(s)
    for node in (*s.world.brokers, CONTROLLER):
        s.cut(node, ZOOKEEPER)
    s.commit(b"without")
    first = s.ready()
    s.kill(first)
    s.until(lambda: s.leader not in (None, first), "another leads", 15_000)
    s.start(first)
    s.until(lambda: s.isr == s.replicas, "all in sync, without ZooKeeper", 20_000)
    s.commit(b"later")
    assert_nothing_lost(s, b"before", b"without", b"later")


def test_a_snapshot_of_the_metadata_remembers_who_has_taken_over(s: Stage) -> None:
    hand_over(s)
    s.until(lambda: not s.world.on_zookeeper, "the controller in charge")
    image = s.world.image
    assert any(broker.from_zookeeper for broker in image.brokers.values())
    name = SnapshotId(image.metadata_offset + 1, 7)
    loaded = read(write(image, name, 0.0), name)
    assert loaded.zk_migration == POST_MIGRATION
    assert loaded.brokers == image.brokers
    assert loaded.topics_by_name == image.topics_by_name


def test_a_broker_that_was_away_comes_back_when_zookeeper_is_gone(s: Stage) -> None:
    """It has heard of nothing, and asks the controller. It may have lost something, so it leaves the ISR
    first."""
    away = next(node for node in (3, 2) if node != s.ready())
    others = [node for node in s.world.brokers if node != away]
    s.power(away, keep=0)
    hand_over(s)
    taken_over(s, *others)
    for node in (*s.world.brokers, CONTROLLER):
        s.cut(node, ZOOKEEPER)
    s.start(away)
    s.until(lambda: away not in s.isr, "it is no member any more", 20_000)
    s.until(lambda: s.isr == s.replicas, "and is one again", 20_000)
    assert_nothing_lost(s, b"before")


@pytest.mark.parametrize("controllers", [1, 3])
@pytest.mark.parametrize("step", range(12))
def test_the_controller_may_end_at_each_answer_of_zookeeper(step: int, controllers: int) -> None:
    s = bridged(controllers=controllers)
    active = s.world.active_controller()
    assert active is not None
    left = [step]

    def ends(event: object, effects: object) -> int | None:
        del effects
        if not isinstance(event, Coordinated):
            return None
        left[0] -= 1
        return 0 if left[0] < 0 else None

    hand_over(s)
    s.world.cut_process(active.id, ends)
    s.until(lambda: not s.world.server(active.id).up or under_controller(s), "the end of it", 10_000)
    if not s.world.server(active.id).up:
        s.run(200)
        s.start(active.id)
    taken_over(s)
    s.commit(b"after")
    assert_nothing_lost(s, b"before", b"after")


@pytest.mark.parametrize("after_ms", [0.0, 2.0, 5.0, 8.0, 12.0, 20.0, 60.0, 300.0])
@pytest.mark.parametrize("who", ["leader", "follower"])
def test_a_broker_may_end_at_any_moment(who: str, after_ms: float) -> None:
    s = bridged()
    leader = s.ready()
    node = leader if who == "leader" else next(one for one in s.world.brokers if one != leader)
    s.produce(leader, b"under way")
    hand_over(s)
    s.run(after_ms)
    s.kill(node)
    s.run(500)
    s.start(node)
    taken_over(s)
    s.commit(b"after")
    assert_nothing_lost(s, b"before", b"after")


def late_to_hear(s: Stage) -> None:
    """The leader reaches its clients, and nobody else. When it reaches ZooKeeper again its write of a smaller
    ISR, which was held up, is answered before it has read the level."""
    first = s.ready()
    others = [node for node in s.world.brokers if node != first]
    s.cut(first, CONTROLLER, ZOOKEEPER, *others)
    hand_over(s)
    s.produce(first, b"x")
    s.run(1_500)
    s.mend(first, ZOOKEEPER)
    s.until(lambda: s.leader in others, "another leads", 10_000)
    s.produce(s.ready(), b"y")
    s.run(1_000)


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_a_leader_that_has_yet_to_hear_of_the_fence_cannot_make_its_isr_smaller(seed: int) -> None:
    s = bridged(seed)
    late_to_hear(s)
    assert_nothing_lost(s, b"before")


def test_without_the_seal_it_acknowledges_alone_what_is_lost() -> None:
    s = bridged()
    core = s.world.controllers[CONTROLLER].core
    assert core is not None
    core._migration._seals = False
    late_to_hear(s)
    s.finish()
    assert "lost-write" in {finding.oracle for finding in s.findings()}


def claims_late(s: Stage) -> None:
    """Broker 2 alone has the last record of leader 1, which is gone, and wins the race in ZooKeeper. Its
    claim of an epoch is held up until the controller has read which one was the last, and 3 leads in the
    next."""
    assert s.ready() == 1
    s.cut(1, 3)
    s.write(1, b"tail")
    s.until(lambda: s.leo(2) == s.leo(1), "the record at 2")
    s.kill(1)
    s.run(2_000)
    s.cut(3, ZOOKEEPER)
    held: list[bool] = []

    def hold_up(world: World, step: StepRecord) -> None:
        asked = [effect.operation for effect in step.effects if isinstance(effect, Coordinate)]
        claims = [one for one in asked if isinstance(one, Create | Set) and one.path == znodes.epoch(T)]
        if step.node == 2 and claims and not held:
            held.append(True)
            world.cut(2, ZOOKEEPER, one_way=True)

    s.world.observers.append(hold_up)
    s.until(lambda: bool(held), "2 claims an epoch", 5_000)
    s.cut(2, 3, CONTROLLER)
    s.mend(3, ZOOKEEPER)
    hand_over(s)
    s.until(lambda: s.leader == 3, "3 leads", 2_500)
    s.write(3, b"other")
    s.world.mend(2, ZOOKEEPER, one_way=True)
    s.run(200)
    s.mend(2, 3, CONTROLLER)
    s.start(1)
    s.mend(1, 3)
    s.until(lambda: not any(s.fenced(node) for node in (1, 2, 3)), "all are there", 15_000)
    s.run(500)


def test_an_epoch_that_is_claimed_after_the_fence_is_nobodys(s: Stage) -> None:
    claims_late(s)
    assert_nothing_lost(s, b"before", b"other")


def test_without_a_look_at_the_fence_two_leaders_have_one_epoch(
    s: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClusterLevel, "confirm", lambda _, then, otherwise: then())  # noqa: ARG005
    claims_late(s)
    s.finish()
    assert {finding.oracle for finding in s.findings()} & {"divergence", "I03", "I15"}


REFUSED: list[tuple[Callable[[], str], str]] = [
    (lambda: refusal(level=8), "The level is 8: raise it to 11 first"),
    (lambda: refusal(controller=False), "No controller has said that it is there"),
    (lambda: refusal(moving=[T]), "t-0 is being reassigned"),
    (lambda: refusal(without_epoch=[T]), "No leader of t-0 has taken an epoch"),
]


def refusal(
    level: int = WITH_EPOCHS,
    controller: bool = True,
    moving: list[TopicPartition] | None = None,
    without_epoch: list[TopicPartition] | None = None,
) -> str:
    return cannot_hand_over(
        level, controller=controller, moving=moving or [], without_epoch=without_epoch or []
    )


@pytest.mark.parametrize(("asked", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_the_level_is_refused(asked: Callable[[], str], why: str) -> None:
    assert why in asked()
    assert refusal() == ""


def test_the_level_is_refused_as_long_as_one_broker_is_not_new() -> None:
    s = Stage(ZOOKEEPER_ERA, (), 3)
    bridge(s, 1, 2)
    tree = zookeeper(s).tree
    said = {int(name): tree.data(znodes.levels(int(name))) or b"" for name in tree.children(znodes.LEVELS)}
    assert said == {1: b"8-34", 2: b"8-34", 3: b"8-11"}
    supported = {node: znodes.to_levels(data) for node, data in said.items()}
    assert lacks_level((1, 2, 3), supported, WITH_CONTROLLER) == "Broker 3 only supports versions 8 to 11."


@pytest.mark.parametrize(
    ("seed", "profile", "controllers"), [(0, "zk08", 1), (4, "zk08-kip101", 3), (9, "zk08", 3)]
)
def test_nothing_is_lost_on_the_way(seed: int, profile: str, controllers: int) -> None:
    setup = Setup(
        seed,
        profile=profile,
        upgrade_to="kip101",
        controllers=controllers,
        seconds=24.0,
        brokers=4,
        fault_every_ms=700.0,
    )
    session = Run(setup)
    session.boot()
    session.main()
    assert not session.found
    assert not session.world.on_zookeeper, "the controller has taken over in the time of the faults"
    assert run(setup).violation is None
