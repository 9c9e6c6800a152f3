"""Profile zk08: partitions that move (Z54), sessions that end, and whole runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from tests.zookeeper.simulator.zk08 import (
    QUICK,
    SESSION_MS,
    changes,
    node_data,
    open_leaders,
    staged,
    zookeeper,
)
from wrackline.broker.model.coordination import Coordinate, Delete, Set
from wrackline.simulator.cli import simulate
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.guided.setting import T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.run import run
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.administration import reassign
from wrackline.zookeeper.rules import RaceRules
from wrackline.zookeeper.simulator.ensemble import ZOOKEEPER


@pytest.fixture
def s() -> Stage:
    return staged()


# --- reassignment ------------------------------------------------------------------------------------------


def moved() -> Stage:
    stage = staged(brokers=4)
    stage.commit(b"a")
    return stage


def reassigned(s: Stage) -> bool:
    image = s.world.image.partition(T)
    return (
        image is not None
        and image.replicas == (2, 3, 4)
        and set(image.isr) == {2, 3, 4}
        and node_data(s, znodes.reassigned(T)) is None
        and T not in s.world.brokers[1].disk.logs
        and s.leader is not None
    )


def test_z54_the_writes_of_a_reassignment_are_in_the_documents_order() -> None:
    s = moved()
    seen = changes(s)
    for operation in reassign(T, (2, 3, 4)):
        zookeeper(s).administer(operation)
    s.until(lambda: reassigned(s), "moved", 20_000)
    paths = {znodes.isr(T), znodes.replicas(T), znodes.leader(T), znodes.reassigned(T)}
    after = [(path, data) for path, data in seen if path in paths]
    start = next(
        at for at, (path, data) in enumerate(after) if path == znodes.isr(T) and b"4" in (data or b"")
    )
    names = [path.rpartition("/")[2] for path, _ in after[start : start + 3]]
    assert names == ["ISR", "replicas", "leader"]
    assert set(znodes.to_ids(after[start][1] or b"")) == {1, 2, 3, 4}, "RAR + ISR"
    assert after[start + 2][1] is None, "deleted"
    assert (znodes.reassigned(T), None) in after[start + 3 :]
    assert s.values(4) == [b"a"]
    s.finish()
    assert s.findings() == ()


@pytest.mark.parametrize("writes", range(4))
def test_z54_a_leader_that_dies_between_the_writes_leaves_what_the_next_one_can_end(writes: int) -> None:
    """After none, one, two and three of the writes."""
    s = moved()
    wanted = (znodes.isr(T), znodes.replicas(T), znodes.leader(T))
    begun: list[str] = []

    def dies(event: object, effects: Any) -> int | None:
        del event
        for at, effect in enumerate(effects):
            if isinstance(effect, Coordinate) and isinstance(effect.operation, Set | Delete):
                path = effect.operation.path
                switching = path == znodes.isr(T) and b"4" in getattr(effect.operation, "data", b"")
                if path in wanted and (begun or switching):
                    begun.append(path)
                    if len(begun) > writes:
                        return at
                elif path == znodes.reassigned(T) and len(begun) >= writes:
                    return at
        return None

    s.world.cut_process(1, dies)
    for operation in reassign(T, (2, 3, 4)):
        zookeeper(s).administer(operation)
    s.until(lambda: not s.up(1), "1 died on the way", 20_000)
    s.run(SESSION_MS + 2_000)
    s.start(1)
    s.until(lambda: reassigned(s), "moved all the same", 40_000)
    assert s.values(4) == [b"a"]


# --- sessions ----------------------------------------------------------------------------------------------


def test_a_leader_that_is_cut_off_stops_before_its_session_ends(s: Stage) -> None:
    s.commit(b"a")
    s.cut(1, ZOOKEEPER)
    cut_at = s.world.now_ms
    s.until(lambda: open_leaders(s) == [], "1 stops by its own rule")
    assert s.world.now_ms - cut_at < SESSION_MS * 1.15
    assert node_data(s, znodes.leader(T)) == b"1", "ZooKeeper has not ended the session yet"
    s.until(lambda: s.leader in (2, 3), "another leads")


def test_a_session_that_is_over_ends_the_leadership_at_once(s: Stage) -> None:
    s.commit(b"a")
    zookeeper(s).expire(1)
    s.until(lambda: 1 not in open_leaders(s), "1 has heard")
    s.until(lambda: s.leader is not None, "a leader", 10_000)
    s.finish()
    assert s.findings() == ()


def test_a_lost_connection_costs_no_leadership(s: Stage) -> None:
    s.commit(b"a")
    created = zookeeper(s).tree.nodes[znodes.leader(T)].created
    zookeeper(s).disconnect(1)
    s.run(1_000)
    s.acked(1, b"b")
    assert zookeeper(s).tree.nodes[znodes.leader(T)].created == created


@pytest.mark.parametrize("seed", range(8))
def test_a_write_of_the_isr_that_nobody_knows_the_outcome_of_is_found_out(seed: int) -> None:
    s = Stage(QUICK, (), seed)
    s.commit(b"a")
    s.kill(3)
    asked: list[float] = []

    def drops(world: World, step: StepRecord) -> None:
        del world
        written = [e.operation.path for e in step.effects if isinstance(e, Coordinate)]
        if znodes.isr(T) in written and not asked:
            asked.append(step.at_ms)
            s.world.at(step.at_ms + seed / 3, lambda: zookeeper(s).disconnect(1))

    s.world.observers.append(drops)
    s.acked(1, b"b")
    assert asked
    assert s.isr == {1, 2}
    s.finish()
    assert s.findings() == ()


def test_without_a_leader_in_zookeeper_nobody_is_elected_and_nobody_is_fenced_by_it(s: Stage) -> None:
    s.commit(b"a")
    zookeeper(s).change_leader(10_000)
    s.run(9_000)
    assert open_leaders(s) == [], "1 has stopped by its own rule: it cannot know"
    assert zookeeper(s).expired == []
    s.until(lambda: s.leader == 1, "it leads on", 10_000)
    s.finish()
    assert s.findings() == ()


# --- whole runs --------------------------------------------------------------------------------------------

SHORT = Setup(seed=4, seconds=8.0, profile="zk08")


def test_the_same_seed_is_the_same_run() -> None:
    first, second = run(SHORT, digest=True), run(SHORT, digest=True)
    assert first.digest == second.digest
    assert first.acked > 20
    assert run(replace(SHORT, seed=5), digest=True).digest != first.digest


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_by_failures_that_come_one_by_one(seed: int) -> None:
    result = run(replace(SHORT, seed=seed))
    assert result.violation is None, result.violation


def test_faults_that_overlap_lose_what_was_acknowledged() -> None:
    found = {
        result.violation.oracle
        for seed in range(12)
        if (result := run(replace(SHORT, seed=seed, seconds=10.0, overlap=True))).violation is not None
    }
    assert found & {"I01", "I07", "lost-write"}


@pytest.mark.parametrize("option", ["--idempotent", "--combined", "--controllers=3"])
def test_what_the_profile_has_not_is_refused_in_one_line(option: str) -> None:
    done = CliRunner().invoke(simulate, ["--profile", "zk08", option])
    assert done.exit_code == 2
    assert f"{option.partition('=')[0]}: profile zk08 has no" in done.output
    assert "Traceback" not in done.output


def test_a_swarm_draws_nothing_that_the_profile_has_not() -> None:
    for seed in range(40):
        swarm(replace(SHORT, seed=seed)).check()


def test_the_search_notices_an_election_that_looks_at_no_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    hunted = Setup(seed=6, seconds=12.0, profile="zk08", brokers=4, fault_every_ms=700.0)
    assert run(hunted).violation is None
    monkeypatch.setattr(RaceRules, "may_run", lambda _, facts: facts.me in facts.replicas)
    violation = run(hunted).violation
    assert violation is not None
    assert violation.oracle in ("I01", "I07")
