"""Unclean recovery by inspection of logs, strategy balanced: docs/protocol.md 2.9, R27-R36, C3, C7."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import CLUSTER, Driver, T
from wrackline.broker.core.controller.forced_elections import POSSIBLE_LOSS
from wrackline.broker.core.controller.unclean_recovery import RECOVERY
from wrackline.broker.model.admin_messages import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionOutcome,
)
from wrackline.broker.model.controller_messages import (
    BrokerRegistrationRequest,
    GetReplicaLogInfoRequest,
    ReplicaLogInfo,
)
from wrackline.broker.model.effects import Trace
from wrackline.broker.model.image import PartitionImage
from wrackline.broker.model.metadata_messages import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.types import NO_LEADER, RecoveryStrategy
from wrackline.broker.rules.election import ElectionRules, Recovery
from wrackline.broker.rules.eligible import Eligible
from wrackline.broker.rules.profile import Rules
from wrackline.broker.rules.recovery import LogEnd, RecoveryRules, Verdict


def outage(driver: Driver, *back: int) -> Driver:
    """Brokers 1, 2, 3 fall silent one by one, then some come back, uncleanly."""
    driver.start(1, 2, 3)
    driver.create()
    driver.let_expire(1, 2, 3)
    for broker in (1, 2, 3):
        driver.register(broker)
    assert driver.state() == (NO_LEADER, set(), set(), {2, 3})
    for broker in back:
        driver.beat(broker)
    return driver


@pytest.fixture
def dark() -> Driver:
    """Leaderless, everyone back, 2 and 3 are asked."""
    driver = outage(Driver(), 1, 2, 3)
    assert set(driver.asked) == {2, 3}
    return driver


def recoveries(driver: Driver) -> list[Trace]:
    return [trace for trace in driver.traces if trace.kind == "recovery"]


# --- the rules ----------------------------------------------------------------------------------------------

ENDS = [
    ({1: (4, 9), 2: (5, 3)}, 2),  # a later epoch beats a longer log
    ({1: (5, 3), 2: (5, 4), 3: (4, 90)}, 2),
    ({3: (5, 4), 2: (5, 4)}, 2),  # tie: the lowest id
    ({2: (-1, 0), 3: (0, 1)}, 3),
    ({3: (-1, 0)}, 3),
]


@pytest.mark.parametrize(("ends", "winner"), ENDS)
def test_the_best_log_wins(ends: dict[int, tuple[int, int]], winner: int) -> None:
    assert RecoveryRules().winner(LogEnd(b, 0, *end) for b, end in ends.items()) == winner


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(-1, 3), st.integers(0, 3)),
        min_size=1,
        unique_by=lambda e: e[0],
    )
)
def test_nobody_has_a_better_log_than_the_winner(ends: list[tuple[int, int, int]]) -> None:
    winner = RecoveryRules().winner(LogEnd(b, 0, epoch, leo) for b, epoch, leo in ends)
    (best,) = (end for end in ends if end[0] == winner)
    assert all(
        (epoch, leo) < best[1:] or ((epoch, leo) == best[1:] and b >= winner) for b, epoch, leo in ends
    )


@pytest.mark.parametrize(
    ("broker_epoch", "current_leader_epoch", "error", "verdict"),
    [
        (9, 5, ErrorCode.none, Verdict.COUNTS),
        (8, 5, ErrorCode.none, Verdict.ASK_AGAIN),
        (8, 6, ErrorCode.none, Verdict.ASK_AGAIN),
        (9, 6, ErrorCode.none, Verdict.ABORT),
        (9, 4, ErrorCode.none, Verdict.ASK_AGAIN),
        (9, 5, ErrorCode.kafka_storage_error, Verdict.ASK_AGAIN),
        (-1, 5, ErrorCode.none, Verdict.ASK_AGAIN),
    ],
)
def test_which_answers_count(
    broker_epoch: int, current_leader_epoch: int, error: ErrorCode, verdict: Verdict
) -> None:
    info = ReplicaLogInfo(UUID(int=1), 0, 3, current_leader_epoch, 10, error)
    assert RecoveryRules().judge(info, broker_epoch, registered_epoch=9, leader_epoch=5) is verdict


def test_only_balanced_inspects_and_only_when_nobody_is_missing() -> None:
    rules, ready, waiting = RecoveryRules(), Recovery((2, 3), ()), Recovery((2, 3), (3,))
    assert rules.may_inspect(RecoveryStrategy.BALANCED, ready)
    assert not rules.may_inspect(RecoveryStrategy.BALANCED, waiting)
    assert not rules.may_inspect(RecoveryStrategy.BALANCED, Recovery((), ()))
    assert not rules.may_inspect(RecoveryStrategy.MANUAL, ready)


# --- the controller -----------------------------------------------------------------------------------------


def test_nobody_is_asked_before_every_candidate_is_back() -> None:
    driver = outage(Driver(), 1, 3)
    assert driver.asked == {}
    driver.beat(2)
    assert set(driver.asked) == {2, 3}
    partition = driver.partition()
    for send in driver.asked.values():
        assert send.request == GetReplicaLogInfoRequest(((partition.topic_id, 0),))


def test_the_winner_leads_alone_and_possible_loss_is_said_aloud(dark: Driver) -> None:
    before = dark.partition()
    dark.tell_log(2, epoch=0, leo=5)
    dark.tell_log(3, epoch=0, leo=6)
    after = dark.partition()
    assert dark.state() == (3, {3}, set(), {2})
    assert after.leader_recovery_state == 1
    assert (after.leader_epoch, after.partition_epoch) == (
        before.leader_epoch + 1,
        before.partition_epoch + 1,
    )
    (loud,) = [trace for trace in recoveries(dark) if trace.loud]
    assert "possible data loss" in loud.fields["why"]
    assert {key: loud.fields[key] for key in ("tp", "candidates", "winner", "logs")} == {
        "tp": "t-0",
        "candidates": [2, 3],
        "winner": 3,
        "logs": {"2": [0, 5], "3": [0, 6]},
    }
    assert dark.asked == {}


def test_the_isr_grows_again_once_the_leader_has_said_that_it_is_recovered(dark: Driver) -> None:
    dark.tell_log(2, epoch=0, leo=5)
    dark.tell_log(3, epoch=0, leo=5)
    assert dark.state() == (2, {2}, set(), {3})
    assert dark.alter([2, 1], leader_recovery_state=1).error is ErrorCode.invalid_request
    assert dark.alter([2]).error is ErrorCode.none
    assert dark.partition().leader_recovery_state == 0
    assert dark.alter([2], leader_recovery_state=1).error is ErrorCode.invalid_request
    dark.alter([2, (1, dark.epochs[1]), (3, dark.epochs[3])])
    assert dark.state() == (2, {1, 2, 3}, set(), set())


def test_who_does_not_answer_is_asked_again_later_and_later(dark: Driver) -> None:
    dark.tell_log(3, epoch=0, leo=5)
    waits = []
    for _ in range(8):
        dark.no_answer(2)
        assert dark.state()[0] == NO_LEADER
        waits.append(dark.timers[RECOVERY] - dark.now_ms)
        for broker in (1, 2, 3):
            dark.beat(broker)
        assert dark.asked == {}, "not before the pause is over"
        dark.fire(RECOVERY)
        assert set(dark.asked) == {2}, "and only who has not answered"
    assert waits == [100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]
    dark.tell_log(2, epoch=0, leo=9)
    assert dark.state()[0] == 2


@pytest.mark.parametrize("wrong", [{"broker_epoch": 0}, {"broker_epoch": -1}, {"current_leader_epoch": 0}])
def test_an_answer_of_another_life_or_of_an_older_leader_epoch_is_asked_for_again(
    dark: Driver, wrong: dict[str, int]
) -> None:
    dark.tell_log(3, epoch=0, leo=5)
    dark.tell_log(2, epoch=8, leo=99, **wrong)
    assert dark.state()[0] == NO_LEADER
    dark.fire(RECOVERY)
    dark.tell_log(2, epoch=0, leo=3)
    assert dark.state()[0] == 3


def test_a_newer_leader_epoch_somewhere_ends_the_attempt(dark: Driver) -> None:
    newer = dark.partition().leader_epoch + 1
    dark.tell_log(3, epoch=0, leo=5)
    dark.tell_log(2, epoch=0, leo=9, current_leader_epoch=newer)
    assert dark.state()[0] == NO_LEADER
    assert "given up: broker 2 knows leader epoch" in recoveries(dark)[-1].fields["why"]
    assert dark.asked == {}
    assert RECOVERY not in dark.timers


def test_a_candidate_that_goes_in_between_must_come_back_and_answer_anew(dark: Driver) -> None:
    dark.tell_log(3, epoch=0, leo=99)
    dark.let_expire(3)
    dark.tell_log(2, epoch=0, leo=5)
    assert dark.state()[0] == NO_LEADER
    dark.register(3)
    dark.beat(3)
    assert set(dark.asked) == {2, 3}, "the answers of the first attempt are forgotten"
    dark.tell_log(3, epoch=0, leo=1)
    dark.tell_log(2, epoch=0, leo=5)
    assert dark.state()[0] == 2, "what 3 had before it lost power does not count"


def test_a_candidate_that_is_about_to_be_fenced_is_not_elected() -> None:
    """Its fencing is decided but not committed when the last answer comes (R36)."""
    driver = outage(Driver(), 1, 2, 3)
    driver.tell_log(3, epoch=0, leo=9)
    driver.auto_flush = False
    driver.beat(2)
    driver.post_beat(3, fence=True)
    driver.tell_log(2, epoch=0, leo=5)
    while driver.flushes:
        driver.flush()
    assert driver.state()[0] == NO_LEADER
    driver.auto_flush = True
    driver.beat(3)
    driver.tell_log(3, epoch=0, leo=9)
    driver.tell_log(2, epoch=0, leo=5)
    assert driver.state()[0] == 3


def test_a_topic_deleted_meanwhile_is_forgotten(dark: Driver) -> None:
    dark.tell_log(3, epoch=0, leo=9)
    dark.delete("t")
    dark.tell_log(2, epoch=0, leo=9)
    assert dark.controller.committed.partition(T) is None
    assert dark.exits == []
    assert dark.asked == {}


def test_a_topic_whose_deletion_is_not_committed_yet_is_left_alone(dark: Driver) -> None:
    dark.tell_log(3, epoch=0, leo=9)
    dark.auto_flush = False
    dark.post(DeleteTopicsRequest(("t",), 1_000))
    dark.tell_log(2, epoch=0, leo=9)
    while dark.flushes:
        dark.flush()
    assert dark.controller.committed.partition(T) is None
    assert not any(trace.loud for trace in recoveries(dark))


def test_a_former_life_is_forgotten_even_when_its_end_and_the_next_are_committed_together(
    dark: Driver,
) -> None:
    dark.tell_log(3, epoch=0, leo=99)
    dark.auto_flush = False
    # Something that is being flushed, so that what follows is committed in one go.
    dark.post(CreateTopicsRequest((NewTopic("u", assignments={0: (1,)}),), 1_000))
    dark.post_beat(3, fence=True)
    dark.post(BrokerRegistrationRequest(3, CLUSTER, dark.incarnation(), "n3", 9092))
    dark.epochs[3] = dark.controller.speculative.brokers[3].epoch
    dark.post_beat(3, fence=False)
    while dark.flushes:
        dark.flush()
    dark.auto_flush = True
    assert set(dark.asked) == {2, 3}
    dark.tell_log(2, epoch=0, leo=5)
    dark.tell_log(3, epoch=0, leo=1)
    assert dark.state()[0] == 2


def test_a_broker_that_answered_is_not_waited_for_longer_the_next_time(dark: Driver) -> None:
    for _ in range(4):
        dark.no_answer(2)
        dark.fire(RECOVERY)
    dark.tell_log(2, epoch=0, leo=9)
    dark.tell_log(3, epoch=0, leo=5)
    dark.let_expire(2)
    dark.start(2)
    assert set(dark.asked) == {2, 3}
    dark.no_answer(2)
    assert dark.timers[RECOVERY] - dark.now_ms == 100


def test_a_controller_that_restarts_begins_anew(dark: Driver) -> None:
    dark.tell_log(3, epoch=0, leo=9)
    late = dark.asked[2]
    dark.restart()
    assert set(dark.asked) == {2, 3}
    assert dark.asked[2].request == late.request
    dark.tell_log(2, epoch=0, leo=5)
    assert dark.state()[0] == NO_LEADER
    dark.tell_log(3, epoch=0, leo=5)
    assert dark.state()[0] == 2


def test_many_partitions_share_one_question() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    tps = []
    for number in range(5):
        driver.create(f"t{number}")
        tps.append(T._replace(topic=f"t{number}"))
    driver.let_expire(1, 2, 3)
    for broker in (1, 2, 3):
        driver.start(broker)
    assert set(driver.asked) == {2, 3}
    driver.tell_log(3, epoch=0, leo=5)
    driver.tell_log(2, epoch=0, leo=5)
    assert [driver.state(tp) for tp in tps] == [(2, {2}, set(), {3})] * 5


def test_manual_waits_for_an_operator() -> None:
    driver = outage(Driver(unclean_recovery_strategy=RecoveryStrategy.MANUAL), 1, 2, 3)
    assert driver.asked == {}
    assert driver.state()[0] == NO_LEADER
    assert "manual" in recoveries(driver)[-1].fields["why"]
    driver.config = replace(driver.config, unclean_recovery_strategy=RecoveryStrategy.BALANCED)
    driver.restart()
    assert set(driver.asked) == {2, 3}


class ForgetQuorum(ElectionRules):
    """The table of docs/protocol.md 2.9 to the letter: the election clears the LastKnownELR."""

    def after_recovery(self, partition: PartitionImage, winner: int) -> Eligible:  # noqa: ARG002
        return Eligible((), ())


@pytest.mark.parametrize(("rules", "leader"), [(Rules(), 3), (replace(Rules(), election=ForgetQuorum()), 2)])
def test_the_quorum_is_remembered_until_the_isr_has_grown(rules: Rules, leader: int) -> None:
    """A lossy shutdown of the winner before the ISR has MinISR members again: 3 still has everything and is
    asked (KIP-966's description, 5.3.1); were the LastKnownELR cleared with the election, the emptied winner
    would be elected."""
    driver = outage(Driver(rules=rules), 1, 2, 3)
    driver.tell_log(2, epoch=0, leo=9)
    driver.tell_log(3, epoch=0, leo=9)
    assert driver.state()[:2] == (2, {2})
    driver.let_expire(2)
    driver.start(2)
    for broker in sorted(driver.asked):
        driver.tell_log(broker, epoch=0, leo=9 if broker == 3 else 4)
    assert driver.state()[0] == leader


# --- proactive, and an operator's will ----------------------------------------------------------------------

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
    driver.fire(RECOVERY)
    assert driver.state()[:2] == (3, {3})
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
