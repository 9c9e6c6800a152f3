"""Unclean recovery that does not wait: strategy proactive, and an operator's will (docs/protocol.md 2.9)."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from tests.broker.core.controller.outage import outage, recoveries
from wrackline.broker.core.controller.forced_elections import POSSIBLE_LOSS
from wrackline.broker.core.controller.unclean_recovery import RECOVERY
from wrackline.broker.model.messages.admin import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionOutcome,
)
from wrackline.broker.model.types import NO_LEADER, RecoveryStrategy

PROACTIVE = {"unclean_recovery_strategy": RecoveryStrategy.PROACTIVE}


def elr_away(driver: Driver) -> Driver:
    """1 and 2 are complete, in the ELR and fenced; 3, which is behind, is there."""
    driver.start(1, 2, 3)
    driver.create()
    driver.alter([1, 2])
    driver.let_expire(2)
    driver.let_expire(1)
    assert driver.state() == (NO_LEADER, set(), {1, 2}, set())
    return driver


def test_proactive_does_not_wait_for_an_elr_member_that_is_away_and_says_so() -> None:
    """R27: a loss although somebody has everything."""
    driver = elr_away(Driver(**PROACTIVE))
    assert set(driver.asked) == {3}
    driver.tell_log(3, epoch=0, leo=2)
    assert driver.state()[0] == NO_LEADER, "the window is open"
    driver.fire(RECOVERY)
    assert driver.state() == (3, {3}, set(), {1, 2})
    assert driver.partition().leader_recovery_state == 1
    (loud,) = [trace for trace in recoveries(driver) if trace.loud]
    assert loud.fields["unheard"] == [1, 2]
    assert loud.fields["logs"] == {"3": [0, 2]}
    assert "possible data loss" in loud.fields["why"]


@pytest.mark.parametrize("strategy", [RecoveryStrategy.BALANCED, RecoveryStrategy.MANUAL])
def test_the_other_strategies_wait_for_the_elr(strategy: RecoveryStrategy) -> None:
    driver = elr_away(Driver(unclean_recovery_strategy=strategy))
    assert driver.asked == {}
    driver.beat(2)
    assert driver.state() == (2, {2}, {1}, set())
    assert not any(trace.loud for trace in recoveries(driver))


def test_proactive_elects_cleanly_whoever_of_the_elr_is_back_in_the_window() -> None:
    driver = elr_away(Driver(**PROACTIVE))
    driver.tell_log(3, epoch=0, leo=2)
    driver.beat(2)
    assert driver.state() == (2, {2}, {1}, set())
    assert not any(trace.loud for trace in recoveries(driver))
    assert driver.asked == {}


def test_proactive_takes_the_best_of_those_that_answered() -> None:
    driver = outage(Driver(**PROACTIVE), 1, 3)
    assert set(driver.asked) == {1, 3}
    driver.tell_log(1, epoch=0, leo=3)
    driver.tell_log(3, epoch=0, leo=7)
    assert driver.state()[0] == NO_LEADER, "2 may yet come"
    driver.beat(2)
    assert set(driver.asked) == {2}
    driver.tell_log(2, epoch=0, leo=5)
    assert driver.state() == (3, {3}, set(), {2}), "everyone has answered: at once"


def test_proactive_with_no_answer_in_the_window_takes_the_first_one_after_it() -> None:
    driver = outage(Driver(**PROACTIVE), 1)
    driver.no_answer(1)
    end = driver.now_ms + 5_000
    while driver.now_ms < end:
        driver.beat(1)
        driver.run_until(driver.now_ms + 500)
        if 1 in driver.asked and driver.now_ms < end:
            driver.no_answer(1)
    assert driver.state()[0] == NO_LEADER
    driver.run_until(driver.now_ms + 2_000)
    driver.tell_log(1, epoch=0, leo=0)
    assert driver.state() == (1, {1}, set(), {2, 3})


def test_a_candidate_of_proactive_recovery_that_goes_is_not_elected() -> None:
    driver = elr_away(Driver(**PROACTIVE))
    driver.tell_log(3, epoch=0, leo=2)
    driver.beat(3, fence=True)
    driver.run_until(driver.now_ms + 60_000)
    assert driver.state()[0] == NO_LEADER
    driver.beat(1)
    assert driver.state()[:2] == (1, {1})


def test_an_operator_overrides_the_strategy_and_hears_of_a_possible_loss() -> None:
    driver = elr_away(Driver(unclean_recovery_strategy=RecoveryStrategy.MANUAL))
    wanted = ElectLeadersRequest(int(ElectionType.UNCLEAN), None, 30_000)
    waiting = driver.post(wanted)
    assert set(driver.asked) == {3}
    driver.tell_log(3, epoch=0, leo=2)
    assert waiting not in driver.replies, "others may yet come"
    driver.fire(RECOVERY)
    assert driver.state()[:2] == (3, {3})
    assert driver.partition().leader_recovery_state == 1
    assert driver.replies[waiting] == ElectLeadersResponse((PartitionOutcome(T, message=POSSIBLE_LOSS),))
    assert driver.ask(wanted) == ElectLeadersResponse(()), "nothing more to do"


def test_an_operator_is_told_when_nobody_answers_and_the_strategy_holds_again() -> None:
    driver = elr_away(Driver())
    waiting = driver.post(ElectLeadersRequest(int(ElectionType.UNCLEAN), (T,), 30_000))
    end = driver.now_ms + 6_000
    while driver.now_ms < end:
        driver.beat(3)
        if 3 in driver.asked:
            driver.no_answer(3)
        driver.run_until(driver.now_ms + 500)
    response = driver.replies[waiting]
    assert isinstance(response, ElectLeadersResponse)
    assert response.partitions[0].error is ErrorCode.eligible_leaders_not_available
    timeouts = [m for m in driver.controller.metrics() if m.name == "unclean_recovery_timeout_count"]
    assert [m.samples for m in timeouts] == [{"": 1}]
    if 3 in driver.asked:
        driver.tell_log(3, epoch=0, leo=9)
    driver.run_until(driver.now_ms + 1_000)
    assert driver.state()[0] == NO_LEADER, "balanced waits for the ELR"


def test_an_operator_gets_a_clean_election_where_there_is_one() -> None:
    driver = elr_away(Driver())
    waiting = driver.post(ElectLeadersRequest(int(ElectionType.UNCLEAN), (T,), 30_000))
    driver.beat(1)
    assert driver.replies[waiting] == ElectLeadersResponse((PartitionOutcome(T),))
    assert driver.state() == (1, {1}, {2}, set())
