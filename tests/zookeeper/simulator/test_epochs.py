"""Profile zk08-kip101: leader epochs in the ZooKeeper design, behind a level (docs/rolling-upgrades.md)."""

from __future__ import annotations

import pytest

from tests.zookeeper.simulator.zk08 import QUICK, zookeeper
from wrackline.broker.model.metadata.features import WITH_EPOCHS, WITHOUT_EPOCHS, Levels
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.story import Story
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.guided.setting import T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.run import run
from wrackline.simulator.run.session import Run
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.administration import lacks_level, raise_level

UPGRADED = QUICK.but(profile="zk08-kip101")
LOST = {"lost-write", "I01", "I07"}


def story(name: str) -> Story:
    return next(one for one in STORIES if one.name == name)


def oracles(name: str, *, level: int, seed: int = 0) -> set[str]:
    """What a story does to brokers of the later profile, at this level."""
    told = story(name)
    stage = Stage(told.setting.but(profile="zk08-kip101", level=level), (), seed)
    told.play(stage)
    stage.finish()
    return {finding.oracle for finding in stage.findings()}


@pytest.mark.parametrize("name", ["restart-then-failover", "failover-twice"])
@pytest.mark.parametrize("seed", [0, 7])
def test_b01_loses_a_record_below_the_level_and_none_at_it(name: str, seed: int) -> None:
    assert oracles(name, level=WITHOUT_EPOCHS, seed=seed) & LOST
    assert oracles(name, level=WITH_EPOCHS, seed=seed) == set()


def test_the_logs_of_two_that_lost_power_differ_below_the_level_and_agree_at_it() -> None:
    assert "divergence" in oracles("double-power-loss", level=WITHOUT_EPOCHS)
    assert "divergence" not in oracles("double-power-loss", level=WITH_EPOCHS)


def test_a_client_that_names_an_epoch_gets_no_stale_answer() -> None:
    assert "stale-read" in oracles("zombie-leader", level=WITHOUT_EPOCHS)
    assert oracles("zombie-leader", level=WITH_EPOCHS) == set()


@pytest.mark.parametrize("name", ["isolated-then-unclean", "split", "power-back-early"])
def test_what_epochs_do_not_help_against_loses_a_record_at_either_level(name: str) -> None:
    assert oracles(name, level=WITHOUT_EPOCHS) & LOST
    assert oracles(name, level=WITH_EPOCHS) & LOST


def test_each_leader_has_an_epoch_of_its_own_and_its_records_name_it() -> None:
    s = Stage(UPGRADED, (), 3)
    s.commit(b"a")
    s.kill(1)
    s.until(lambda: s.leader in (2, 3), "another leads", 10_000)
    second = s.leader
    s.write(second, b"b")
    epoch = znodes.to_epoch(zookeeper(s).tree.data(znodes.epoch(T)) or b"")
    assert (epoch.number, epoch.leader) == (2, second)
    assert epoch.created == zookeeper(s).tree.nodes[znodes.leader(T)].created
    log = s.world.brokers[second].disk.logs[T]
    assert [stored.header.leader_epoch for stored in log.batches] == [1, 2]


def test_at_the_level_every_leader_without_an_epoch_is_elected_anew() -> None:
    s = Stage(UPGRADED.but(level=WITHOUT_EPOCHS), (), 3)
    s.commit(b"a")
    tree = zookeeper(s).tree
    assert tree.data(znodes.epoch(T)) is None
    led = tree.nodes[znodes.leader(T)].created
    for operation in raise_level(WITH_EPOCHS):
        zookeeper(s).administer(operation)
    s.until(lambda: s.leader is not None and tree.nodes[znodes.leader(T)].created > led, "another term")
    s.write(s.ready(), b"b")
    both = {(b"a", b"b")}
    s.until(lambda: {tuple(s.values(node)) for node in (1, 2, 3)} == both, "both everywhere", 10_000)
    assert znodes.to_epoch(tree.data(znodes.epoch(T)) or b"").number >= 1


def test_brokers_say_what_they_support_and_the_level_waits_for_all_of_them() -> None:
    tree = zookeeper(Stage(UPGRADED, (), 3)).tree
    said = {int(name): tree.data(znodes.levels(int(name))) for name in tree.children(znodes.LEVELS)}
    assert said == dict.fromkeys((1, 2, 3), b"8-11")
    assert not zookeeper(Stage(QUICK, (), 3)).tree.children(znodes.LEVELS), "it knows nothing of levels"
    both = Levels(8, 11)
    assert lacks_level((1, 2), {1: both, 2: both}, WITH_EPOCHS) == ""
    assert "Broker 2 has not said" in lacks_level((1, 2), {1: both}, WITH_EPOCHS)
    assert "only supports versions 8 to 8" in lacks_level((1, 2), {1: both, 2: Levels(8, 8)}, WITH_EPOCHS)


def test_a_broker_ends_at_a_level_that_it_does_not_support() -> None:
    s = Stage(UPGRADED, (), 3)
    for operation in raise_level(12):
        zookeeper(s).administer(operation)
    s.run(200)
    exits = [gone for node in (1, 2, 3) for gone in s.world.brokers[node].exits]
    assert [gone.code for gone in exits] == [1, 1, 1]
    assert "the cluster's level is 12, and this broker supports 8 to 11" in exits[0].reason


def upgrading(seed: int) -> Setup:
    return Setup(
        seed, profile="zk08", upgrade_to="zk08-kip101", seconds=16.0, brokers=4, fault_every_ms=700.0
    )


@pytest.mark.parametrize("seed", [0, 216, 239])
def test_nothing_is_lost_on_the_way(seed: int) -> None:
    assert run(upgrading(seed)).violation is None


def test_every_broker_becomes_the_later_one_and_the_level_rises_at_the_end() -> None:
    session = Run(Setup(1, profile="zk08", upgrade_to="zk08-kip101", seconds=16.0, kinds=()))
    session.boot()
    session.main()
    assert not session.found
    world = session.world
    assert all(world.is_upgraded(node) for node in world.brokers)
    assert world.zookeeper is not None
    assert znodes.to_level(world.zookeeper.tree.data(znodes.FEATURE) or b"") == WITH_EPOCHS


def test_a_record_written_while_a_partition_moves_is_acknowledged_when_the_new_replicas_have_it() -> None:
    """Found by the search, seed 167: a replica that is about to be in the ISR may lead at once."""
    short = Setup(
        167, seconds=1.1, brokers=4, profile="zk08-kip101", fault_every_ms=700.0, keep_faults=(0, 3)
    )
    assert run(short).violation is None
