"""What `pass` must mean (docs/anomalies.md section 9): each condition alone, taken from a run in which
nothing is missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.checkers.good_runs import PLACE, SECOND, decided, good_figures, good_run, missing, seen, unmet
from tests.checkers.histories import TOPIC, History
from wrackline.checkers.findings import Verdict
from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.course import Course, Tier, Trouble
from wrackline.checkers.inputs.final_reads import FinalRead
from wrackline.checkers.inputs.runs import Fault, Phase, Run, load_run
from wrackline.checkers.verdict.conditions.conditions import TIER, conditions
from wrackline.checkers.verdict.measures.metrics import Figures, Written
from wrackline.history.model import DIED, PlanInfo, RunInfo, TopicInfo, value_of

END = "the run went to its end"
DURATION = "planned duration reached"
PLANNED = "every planned fault began and ended"
UNDONE = "every fault was undone by its own undo"
DIED_UNASKED = "nobody died unasked"
STOPPED = "clients had stopped before the final read"
LOGS = "the hosts' logs are there"
ACKED = "records acknowledged before, during and after faults"


def test_nothing_is_missing_from_a_good_run() -> None:
    assert missing(good_run()) == []


# --- the run went as it was planned -------------------------------------------------------------------------


def test_ctrl_c_before_the_planned_fault_is_no_pass() -> None:
    """It was: under 0 faults, exit code 0."""
    run = good_run()
    run.faults = []
    run.phases = [Phase("main", 0, 8 * SECOND), Phase("drain", 8 * SECOND, 10 * SECOND)]
    run.course.interrupted = "interrupted by the user 8.0 s into the run"
    assert missing(run) == [END, DURATION, PLANNED]
    result = decided(run)
    assert (result["verdict"], result["exit_code"]) == (Verdict.INCONCLUSIVE, 3)
    assert "interrupted by the user 8.0 s into the run" in result["headline"]
    assert result["interrupted"] == "interrupted by the user 8.0 s into the run"
    assert result["planned_faults"] == 1


def test_an_interrupted_run_is_inconclusive_even_when_everything_else_was_done() -> None:
    run = good_run()
    run.course.interrupted = "interrupted by the user 69.0 s into the run"
    assert missing(run) == [END]


def test_a_violation_stays_one_in_an_interrupted_run() -> None:
    run = good_run()
    run.faults = []
    run.course.interrupted = "interrupted by the user 8.0 s into the run"
    result = decided(run, phantom=1)
    assert (result["verdict"], result["exit_code"]) == (Verdict.VIOLATION, 1)
    assert "under 0 of 1 planned fault; interrupted by the user" in result["headline"]


def test_a_main_phase_that_ended_early() -> None:
    run = good_run()
    run.phases[0] = Phase("main", 0, 60 * SECOND - 1)
    assert missing(run) == [DURATION]


def test_a_planned_fault_that_did_not_begin_or_did_not_end() -> None:
    run = good_run(plan=PlanInfo(60.0, {"f1": "kill", "f2": "pause"}))
    [condition] = unmet(run)
    assert (condition.name, condition.detail) == (PLANNED, "f2 (pause) did not begin")
    run.faults.append(Fault("f2", "pause", ("n2",), "", 40 * SECOND, 40 * SECOND, proved=True))
    assert PLANNED in missing(run)


def test_a_guided_schedule_that_never_began_or_stopped_half_way() -> None:
    run = good_run(plan=PlanInfo(60.0, {}, "trunc-hw"))
    [condition] = unmet(run)
    assert condition.detail == "the guided schedule trunc-hw did not begin"
    run.course.guided = {"f1": "kill", "g2": "partition"}
    [condition] = unmet(run)
    assert condition.detail == "g2 (partition) did not begin"
    run.course.guided = {"f1": "kill"}
    assert missing(run) == []


def test_a_run_of_an_older_version_says_what_is_not_on_record() -> None:
    run = good_run(plan=None)
    run.course = Course()
    details = {one.name: one.detail for one in unmet(run)}
    assert set(details) == {END, DURATION, PLANNED, UNDONE, DIED_UNASKED, STOPPED, LOGS}
    assert all("not on record" in detail for detail in details.values())
    assert decided(run)["planned_faults"] is None


def test_run_information_of_an_older_version_can_be_read() -> None:
    text = b'{"test_id":"t","name":"t","seed":1,"started_at":"","system":"wrackline","workload":"log",'
    old = RunInfo.from_json(text + b'"acks":"all","idempotence":false,"topics":[],"thresholds":{"nope":3}}')
    assert (old.plan, old.thresholds) == (None, {"nope": 3})
    assert RunInfo.from_json(good_run().info.to_json()).plan == PlanInfo(60.0, {"f1": "kill"})


# --- trouble of hosts, and clients that went on while everything was read -----------------------------------


@pytest.mark.parametrize("step", ["drive", "read back"])
@pytest.mark.parametrize(
    "anomaly", ["lost-write", "vanished-read", "lost-committed", "lost-on-replica", "torn-transaction"]
)
def test_trouble_before_the_end_outranks_what_rests_on_the_final_read(step: str, anomaly: str) -> None:
    run = good_run()
    run.trouble = Trouble(f"{step}: n2: No space left on device", (step,))
    result = decided(run, **{anomaly: 26})
    assert (result["verdict"], result["exit_code"]) == (Verdict.INFRASTRUCTURE, 4)
    assert "No space left on device" in result["headline"]
    [row] = [row for row in result["anomalies"] if row["anomaly"] == anomaly]
    assert (row["meaning"], row["count"]) == ("n/a", 26)
    assert any(anomaly in reason and "no evidence" in reason for reason in result["reasons"])


@pytest.mark.parametrize("anomaly", ["lost-on-replica", "replica-divergence"])
def test_where_no_replica_was_read_what_rests_on_replicas_has_no_meaning(anomaly: str) -> None:
    result = decided(good_run(unread={"replicas": "nobody may log in"}), **{anomaly: 1})
    [row] = [row for row in result["anomalies"] if row["anomaly"] == anomaly]
    assert (row["meaning"], row["why"]) == ("n/a", "no replica's log was read: nobody may log in")


def test_trouble_does_not_outrank_what_it_cannot_have_made() -> None:
    run = good_run()
    run.trouble = Trouble("drive: n2: No space left on device", ("drive",))
    result = decided(run, lost_write=26, phantom=1)
    assert (result["verdict"], result["exit_code"]) == (Verdict.VIOLATION, 1)
    assert "1 phantom" in result["headline"]
    assert "lost-write" not in result["headline"]
    run.trouble = Trouble("collect: n2: no route to host", ("collect",))
    assert decided(run, lost_write=26)["verdict"] == Verdict.VIOLATION


def test_trouble_without_a_recorded_step_outranks_a_lost_write() -> None:
    run = good_run()
    run.trouble = Trouble("n2: no route to host")
    assert decided(run, lost_write=26)["verdict"] == Verdict.INFRASTRUCTURE


def test_an_expected_loss_is_not_reproduced_by_trouble() -> None:
    run = good_run(expected=("lost-write",))
    run.trouble = Trouble("drive: n2: No space left on device", ("drive",))
    assert decided(run, lost_write=1)["verdict"] == Verdict.INFRASTRUCTURE


def test_an_answer_after_the_final_read_began_makes_a_run_inconclusive() -> None:
    run = good_run()
    run.final[PLACE] = FinalRead(0, 100, True, late_ns=61 * SECOND)
    [condition] = unmet(run)
    assert condition.name == STOPPED
    assert "log-0: a client got an answer about it at 61.0 s" in condition.detail
    assert decided(run)["verdict"] == Verdict.INCONCLUSIVE


# --- somebody died, or nobody fetched the logs --------------------------------------------------------------


def death(**changes: object) -> Fault:
    proof = "process 231 of node 2 was gone; its last words: out of memory"
    times = {"begin_ns": 40 * SECOND, "active_ns": 40 * SECOND, "ended_ns": 50 * SECOND}
    return dataclasses.replace(
        Fault("d1", DIED, ("n2",), proof=proof, proved=True, **times),  # type: ignore[arg-type]
        **changes,  # type: ignore[arg-type]
    )


def test_a_node_that_died_unasked() -> None:
    run = good_run()
    run.faults.append(death())
    [condition] = unmet(run)
    assert condition.name == DIED_UNASKED
    assert condition.detail == (
        "d1, n2 at 40.0 s: process 231 of node 2 was gone; its last words: out of memory"
    )
    result = decided(run)
    assert result["faults"][1]["asked_for"] is False
    assert result["verdict"] == Verdict.INCONCLUSIVE
    assert "under 1 fault" in decided(run, phantom=1)["headline"]  # nobody injected the other


def test_a_host_that_died_with_its_unsynced_bytes_may_have_lost_them() -> None:
    """MinISR is 2: one lossy shutdown is tolerated, two are not."""
    run = good_run()
    run.faults += [
        Fault(
            "f2", "power-cut", ("n1",), "", 1, 1, 1, 1, True, lossy=("n1",), lost={"n1": {"log-0/0.log": 5}}
        ),
        death(unsure=("n2",)),
    ]
    assert decided(run, lost_write=1)["verdict"] == Verdict.INCONCLUSIVE
    run.faults[-1] = death()  # a process alone leaves everything in the page cache
    assert decided(run, lost_write=1)["verdict"] == Verdict.VIOLATION


def test_a_replica_whose_files_a_fault_had_changed_need_not_be_read_whole() -> None:
    run = good_run()
    [place] = run.places
    run.replicas[place]["n2"].complete = False
    assert [one.name for one in unmet(run)] == ["every replica's log read"]
    flip = Fault("f9", "bit-flip", ("n2",), "", 1, 1, 1, 1, True, lossy=("n2",), restored=True)
    flip.damaged = {"n2": {f"broker/{place[0]}-{place[1]}/0.log": 1}}
    run.faults.append(flip)
    assert unmet(run) == []
    flip.damaged = {"n2": {"broker/another-0/0.log": 1}}
    assert [one.name for one in unmet(run)] == ["every replica's log read"]


def test_logs_that_were_not_fetched() -> None:
    run = good_run()
    run.course.files = {"n1": ("broker.log",), "n2": ("listing.txt",), "n3": ()}
    run.course.missing = {"n3": "logs: no route to host"}
    [condition] = unmet(run)
    assert (condition.name, condition.detail) == (
        LOGS,
        "n3: logs: no route to host; no log of n2 was fetched; no log of n3 was fetched",
    )
    run.course.unused = ("n2", "n3")  # spare brokers that no fault had join
    run.course.missing = {}
    assert missing(run) == []


def whole_history() -> History:
    """As a runner writes it down, from its first row to its last."""
    value = value_of(1, 0)
    made = History(topics=(TopicInfo(TOPIC, 1, 3, 2),), plan=PlanInfo(0.001, {"f1": "kill"}))
    made.phase("setup").assignment().phase("warm").send(1, (value, 0)).phase("main")
    made.fault("f1", "kill", "begin").fault("f1", "kill", "active").fault("f1", "kill", "undo")
    made.fault("f1", "kill", "ended", proved=True, restored=True).phase("heal").phase("drain")
    return made.drain((0, value, 0)).replicas((0, value, 0)).phase("collect").account()


def test_a_run_that_was_killed_at_any_moment_never_passes(tmp_path: Path) -> None:
    made = whole_history()
    for count in range(1, len(made.events) + 1):
        cut = History(topics=made.info.topics, plan=made.info.plan)
        cut.events = made.events[:count]
        run = load_run(cut.write(tmp_path / str(count)))
        met = not missing(run)
        assert met == (count == len(made.events)), (count, made.events[count - 1].f, missing(run))


# --- acknowledged before, during and after ------------------------------------------------------------------


def written(run: Run, before: int, during: int, after: int, tried: int = 100) -> Figures:
    """Acknowledged in log-0, of so many tried in each segment."""
    figures = good_figures(run)
    figures.written.clear()
    edges = phases.boundaries(run)
    for number, edge in enumerate(edges, 1):
        acked = before if edge < 20 * SECOND else during if edge < 25 * SECOND else after
        figures.written[PLACE, number] = Written(tried, acked)
    return figures


def test_a_run_in_which_nothing_was_acknowledged_does_not_pass() -> None:
    """It was: `pass` with 0 acknowledged."""
    run = good_run()
    figures = good_figures(run)
    figures.written.clear()
    [condition] = unmet(run, figures)
    assert condition.name == ACKED
    assert condition.detail == (
        "nothing was acknowledged before the first fault; nothing was acknowledged after the last fault"
    )


def test_nothing_acknowledged_without_any_fault() -> None:
    run = good_run(plan=PlanInfo(60.0))
    run.faults = []
    figures = good_figures(run)
    assert missing(run, figures) == []
    figures.written.clear()
    assert [one.detail for one in unmet(run, figures)] == ["nothing was acknowledged in the run"]


DURING = "nothing was acknowledged while faults were in force"
# n1 is killed. What metadata showed: who led, the ISR, and until when (s).
WAITING = {"leader": 2, "isr": (2, 3)}
"""n2 leads, and waits for n3 only."""


@pytest.mark.parametrize(
    ("acks", "shown", "counts", "missing_then"),
    [
        pytest.param("all", {}, (0, 5, 5), ["nothing was acknowledged before the first fault"], id="before"),
        pytest.param("all", {}, (5, 5, 0), ["nothing was acknowledged after the last fault"], id="after"),
        pytest.param("all", WAITING, (5, 0, 5), [DURING], id="it could be written"),
        pytest.param("all", WAITING, (5, 5, 5), [], id="it was written"),
        pytest.param("all", {"leader": 1, "isr": (1, 2, 3)}, (5, 0, 5), [], id="the leader was hit"),
        pytest.param("all", {"leader": -1, "isr": (2, 3)}, (5, 0, 5), [], id="nobody led"),
        pytest.param(
            "all", {"leader": 2, "isr": (1, 2, 3)}, (5, 0, 5), [], id="the leader waits for who was hit"
        ),
        pytest.param("all", {"leader": 2, "isr": (2,)}, (5, 0, 5), [], id="fewer than MinISR"),
        pytest.param("all", {**WAITING, "end_s": 24}, (5, 0, 5), [], id="writable for a moment only"),
        pytest.param(
            "1", {"leader": 2, "isr": (1, 2, 3)}, (5, 0, 5), [DURING], id="acks=1, a follower is down"
        ),
        pytest.param("0", {}, (0, 0, 0), [], id="acks=0"),
    ],
)
def test_acknowledgements_are_required_while_a_partition_could_be_written(
    acks: str, shown: dict[str, Any], counts: tuple[int, int, int], missing_then: list[str]
) -> None:
    run = good_run(acks=acks)
    if shown:
        seen(run, **shown)
    assert [one.detail for one in unmet(run, written(run, *counts))] == missing_then


def test_every_partition_needs_acknowledgements_of_its_own() -> None:
    """The others' acknowledgements do not speak for it, unless it was hardly tried."""
    run = good_run(topics=(TopicInfo(TOPIC, 2, 3, 2),))
    other = (TOPIC, 1)
    run.assignment[other], run.final[other] = (1, 2, 3), FinalRead(0, 1, True)
    run.replicas[other] = run.replicas[PLACE]
    figures = written(run, 5, 5, 5)
    assert [one.detail for one in unmet(run, figures)] == ["nothing was ever acknowledged in log-1"]
    last = len(phases.boundaries(run)) - 1
    figures.written[other, last] = Written(50, 50)
    figures.written[other, 1] = Written(4, 0)
    assert missing(run, figures) == []
    figures.written[other, 1] = Written(50, 0)
    [condition] = unmet(run, figures)
    assert condition.detail == "nothing was acknowledged in log-1 before the first fault"


def test_clients_in_a_rack_must_have_been_answered_by_followers() -> None:
    run = good_run(rack="a")
    [condition] = unmet(run)
    assert condition.name == "followers answered clients in a rack"
    assert "is replica.selector.class set?" in condition.detail
    run.course.by_followers = {"log-0": 12}
    assert unmet(run) == []
    assert condition not in conditions(good_run(), good_figures(good_run()))


@pytest.mark.parametrize(
    ("tier", "why"),
    [
        (Tier(0, 0, 0), "no segment was copied to it"),
        (Tier(12, 0, 0), "12 segments were copied to it, and none was read from it"),
        (Tier(12, 3, 40), None),
        (None, None),
    ],
)
def test_a_remote_tier_must_have_been_used(tier: Tier | None, why: str | None) -> None:
    run = good_run()
    run.course.tier = tier
    assert [(one.name, one.detail.startswith(why or "")) for one in unmet(run)] == [(TIER, True)] * bool(why)
    details = [one.detail for one in conditions(run, good_figures(run)) if one.name == TIER]
    assert len(details) == (tier is not None)
    assert why or not details or details[0].endswith("3 of them were read from it, in 40 requests")
