"""A run records its own course, also when it does not go as it should."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from tests.harness.doubles import Stage, interrupt_when, rows
from wrackline.checkers.inputs.runs import Run, load_run
from wrackline.checkers.verdict.conditions.conditions import conditions
from wrackline.checkers.verdict.measures.metrics import Figures
from wrackline.harness.run.live.outcome import CannotRecord, Outcome
from wrackline.history import read_info
from wrackline.history.model import DIED, PlanInfo
from wrackline.nemesis.heal import NemesisError
from wrackline.workloads.log.spec import ClientsSpec


def loaded(outcome: Outcome) -> Run:
    return load_run(outcome.run_dir)


def unmet(run: Run) -> dict[str, str]:
    """Without counting operations."""
    counted = ("records acknowledged", "every operation kind", "asked rate", "asked load")
    found = conditions(run, Figures())
    return {one.name: one.detail for one in found if not one.ok and not one.name.startswith(counted)}


def extras(outcome: Outcome, f: str) -> list[dict[str, Any]]:
    return [orjson.loads(row["extra"]) for row in rows(outcome.run_dir) if row["f"] == f]


def test_a_run_that_went_well_lacks_nothing(stage: Stage) -> None:
    outcome = stage.run()
    run = loaded(outcome)
    assert unmet(run) == {}
    assert run.info.plan == PlanInfo(1.0)
    assert run.course.files == dict.fromkeys(("n1", "n2", "n3", "c1"), ("broker.log",))


def test_epochs_are_used_up_before_the_clients_begin(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def use_epochs(names: Sequence[str], epoch: int, *, timeout_s: float) -> None:
        asked.append((list(names), epoch, timeout_s >= 60, list(stage.trail)))

    for name, method in (("use_epochs", use_epochs), ("coordinator", use_epochs)):
        monkeypatch.setattr(stage.system, name, method, raising=False)
    monkeypatch.setattr(ClientsSpec, "epochs_before", 9)
    stage.run()
    [(names, epoch, patient, trail)] = asked
    assert (names, epoch, patient) == ([], 8, True)
    assert "topic" in trail
    assert "faults" not in trail


def test_clients_are_stopped_before_anything_is_read_though_healing_failed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full data disk: it was a false lost-write, exit code 1."""

    def fails(_self: object, **_: float) -> list[str]:
        raise NemesisError("the fleet could not be healed: n2: No space left on device")

    monkeypatch.setattr("wrackline.harness.run.live.live.Nemesis.stop_and_heal", fails)
    outcome = stage.run()
    assert outcome.troubles == ("drive: the fleet could not be healed: n2: No space left on device",)
    found = rows(outcome.run_dir)
    [stopped] = [row["index"] for row in found if row["f"] == "stopped"]
    begun = min(row["index"] for row in found if row["f"] == "drain")
    answers = [row["index"] for row in found if row["process"] >= 0 and row["f"] != "drain"]
    assert max(answers) < stopped < begun
    run = loaded(outcome)
    assert all(final.is_evidence for final in run.final.values())
    assert run.trouble is not None
    assert (run.trouble.steps, run.trouble.spoils_final_read) == (("drive",), True)


def test_a_mistake_of_ours_ends_the_run_and_is_on_record(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_self: object, **_: float) -> list[str]:
        raise KeyError("nobody thought of this")

    monkeypatch.setattr("wrackline.harness.run.live.live.Nemesis.stop_and_heal", fails)
    with pytest.raises(KeyError):
        stage.run()
    assert stage.trail[-1] == "down"
    told = orjson.loads((stage.only_run() / "infrastructure.json").read_bytes())
    assert told["troubles"] == [
        {"step": "drive", "error": "the harness broke: KeyError: 'nobody thought of this'"}
    ]
    assert "the run went to its end" in unmet(load_run(stage.only_run()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_so(stage: Stage, number: signal.Signals) -> None:
    fault = "{at_s: 40, duration_s: 2, fault: kill, target: n1}"
    pressed = interrupt_when(stage, "faults", number=number)
    outcome = stage.run("workload.duration_s=60", f"nemesis.schedule=[{fault}]")
    pressed.join()
    told = unmet(loaded(outcome))
    assert told["the run went to its end"].startswith("interrupted by the user ")
    assert told["every planned fault began and ended"] == "f1 (kill) did not begin"
    assert "planned duration reached" in told
    assert read_info(outcome.run_dir).plan == PlanInfo(60.0, {"f1": "kill"})


def test_an_interruption_while_healing_is_on_record_too(stage: Stage) -> None:
    pressed = interrupt_when(stage, "heal")
    outcome = stage.run("system.waits.recovered_s=1.5")
    pressed.join()
    assert list(unmet(loaded(outcome))) == ["the run went to its end"]


def test_a_node_that_dies_in_the_main_phase(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wrackline.harness.run.live.unexpected_exits.LOOK_EVERY_S", 0.1)

    def kill(_self: object) -> None:
        stage.system.pids["n2"] = None
        threading.Timer(0.5, lambda: stage.system.pids.update(n2=99)).start()

    monkeypatch.setattr("wrackline.harness.run.live.live.Nemesis.start", kill)
    run = loaded(stage.run())
    [fault] = run.faults
    assert (fault.name, fault.targets, fault.proved) == (DIED, ("n2",), True)
    assert fault.ended_ns is not None
    assert list(unmet(run)) == ["nobody died unasked"]
    assert "runs again as 99" in unmet(run)["nobody died unasked"]


def test_a_host_whose_logs_could_not_be_fetched(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    real = stage.system.collect

    def collect(into: Any) -> None:
        real(into)
        (into / "n3" / "broker.log").unlink()
        (into / "n3" / "missing.txt").write_text("logs: n3: no route to host\n")

    monkeypatch.setattr(stage.system, "collect", collect)
    told = unmet(loaded(stage.run()))
    assert told == {"the hosts' logs are there": "n3: logs: n3: no route to host; no log of n3 was fetched"}


def test_a_results_disk_that_is_full_at_the_start(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_fd: int, _offset: int, _length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wrackline.history.journal.os.posix_fallocate", full)
    with pytest.raises(
        CannotRecord, match="No space left on device; make room there, or name another"
    ) as told:
        stage.run()
    assert "\n" not in str(told.value)
    assert stage.trail == []
    assert list(stage.results.iterdir()) == []
