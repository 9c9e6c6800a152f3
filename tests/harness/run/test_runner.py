"""The runner does its steps in this order, and still cleans up when something breaks."""

from __future__ import annotations

import os
import signal
import threading
import time

import orjson
import pytest

from tests.harness.doubles import PARTITIONS, Stage, interrupt_when, phases, rows
from wrackline.fleets.base import FleetError
from wrackline.harness.run.judge import broken_down, exit_code
from wrackline.harness.run.live.outcome import Interrupted
from wrackline.history import read_info


def test_a_topic_is_asked_for_as_long_as_the_cluster_may_take_to_be_ready(stage: Stage) -> None:
    """A broker that a busy machine keeps from its session is fenced for a while."""
    stage.run("system.waits={ready_s: 47}")
    assert stage.system.topic_s == 47


def test_a_run_goes_through_every_phase_and_leaves_everything_behind_in_its_directory(stage: Stage) -> None:
    outcome = stage.run()
    assert sorted(stage.trail[2:6]) == ["start c1", "start n1", "start n2", "start n3"], "all at once"
    others = [*stage.trail[:2], *stage.trail[6:]]
    assert others == ["up", "install", "ready", "topic", "faults", "heal", "collect", "down"]
    assert outcome.troubles == ()
    assert outcome.driven
    assert phases(outcome.run_dir) == ["setup", "warm", "main", "heal", "drain", "collect"]
    assert [path.stat().st_mode & 0o777 for path in (outcome.run_dir, stage.results)] == [0o700, 0o700]
    names = {path.name for path in outcome.run_dir.iterdir()}
    files = {"spec.yaml", "plan.json", "run.json", "history.parquet", "clocks.json", "harness.log"}
    assert names == {*files, "nodes"}
    found = rows(outcome.run_dir)
    kinds = {row["f"] for row in found}
    clients = {"send", "poll", "end", "assign", "drain"}
    runner = {"liveness", "phase", "assignment", "cluster", "repaired", "stopped", "collected", "over"}
    assert kinds == {*clients, *runner, "replica"}
    assigned = next(orjson.loads(row["extra"]) for row in found if row["f"] == "assignment")
    assert assigned["assignment"] == {str(partition): [1, 2, 3] for partition in range(PARTITIONS)}
    assert assigned["nodes"] == {"1": "n1", "2": "n2", "3": "n3", "101": "c1"}
    replicas = [row for row in found if row["f"] == "replica"]
    assert {row["node"] for row in replicas} == {"n1", "n2", "n3"}
    assert all(orjson.loads(row["extra"])["complete"] for row in replicas)
    info = read_info(outcome.run_dir)
    assert (info.test_id, info.notes) == (outcome.run_dir.name, ())
    assert "4 nodes ready" in stage.screen.getvalue()


def test_the_judge_is_prepared_before_clients_begin_and_hears_when_faults_are_over(
    stage: Stage,
) -> None:
    """Meanwhile it would take time from them; and two threads that import the same may meet half of it."""

    def prepare() -> None:
        while "ready" not in stage.trail:
            time.sleep(0.01)
        time.sleep(0.5)  # so that a run that does not wait is on its way
        stage.trail.append("prepared")

    stage.run(prepare_judge=prepare, recovered=lambda: stage.trail.append("recovered"))
    events = ("ready", "prepared", "topic", "heal", "recovered", "collect", "down")
    assert [one for one in stage.trail if one in events] == list(events)
    stage.trail.clear()
    stage.fleet.broken_on_up = "no room"
    stage.run(prepare_judge=prepare, recovered=lambda: stage.trail.append("recovered"))
    assert not {"prepared", "recovered"} & set(stage.trail), "there is nothing to judge"


def test_hosts_that_do_not_come_up_are_infrastructure_and_are_torn_down(stage: Stage) -> None:
    stage.fleet.broken_on_up = "n2: no SSH after 10 s; look at its console"
    outcome = stage.run()
    assert stage.trail == ["up", "collect", "down"]
    assert not outcome.driven
    assert outcome.troubles[0] == "set-up: n2: no SSH after 10 s; look at its console"
    judged = broken_down(outcome.run_dir, outcome.troubles)
    assert judged.word.value == "infrastructure"
    assert exit_code([judged.word]) == 4
    assert judged.report is not None
    assert "no SSH after 10 s" in judged.report.read_text()


def test_a_failed_deployment_is_recorded_as_infrastructure_trouble(stage: Stage) -> None:
    stage.system.broken = {"start n2"}
    outcome = stage.run()
    assert stage.trail[-2:] == ["collect", "down"]
    assert "heal" not in stage.trail
    told = orjson.loads((outcome.run_dir / "infrastructure.json").read_bytes())
    why = "n2: start n2 failed: permission denied; look at the log"
    assert told == {"error": f"set-up: {why}", "troubles": [{"step": "set-up", "error": why}]}


def test_evidence_that_cannot_be_collected_does_not_cost_the_history(stage: Stage) -> None:
    stage.system.broken = {"collect"}
    outcome = stage.run()
    assert outcome.driven
    assert stage.trail[-1] == "down"
    assert phases(outcome.run_dir)[-1] == "collect"
    assert [trouble.partition(":")[0] for trouble in outcome.troubles] == ["collect"]


def test_a_replica_that_stays_behind_is_noted_and_read_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "wrackline.harness.run.live.live.Nemesis.start",
        lambda _self: setattr(stage.system, "isr", (1, 3)),
        raising=False,
    )
    outcome = stage.run("system.waits.full_isr_s=500ms")
    assert outcome.troubles == ()
    notes = read_info(outcome.run_dir).notes
    assert notes == tuple(
        f"under-replicated: log-{partition} on n2: n1 leads (leader epoch 0), with n1, n3 in the ISR; "
        "n2 runs, and is registered"
        for partition in range(PARTITIONS)
    )
    in_isr = {
        row["node"]: orjson.loads(row["extra"])["in_isr"]
        for row in rows(outcome.run_dir)
        if row["f"] == "replica"
    }
    assert in_isr == {"n1": True, "n2": False, "n3": True}


def test_a_kept_fleet_is_not_torn_down(stage: Stage) -> None:
    outcome = stage.run(keep=True)
    assert "down" not in stage.trail
    assert stage.trail[-1] == "kept"
    assert outcome.kept_fleet == "paper"


def test_ctrl_c_ends_the_run_early_and_in_good_order(stage: Stage) -> None:
    pressed = interrupt_when(stage, "faults")
    outcome = stage.run("workload.duration_s=60")
    pressed.join()
    assert stage.trail[-3:] == ["heal", "collect", "down"]
    assert phases(outcome.run_dir) == ["setup", "warm", "main", "heal", "drain", "collect"]
    [note] = read_info(outcome.run_dir).notes
    assert note.startswith("interrupted by the user")
    assert "interrupted: healing" in stage.screen.getvalue()


def test_ctrl_c_twice_stops_at_once_and_still_tears_down(stage: Stage) -> None:
    """The second comes while healing goes on."""
    pressed = interrupt_when(stage, "faults", times=2)
    with pytest.raises(Interrupted, match="`wrackline analyze` judges it"):
        stage.run("workload.duration_s=60", "system.waits.recovered_s=60")
    pressed.join()
    assert stage.trail[-1] == "down"
    assert "stopped by the user before the final read" in read_info(stage.only_run()).notes
    assert {row["f"] for row in rows(stage.only_run())} >= {"send", "poll"}


def test_ctrl_c_during_set_up_removes_everything(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(stage.system, "wait_ready", lambda **_: threading.Event().wait(30))
    pressed = interrupt_when(stage, "start n3")
    with pytest.raises(Interrupted) as stopped:
        stage.run()
    pressed.join()
    assert stage.trail[-1] == "down"
    left = stage.only_run()
    assert str(stopped.value) == (
        "interrupted during set-up: no operation was made, its hosts were removed; plan and log are in "
        f"{left}"
    )
    assert (left / "plan.json").exists()
    assert (left / "harness.log").exists()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (True, "the hosts are kept as fleet paper"),
        (False, "not all of the hosts could be removed, `wrackline fleet clean`"),
    ],
)
def test_what_ctrl_c_leaves_is_said_as_it_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, keep: bool, said: str
) -> None:
    def stuck() -> None:
        raise FleetError("n2: its disk is in use")

    monkeypatch.setattr(stage.fleet, "down", stuck)
    monkeypatch.setattr(stage.system, "wait_ready", lambda **_: threading.Event().wait(30))
    pressed = interrupt_when(stage, "start n3")
    with pytest.raises(Interrupted) as stopped:
        stage.run(keep=keep)
    pressed.join()
    assert said in str(stopped.value)
    assert "removed;" not in str(stopped.value)


def test_a_disk_that_fills_up_stops_the_run_and_keeps_what_is_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.history.journal.WINDOW_BYTES", 8192)
    real = os.posix_fallocate

    def limited(fd: int, offset: int, length: int) -> None:
        if offset + length > 100_000:
            raise OSError(28, os.strerror(28))
        real(fd, offset, length)

    monkeypatch.setattr("wrackline.history.journal.os.posix_fallocate", limited)
    outcome = stage.run("workload.duration_s=60")
    assert stage.trail[-1] == "down"
    assert "No space left on device" in outcome.troubles[0]
    assert any(row["f"] == "send" for row in rows(outcome.run_dir))
