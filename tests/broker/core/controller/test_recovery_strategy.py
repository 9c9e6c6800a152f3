"""The topic's setting unclean.recovery.strategy, changed while partitions wait for a leader, and the leader
that a person names under manual (docs/protocol.md 2.9, R27-R29)."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from tests.broker.core.controller.outage import outage, recoveries
from tests.broker.core.controller.test_proactive_recovery import elr_away
from wrackline.broker.core.controller.unclean_recovery import RECOVERY
from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.types import NO_LEADER, RecoveryStrategy
from wrackline.broker.rules.placement.topics import RECOVERY_STRATEGY
from wrackline.broker.rules.profile import profile

TOPIC, CLUSTER = a.Resource(a.TOPIC, "t"), a.Resource(a.BROKER, "")


def post(driver: Driver, strategy: str | None, resource: a.Resource = TOPIC) -> int:
    operation = a.AlterOp.DELETE if strategy is None else a.AlterOp.SET
    change = a.ConfigChange(RECOVERY_STRATEGY, operation, strategy)
    return driver.post(a.IncrementalAlterConfigsRequest((a.AlteredResource(resource, (change,)),)))


def choose(driver: Driver, strategy: str | None, resource: a.Resource = TOPIC) -> a.ResourceOutcome:
    response = driver.replies[post(driver, strategy, resource)]
    assert isinstance(response, a.IncrementalAlterConfigsResponse)
    return response.resources[0]


def name(driver: Driver, leader: int) -> a.PartitionOutcome:
    response = driver.ask(a.ElectLeadersRequest(int(a.ElectionType.DESIGNATED), (T,), 30_000, (leader,)))
    assert isinstance(response, a.ElectLeadersResponse)
    return response.partitions[0]


def sample(driver: Driver, metric: str, labels: str = "") -> int:
    [found] = [each for each in driver.controller.metrics() if each.name == metric]
    return found.samples[labels]


# --- the setting -----------------------------------------------------------------------------------------


def test_a_topic_is_created_with_its_strategy_and_the_controller_goes_by_it() -> None:
    driver = Driver()
    driver.start(1, 2, 3)
    created, _ = driver.create("t", unclean_recovery_strategy="none")
    assert created.error is ErrorCode.none
    driver.create("u")
    driver.let_expire(1, 2, 3)
    for broker in (1, 2, 3):
        driver.start(broker)
    driver.tell_log(2, epoch=0, leo=5)
    driver.tell_log(3, epoch=0, leo=5)
    assert driver.state()[0] == NO_LEADER
    assert driver.state(T._replace(topic="u"))[0] == 2


def test_from_manual_to_balanced_the_logs_are_compared_at_once() -> None:
    driver = outage(Driver(unclean_recovery_strategy=RecoveryStrategy.MANUAL), 1, 2, 3)
    assert driver.asked == {}
    assert choose(driver, "balanced").error is ErrorCode.none
    assert set(driver.asked) == {2, 3}
    driver.tell_log(2, epoch=0, leo=4)
    driver.tell_log(3, epoch=0, leo=5)
    assert driver.state()[0] == 3
    assert recoveries(driver)[-1].fields["by"] == "balanced"


def test_from_balanced_to_proactive_nobody_is_waited_for() -> None:
    driver = elr_away(Driver())
    assert driver.asked == {}
    choose(driver, "Aggressive")
    assert set(driver.asked) == {3}
    driver.tell_log(3, epoch=0, leo=2)
    driver.fire(RECOVERY)
    assert driver.state()[:2] == (3, {3})


def test_to_manual_an_attempt_under_way_ends() -> None:
    driver = outage(Driver(), 1, 2, 3)
    driver.tell_log(2, epoch=0, leo=4)
    choose(driver, "manual")
    driver.tell_log(3, epoch=0, leo=5)
    assert driver.state()[0] == NO_LEADER
    assert "manual" in recoveries(driver)[-1].fields["why"]


def test_an_attempt_begins_anew_under_another_strategy() -> None:
    driver = outage(Driver(), 1, 2, 3)
    assert set(driver.asked) == {2, 3}
    choose(driver, "proactive")
    assert set(driver.asked) == {1, 2, 3}


def test_a_change_that_is_not_committed_yet_stops_an_election_that_would_follow_it() -> None:
    driver = outage(Driver(), 1, 2, 3)
    driver.tell_log(2, epoch=0, leo=4)
    driver.auto_flush = False
    waiting = post(driver, "manual")
    driver.tell_log(3, epoch=0, leo=5)
    assert waiting not in driver.replies
    driver.auto_flush = True
    driver.flush()
    assert waiting in driver.replies
    assert driver.state()[0] == NO_LEADER


def test_the_topic_wins_over_the_cluster_and_without_it_the_cluster_counts() -> None:
    driver = outage(Driver(unclean_recovery_strategy=RecoveryStrategy.MANUAL), 1, 2, 3)
    choose(driver, "manual")
    choose(driver, "balanced", CLUSTER)
    assert driver.asked == {}
    choose(driver, None)
    assert set(driver.asked) == {2, 3}


def test_the_strategy_outlives_the_controller() -> None:
    driver = outage(Driver(), 1, 2, 3)
    choose(driver, "manual")
    driver.restart()
    assert driver.asked == {}
    choose(driver, None)
    driver.restart()
    assert set(driver.asked) == {2, 3}


@pytest.mark.parametrize("resource", [TOPIC, CLUSTER])
def test_another_word_is_refused_and_the_right_ones_are_named(resource: a.Resource) -> None:
    refused = choose(outage(Driver()), "careful", resource)
    assert refused.error is ErrorCode.invalid_config
    assert "balanced, proactive (also aggressive) or manual (also none)" in str(refused.message)


def test_before_kip966_there_is_nothing_to_choose() -> None:
    driver = Driver(rules=profile("kraft35"))
    driver.start(1, 2, 3)
    driver.create()
    refused = choose(driver, "manual")
    assert refused.error is ErrorCode.invalid_config
    assert "needs profile kip966" in str(refused.message)
    assert driver.controller.committed.setting("t", RECOVERY_STRATEGY) is None


# --- a person names the leader ---------------------------------------------------------------------------


def manual(*back: int) -> Driver:
    return outage(Driver(unclean_recovery_strategy=RecoveryStrategy.MANUAL), *back)


def test_a_person_names_a_leader_whatever_its_log() -> None:
    driver = manual(1, 2, 3)
    outcome = name(driver, 1)
    assert (outcome.error, "possible data loss" in str(outcome.message)) == (ErrorCode.none, True)
    assert driver.state() == (1, {1}, set(), {2, 3})
    assert driver.partition().leader_recovery_state == 1
    loud = recoveries(driver)[-1]
    assert loud.loud
    assert (loud.fields["winner"], loud.fields["by"]) == (1, "named")


@pytest.mark.parametrize(
    ("driver", "leader", "error", "words"),
    [
        (lambda: outage(Driver(), 1), 1, ErrorCode.invalid_request, "of topic 't' is balanced"),
        (lambda: manual(1), 2, ErrorCode.eligible_leaders_not_available, "broker 2 is fenced"),
        (
            lambda: manual(1),
            9,
            ErrorCode.invalid_replica_assignment,
            "broker 9 has no replica; there are [1, 2, 3]",
        ),
    ],
)
def test_who_cannot_be_named(driver: object, leader: int, error: ErrorCode, words: str) -> None:
    made = driver()  # type: ignore[operator]
    outcome = name(made, leader)
    assert (outcome.error, words in str(outcome.message)) == (error, True), outcome
    assert made.state()[0] == NO_LEADER


def test_a_person_may_name_a_leader_while_logs_are_still_compared_for_another() -> None:
    driver = elr_away(Driver(unclean_recovery_strategy=RecoveryStrategy.MANUAL))
    comparing = driver.post(a.ElectLeadersRequest(int(a.ElectionType.UNCLEAN), (T,), 30_000))
    assert comparing not in driver.replies
    assert name(driver, 3).error is ErrorCode.none
    assert driver.state()[0] == 3
    assert comparing in driver.replies


def test_where_there_is_a_leader_nobody_is_named() -> None:
    driver = manual(1)
    name(driver, 1)
    assert name(driver, 1).error is ErrorCode.election_not_needed


def test_before_kip966_nobody_can_be_named() -> None:
    driver = Driver(rules=profile("kraft35"))
    driver.start(1, 2, 3)
    driver.create()
    assert name(driver, 1).error is ErrorCode.invalid_request


@pytest.mark.parametrize("tps", [None, (T, T._replace(partition=1))])
def test_each_partition_needs_its_leader(tps: tuple[object, ...] | None) -> None:
    request = a.ElectLeadersRequest(int(a.ElectionType.DESIGNATED), tps, 30_000, (1,))  # type: ignore[arg-type]
    assert manual(1).ask(request) == a.ElectLeadersResponse(error=ErrorCode.invalid_request)


def test_an_unknown_kind_of_election_is_refused() -> None:
    response = manual(1).ask(a.ElectLeadersRequest(7, (T,), 30_000))
    assert response == a.ElectLeadersResponse(error=ErrorCode.invalid_request)


# --- metrics ---------------------------------------------------------------------------------------------


def test_metrics_say_who_waits_for_what_and_what_was_done() -> None:
    driver = manual(1, 2, 3)
    required, going = "manual_leader_election_required_partition_count", "unclean_recovery_partitions_count"
    assert sample(driver, "active_controller_count") == 1
    assert (sample(driver, required), sample(driver, going, 'strategy="balanced"')) == (1, 0)
    choose(driver, "balanced")
    assert (sample(driver, required), sample(driver, going, 'strategy="balanced"')) == (0, 1)
    driver.tell_log(2, epoch=0, leo=5)
    driver.tell_log(3, epoch=0, leo=5)
    assert (sample(driver, required), sample(driver, going, 'strategy="balanced"')) == (0, 0)
    done = "unclean_recovery_finished_count"
    assert sample(driver, done, 'by="balanced"') == 1
    assert sum(next(m for m in driver.controller.metrics() if m.name == done).samples.values()) == 1


@pytest.mark.parametrize("by", ["named", "proactive", "operator", "unclean.leader.election.enable"])
def test_metrics_count_each_way_to_elect_uncleanly(by: str) -> None:
    driver = elr_away(Driver(unclean_recovery_strategy=RecoveryStrategy.MANUAL))
    match by:
        case "named":
            name(driver, 3)
        case "proactive":
            choose(driver, "proactive")
        case "operator":
            driver.post(a.ElectLeadersRequest(int(a.ElectionType.UNCLEAN), (T,), 30_000))
        case _:
            change = a.ConfigChange("unclean.leader.election.enable", a.AlterOp.SET, "true")
            driver.ask(a.IncrementalAlterConfigsRequest((a.AlteredResource(TOPIC, (change,)),)))
    if driver.asked:
        driver.tell_log(3, epoch=0, leo=2)
        driver.fire(RECOVERY)
    assert driver.state()[0] == 3
    assert sample(driver, "unclean_recovery_finished_count", f'by="{by}"') == 1
    assert sample(driver, "unclean_recovery_timeout_count") == (by in ("proactive", "operator"))
