"""Verdicts: their precedence, the conditions without which nothing is proved, and runs that expect an
anomaly."""

from __future__ import annotations

import dataclasses

import pytest

from tests.checkers.good_runs import PLACE, SECOND, decided, found, good_figures, good_run, missing, outcomes
from tests.checkers.histories import TOPIC, info
from tests.checkers.verdict.test_deletions import begun_at
from wrackline.checkers.checks.registry import anomalies, names
from wrackline.checkers.findings import Verdict
from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.course import Trouble
from wrackline.checkers.inputs.runs import Fault, Run
from wrackline.checkers.verdict.conditions.conditions import conditions
from wrackline.checkers.verdict.contracts import contract_for
from wrackline.checkers.verdict.measures import metrics
from wrackline.checkers.verdict.measures.metrics import Figures, TransactionEnds, Written
from wrackline.checkers.verdict.system_words import pair
from wrackline.checkers.verdict.verdict import verdict
from wrackline.history.model import PlanInfo


def test_pass() -> None:
    result = decided(good_run())
    assert (result["verdict"], result["exit_code"]) == (Verdict.PASS, 0)
    assert result["headline"] == (
        "1 fault, 1,000 records acknowledged: none of the records is gone. acks-all+idempotence was kept"
    )
    assert result["outage"] == ""
    assert {one["anomaly"] for one in result["anomalies"]} == {*names(), "unproven-write"}


def test_allowed_findings_do_not_forbid_a_pass() -> None:
    result = decided(good_run(), stale_read=3)
    assert result["verdict"] == Verdict.PASS
    assert "stale-read" not in result["headline"], "it says what was survived, and not what is allowed"
    assert any("3 findings of stale-read are allowed" in one for one in result["reasons"])


def test_a_pass_says_what_was_lost_with_the_power_and_what_was_deleted() -> None:
    run = good_run()
    lost = {"n1": {"log-0/0.log": 1_048_576, "meta": 0}, "n2": {}}
    power = dataclasses.replace(run.faults[0], name="power-cut", lossy=("n1",), lost=lost)
    run.faults += [dataclasses.replace(power, id=name) for name in ("f2", "f3")]
    headline = decided(run)["headline"]
    assert headline.startswith(
        "3 faults, 1,000 records acknowledged, 2.0 MiB of unsynced data lost on n1: none"
    )
    run = good_run(plan=PlanInfo(60.0, {}))
    run.faults.clear()
    assert decided(run)["headline"].startswith(
        "No fault, 1,000 records acknowledged: none of the records is gone"
    )
    told = begun_at(60, retention_ms="3000")
    assert "none of the records is lost; deleted: log-0 below offset 60" in decided(told)["headline"]


def test_every_verdict_says_how_long_nothing_could_be_written() -> None:
    run = good_run()
    figures = good_figures(run)
    figures.written[PLACE, 2] = Written(50, 20)
    figures.gaps = {("f1", PLACE): (21 * SECOND, int(28.3 * SECOND), int(7.3 * SECOND))}
    told = "log-0 could not be written for 7.3 s"
    assert f"is gone; {told}. acks" in decided(run, figures)["headline"]
    assert decided(run, figures, lost_write=1)["headline"].endswith(f"; {told}")
    expected = good_run(expected=("lost-write",))
    for one in (decided(expected, figures), decided(expected, figures, lost_write=1)):
        assert one["headline"].endswith(f"; {told}")
    run.final = {}
    assert decided(run, figures)["outage"] == told


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (
            {"lost_write": 56, "vanished_read": 3},
            "56 of 1,000 acknowledged records under 1 fault are gone",
        ),
        ({"lost_write": 1}, "1 of 1,000 acknowledged records under 1 fault is gone"),
        ({"vanished_read": 3}, "3 vanished-read among 1,000 acknowledged records under 1 fault"),
        ({"lost_committed": 1}, "1 lost-committed among 1,000 acknowledged records under 1 fault"),
    ],
)
def test_no_headline_says_that_a_promise_was_kept_where_records_are_gone(
    lost: dict[str, int], told: str
) -> None:
    run = good_run()
    run.info = dataclasses.replace(run.info, unclean_election=True)
    result = decided(run, **lost)
    assert result["verdict"] == Verdict.PASS
    assert " kept" not in result["headline"]
    assert result["headline"].startswith(f"{told}. acks-all-unclean+idempotence allows that: ")
    assert "records may be lost with" in result["headline"]


def test_violation() -> None:
    result = decided(good_run(), lost_write=2)
    assert (result["verdict"], result["exit_code"]) == (Verdict.VIOLATION, 1)
    assert "2 lost-write" in result["headline"]


def test_precedence_violation_infrastructure_inconclusive_pass() -> None:
    run = good_run()
    run.final = {}
    assert decided(run)["verdict"] == Verdict.INCONCLUSIVE
    run.trouble = Trouble("n2: no route to host", ("collect",))
    assert decided(run)["verdict"] == Verdict.INFRASTRUCTURE
    assert decided(run)["exit_code"] == 4
    assert decided(run, phantom=1)["verdict"] == Verdict.VIOLATION


def test_a_fault_that_was_not_proved_or_whose_end_is_missing() -> None:
    run = good_run()
    run.faults[0].proved = False
    run.faults[0].proof = "no packet matched"
    assert missing(run) == ["every fault proved"]
    assert "no packet matched" in decided(run)["reasons"][0]
    assert decided(run)["exit_code"] == 3


def test_a_final_read_that_fell_short() -> None:
    run = good_run()
    run.final[PLACE].complete = False
    assert missing(run) == ["final read complete"]
    del run.final[PLACE]
    assert missing(run) == ["final read complete"]


def test_a_replica_that_was_not_read() -> None:
    run = good_run()
    run.replicas[PLACE]["n3"].complete = False
    assert missing(run) == ["every replica's log read"]
    del run.replicas[PLACE]["n3"]
    assert missing(run) == ["every replica's log read"]


def test_a_kind_of_operation_that_never_succeeded_in_a_healthy_phase() -> None:
    run = good_run()
    figures = good_figures(run)
    figures.segments[1, "poll"] = outcomes(0, 5, 0)
    (condition,) = [one for one in conditions(run, figures) if not one.ok]
    assert condition.detail == "no poll succeeded in main from 0.0 to 20.0 s (5 tried)"


def test_failed_operations_during_a_fault_do_not_prevent_a_pass() -> None:
    run = good_run()
    figures = good_figures(run)
    figures.segments[2, "poll"] = outcomes(0, 5, 0)
    assert missing(run, figures) == []


def test_a_green_night_in_which_nothing_was_done() -> None:
    assert "every operation kind succeeded in every healthy phase" in missing(good_run(), Figures())


def test_the_asked_rate_must_be_reached_before_the_first_fault() -> None:
    run = good_run(rate=150.0)
    assert missing(run, good_figures(run, ok=1_000)) == []  # 3,000 in 20 s
    assert missing(run, good_figures(run, ok=900)) == ["asked rate reached before the first fault"]
    run.faults[0] = dataclasses.replace(run.faults[0], begin_ns=0)
    assert "asked rate reached before the first fault" in missing(run)


def test_an_expected_anomaly_is_reproduced_if_found_and_not_reproduced_if_not() -> None:
    run = good_run(expected=("lost-write",))
    result = decided(run, lost_write=1)
    assert (result["verdict"], result["exit_code"]) == (Verdict.REPRODUCED, 0)
    assert [one["meaning"] for one in result["anomalies"] if one["anomaly"] == "lost-write"] == ["expected"]
    result = decided(run)
    assert (result["verdict"], result["exit_code"]) == (Verdict.NOT_REPRODUCED, 1)
    run.faults[0].proved = False
    assert decided(run)["verdict"] == Verdict.INCONCLUSIVE
    assert decided(run, lost_write=1)["verdict"] == Verdict.REPRODUCED


def test_partitions_may_differ_in_what_is_allowed() -> None:
    run = good_run(topics=info().topics)
    run.faults += [
        Fault(
            "f2", "power-cut", ("n1",), "", 1, 1, 1, 1, True, lossy=("n1",), lost={"n1": {"log-0/0.log": 5}}
        ),
        Fault(
            "f3", "power-cut", ("n2",), "", 1, 1, 1, 1, True, lossy=("n2",), lost={"n2": {"log-0/0.log": 5}}
        ),
    ]
    run.assignment = {(TOPIC, 0): (1, 2, 3), (TOPIC, 1): (1, 2, 3)}
    counts = found()
    counts.counts["lost-write"] = {(TOPIC, 0): 4, (TOPIC, 1): 1}
    result = verdict(contract_for(run, anomalies()), counts, good_figures(run), {})
    rows = [(one["meaning"], one["count"]) for one in result["anomalies"] if one["anomaly"] == "lost-write"]
    assert rows == [("violation", 1), ("allowed", 4)]
    assert result["verdict"] == Verdict.VIOLATION


@pytest.mark.parametrize("begin_s", [0, 20])
def test_healthy_stretches(begin_s: int) -> None:
    run = good_run()
    run.faults[0] = dataclasses.replace(run.faults[0], begin_ns=begin_s * SECOND)
    run.faults.append(Fault("f2", "pause", ("n2",), "", 28 * SECOND, ended_ns=50 * SECOND))
    stretches = [(one.begin_ns // SECOND, one.end_ns // SECOND) for one in phases.healthy(run)]
    assert stretches == ([(0, 20)] if begin_s else []) + [
        (50, 60)
    ]  # 25 to 28 s is too short to mean anything


def asked(rate: float, during_faults: int) -> tuple[Run, Figures]:
    """A minute at 100 operations a second, of which from 20 to 25 s only so many were begun in all."""
    run = good_run(rate=rate)
    figures = good_figures(run)
    edges = phases.boundaries(run)
    for number, edge in enumerate(edges, 1):
        stretch = [0, 20, 25, 60, 70]
        seconds = stretch[stretch.index(edge // SECOND) + 1] - edge // SECOND if edge < 70 * SECOND else 0
        figures.segments[number, "send"] = outcomes(during_faults if edge == 20 * SECOND else seconds * 100)
        for f in ("poll", "end"):
            figures.segments[number, f] = outcomes(1)
    return run, figures


def test_a_member_that_crashes_ends_the_time_in_which_the_asked_rate_must_be_reached() -> None:
    """The others wait until their group has put it out, which is the workload's doing."""
    run = good_run(rate=100)
    run.crashes = [8 * SECOND, 30 * SECOND]
    figures = good_figures(run, ok=10_000)
    assert phases.boundaries(run) == [at * SECOND for at in (0, 8, 20, 25, 60, 70)]
    for f in ("send", "poll", "end"):
        figures.segments[1, f] = outcomes(300)
        figures.segments[2, f] = outcomes(100)
    assert metrics.rate_before_first_fault(run, figures) == pytest.approx(900 / 8)
    assert missing(run, figures) == []
    run.crashes = [SECOND // 2]
    assert phases.boundaries(run) == [at * SECOND for at in (0, 20, 25, 60, 70)]


def test_a_load_far_below_the_asked_rate_during_faults_prevents_a_pass() -> None:
    run, figures = asked(100, during_faults=200)
    assert missing(run, figures) == ["asked load kept up during faults"]
    reasons = decided(run, figures)["reasons"]
    assert (
        "100 operations a second were asked for, 40 were begun and 40 were done: 60% were left out"
        in reasons[0]
    )
    run, figures = asked(100, during_faults=400)
    assert missing(run, figures) == []
    result = decided(run, figures)
    assert result["verdict"] == Verdict.PASS
    assert result["headline"].endswith("with 2% of the asked operations left out, 20% during faults")


def test_how_much_may_be_left_out_is_a_threshold() -> None:
    run, figures = asked(100, during_faults=400)
    run.info = dataclasses.replace(run.info, thresholds={"left_out": 0.1})
    assert missing(run, figures) == ["asked load kept up during faults"]


def test_without_an_asked_rate_nothing_is_left_out() -> None:
    run, figures = asked(0, during_faults=0)
    assert "asked load kept up during faults" not in missing(run, figures)
    assert "left out" not in decided(run, figures)["headline"]


PAIR = "with librdkafka 2.16.0, which speaks EndTxn v1, on Apache Kafka 4.4.0 (transaction.version 2)"


def of_kafka(**changes: object) -> Run:
    told = {
        "isolation": "read_committed",
        "system": "apache-kafka-4.4.0",
        "system_kind": "apache-kafka",
        "system_version": "4.4.0",
        "features": {"transaction.version": 2},
        "client": {"library": "librdkafka", "version": "2.16.0", "end_txn_version": 1},
    }
    return good_run(**{**told, **changes})


def with_transactions(run: Run) -> Figures:
    figures = good_figures(run)
    figures.transactions = {"w1": TransactionEnds(10, 9, 4, 4, 2)}
    return figures


def test_a_forbidden_transaction_anomaly_names_the_client_and_the_system() -> None:
    run = of_kafka()
    result = decided(run, with_transactions(run), torn_transaction=2)
    assert result["headline"].endswith(
        f"2 torn-transaction among 1,000 acknowledged records under 1 fault, {PAIR}"
    )
    assert PAIR in result["reasons"][-1]
    assert PAIR not in str(decided(run, with_transactions(run), phantom=1)), "it is nothing of transactions"
    assert PAIR not in str(decided(run, aborted_read=1)), "the run has none"
    assert PAIR not in str(decided(run, with_transactions(run), write_cycle=1)), "it is allowed"
    expected = of_kafka(expected=("torn-transaction",))
    assert PAIR in decided(expected, with_transactions(expected), torn_transaction=1)["reasons"][-1]


def test_client_and_system_are_named_as_far_as_they_are_recorded() -> None:
    java = {"library": "java", "version": "4.4.0", "end_txn_version": 5}
    assert pair(of_kafka(client=java).info).startswith(
        "with the Java client 4.4.0, which speaks EndTxn v5, on"
    )
    assert pair(of_kafka(client={}, features={}).info) == "on Apache Kafka 4.4.0"
    assert pair(good_run().info) == ""


def test_the_row_of_a_contract_has_the_names_of_the_system() -> None:
    row = decided(of_kafka())["contract"]["row"]
    assert row == "acks=all, MinISR=2, unclean.leader.election.enable=false, idempotence on"
    assert "proactive recovery off" in decided(good_run())["contract"]["row"]
