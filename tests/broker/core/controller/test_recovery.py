"""Unclean recovery by inspection of logs, strategy balanced: docs/protocol.md 2.9, R27-R36, C3, C7."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import CLUSTER, Driver, T
from tests.broker.core.controller.outage import outage, recoveries
from wrackline.broker.core.controller.unclean_recovery import RECOVERY
from wrackline.broker.model.messages.controller import BrokerRegistrationRequest, GetReplicaLogInfoRequest
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER, RecoveryStrategy
from wrackline.broker.rules.leadership.election import ElectionRules
from wrackline.broker.rules.leadership.eligible import Eligible
from wrackline.broker.rules.profile import Rules


@pytest.fixture
def dark() -> Driver:
    """Leaderless, everyone back, 2 and 3 are asked."""
    driver = outage(Driver(), 1, 2, 3)
    assert set(driver.asked) == {2, 3}
    return driver


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
