"""Each kind of change gives its ISR, ELR, LastKnownELR and leader: docs/protocol.md R17-R24, R28, R35, C7."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.core.controller.driver import Driver, T
from wrackline.broker.model.types import NO_LEADER, RecoveryStrategy


@pytest.fixture
def balanced() -> Driver:
    driver = Driver()
    driver.start(1, 2, 3)
    driver.create()
    return driver


@pytest.fixture(params=RecoveryStrategy)
def three(request: pytest.FixtureRequest) -> Driver:
    """Brokers 1, 2, 3, MinISR 2, one partition led by 1 with everyone in the ISR. Where a clean election is
    possible the strategies are the same."""
    driver = Driver(unclean_recovery_strategy=request.param)
    driver.start(1, 2, 3)
    driver.create()
    assert driver.state() == (1, {1, 2, 3}, set(), set())
    return driver


def test_case_e_and_g_an_isr_that_reaches_min_isr_empties_the_elr_even_of_the_fenced(three: Driver) -> None:
    three.alter([1, 3])
    three.let_expire(3)
    assert three.state() == (1, {1}, {3}, set())
    three.alter([1, 2])
    assert three.state() == (1, {1, 2}, set(), set())


def test_golden_r24_the_sole_isr_member_is_lost_and_the_elr_member_leads(three: Driver) -> None:
    three.alter([1, 3])
    three.alter([1])
    assert three.state() == (1, {1}, {3}, set())
    three.let_expire(1)
    assert three.state() == (3, {3}, {1}, set())
    three.register(1)
    assert three.state() == (3, {3}, set(), {1})
    three.beat(1)
    three.alter([3, (1, three.epochs[1])])
    assert three.state() == (3, {1, 3}, set(), set())


def test_golden_r35_a_power_outage_leaves_a_recovery_quorum_and_its_best_log_leads(balanced: Driver) -> None:
    balanced.let_expire(1, 2, 3)
    changes = [t for t in balanced.kinds() if t == "fence"]
    assert len(changes) == 3
    assert balanced.state() == (NO_LEADER, set(), {2, 3}, set())
    balanced.register(1)
    assert balanced.state() == (NO_LEADER, set(), {2, 3}, set())
    balanced.beat(1)
    assert balanced.state() == (NO_LEADER, set(), {2, 3}, set())
    balanced.register(2)
    assert balanced.state() == (NO_LEADER, set(), {3}, {2})
    balanced.register(3)
    assert balanced.state() == (NO_LEADER, set(), set(), {2, 3})
    waiting = [t for t in balanced.traces if t.kind == "recovery"][-1]
    assert waiting.fields["missing"] == [2, 3]
    balanced.beat(2)
    balanced.beat(3)
    ready = [t for t in balanced.traces if t.kind == "recovery"][-1]
    assert (ready.fields["candidates"], ready.fields["missing"]) == ([2, 3], [])
    assert ready.fields["winner"] is None
    assert balanced.state()[0] == NO_LEADER
    assert set(balanced.asked) == {2, 3}
    balanced.tell_log(3, epoch=0, leo=7)
    assert balanced.state()[0] == NO_LEADER
    balanced.tell_log(2, epoch=0, leo=9)
    assert balanced.state() == (2, {2}, set(), {3})
    assert balanced.partition().leader_recovery_state == 1


def test_c7_the_recovery_quorum_may_be_larger_than_min_isr(three: Driver) -> None:
    three.alter([1])
    assert three.state() == (1, {1}, {2, 3}, set())
    three.let_expire(1, 2, 3)
    for broker in (1, 2, 3):
        three.register(broker)
    assert three.state() == (NO_LEADER, set(), set(), {1, 2, 3})


def test_a_fenced_elr_is_waited_for(three: Driver) -> None:
    three.alter([1, 2])
    three.let_expire(1, 2)
    assert three.state() == (NO_LEADER, set(), {1, 2}, set())
    three.beat(3)
    assert three.state()[0] == NO_LEADER


def test_unclean_election_only_where_the_topic_allows_it(three: Driver) -> None:
    three.create("loose", unclean_leader_election_enable="true")
    loose = T._replace(topic="loose")
    for tp in (T, loose):
        three.alter([1, 2], tp=tp)
        three.alter([1], tp=tp)
    three.let_expire(2)
    three.register(2)
    three.let_expire(1)
    assert three.state(loose) == (3, {3}, set(), set())
    assert three.partition(loose).leader_recovery_state == 1
    assert three.state(T) == (NO_LEADER, set(), {1}, {2})
    loss = [t for t in three.traces if t.kind == "recovery" and t.fields["tp"] == "loose-0"]
    assert [t.fields["winner"] for t in loss] == [3]


def test_a_recovery_quorum_of_one_is_asked_all_the_same() -> None:
    driver = Driver(min_insync_replicas=1)
    driver.start(1)
    driver.create(replicas=[1])
    driver.let_expire(1)
    assert driver.state() == (NO_LEADER, set(), {1}, set())
    driver.register(1)
    assert driver.state() == (NO_LEADER, set(), set(), {1})
    driver.beat(1)
    assert driver.state() == (NO_LEADER, set(), set(), {1})
    driver.tell_log(1, epoch=-1, leo=0)
    assert driver.state() == (1, {1}, set(), set())
    assert driver.partition().leader_recovery_state == 1


def test_the_leader_is_the_first_live_isr_member_in_replica_order(three: Driver) -> None:
    three.create("u", replicas=[3, 1, 2])
    tp = T._replace(topic="u")
    three.alter([3, 2, 1], tp=tp)
    three.let_expire(3)
    assert three.state(tp)[0] == 1


def test_min_isr_is_bounded_by_the_replication_factor() -> None:
    driver = Driver(min_insync_replicas=3)
    driver.start(1, 2)
    driver.create(replicas=[1, 2])
    driver.let_expire(2)
    assert driver.state() == (1, {1}, {2}, set())
    assert driver.controller.committed.min_isr(T) == 2


def test_a_lower_cluster_wide_min_isr_clears_the_elr_it_no_longer_needs(three: Driver) -> None:
    three.alter([1, 2])
    three.let_expire(2)
    assert three.state() == (1, {1}, {2}, set())
    three.config = replace(three.config, min_insync_replicas=1)
    three.restart()
    assert three.state() == (1, {1}, set(), set())
    assert three.controller.committed.min_isr(T) == 1
