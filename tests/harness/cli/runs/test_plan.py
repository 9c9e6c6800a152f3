"""`wrackline plan`: it says what a run then writes down, and makes no host."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.harness.cli.calling import call
from tests.harness.doubles import SPEC, Stage, phases
from wrackline.checkers.verdict.contracts import name_of, terms_of
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.harness.run.dry_run import forecast
from wrackline.harness.specification.spec import load, parse
from wrackline.history import read_info

SUITES = Path(__file__).parents[4] / "suites"
SETTINGS = (
    "workload.duration_s=1500ms",
    "workload.acks=1",
    "nemesis={random: {faults: [kill, {fault: partition, shape: halves}, {fault: pause, target: leader}], "
    "every_s: [0.1, 0.2], duration_s: [0.1, 0.2], start_s: 0, tail_s: 0}, guided: power-cut-lossy}",
    "nemesis.guided={name: power-cut-lossy, at_s: 1}",
    "contract={expected: [lost-write], thresholds: {recovery_s: 1m}}",
)


@pytest.fixture(autouse=True)
def _nobody_who_makes_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    def up(_fleet: NetnsFleet) -> None:
        raise AssertionError("hosts were made")

    monkeypatch.setattr(NetnsFleet, "up", up)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def test_the_plan_is_the_one_that_a_run_of_the_same_seed_saves(
    stage: Stage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(SPEC)
    given = [part for setting in (*SETTINGS, "seed=7") for part in ("--set", setting)]
    code, out, err = call(capsys, "plan", str(file), *given, "--json")
    assert (code, err) == (0, "")
    said: dict[str, Any] = orjson.loads(out)
    made = stage.run(*SETTINGS, "seed=7").run_dir
    assert said["plan"] == orjson.loads((made / "plan.json").read_bytes())
    info = read_info(made)
    assert info.plan is not None
    assert {one["id"]: one["fault"] for one in said["faults"]} == info.plan.faults
    assert len(said["faults"]) > 3
    assert (said["guided"]["name"], said["workload"]["duration_s"]) == (
        info.plan.guided,
        info.plan.duration_s,
    )
    assert [phase["name"] for phase in said["phases"]] == phases(made)
    terms = terms_of(info)
    assert (said["contract"]["name"], said["contract"]["promise"]) == (name_of(terms), terms.promise)
    assert (said["contract"]["expected"], said["contract"]["thresholds"]) == (
        ["lost-write"],
        {"recovery_s": 60},
    )
    assert sum(said["workload"]["processes"].values()) == info.concurrency


def test_what_is_said_of_a_fault_is_what_the_plan_has() -> None:
    ahead = forecast(parse(SPEC, "x.yaml", settings=SETTINGS))
    for fault, one in zip(ahead.faults, ahead.plan["plan"]["faults"], strict=True):
        assert (fault.id, fault.at_s, fault.target) == (one["id"], one["at_s"], one["inject"]["target"])
        assert fault.ends_s == pytest.approx(one["at_s"] + one["duration_s"])
        assert fault.how == ({"shape": "halves"} if fault.fault == "partition" else {})


def test_a_person_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "plan", str(SUITES / "growth.yaml"))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "growth, seed 4: about 1 min 21 s, then the judge"
    assert "hosts     n1, n2, n3: broker and controller" in lines
    assert "          n4: spare broker" in lines
    assert "workload  log: 100 operations a second (fixed) for 1 min, acks=all, idempotence off" in lines
    assert "          on log: 4 partitions, 3 replicas, min.insync.replicas=2" in lines
    assert "faults    f1   4.0 to 12.0 s  kill        controller" in lines
    assert "          f2   5.0 to 13.0 s  add-broker  n4 (spare)" in lines
    assert [line.split()[0] for line in lines if line and not line.startswith(" ")][1:] == [
        *("hosts", "phases", "workload", "faults", "contract")
    ]
    assert max(map(len, lines)) <= 120


def test_a_guided_schedule_is_shown_with_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "plan", str(SUITES / "demo-canary.yaml"))
    assert code == 0
    assert "b01-truncate-to-hw from 3 s on log-0; each wait takes at most 30 s" in out
    assert "g2: kill of n1 (leader(log-0))" in out
    assert "wait for: the full ISR (log-0)" in out


def test_another_seed_is_another_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("name: x\nnemesis: {random: {faults: [kill]}}")
    one, again, other = (call(capsys, "plan", str(file), "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert one == again
    assert one.splitlines()[0].startswith("x, seed 1: about 1 min 21 s")
    assert one.splitlines()[5:] != other.splitlines()[5:]


_PAIRS_WITHOUT_FAULTS = ("abort-position", "last-epoch", "share-renew")
WITHOUT_FAULTS = {f"{name}{arm}" for name in _PAIRS_WITHOUT_FAULTS for arm in ("", "-control")}
"""What they show is what an application or its client does to itself."""


@pytest.mark.parametrize("path", sorted(SUITES.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_suite_has_a_forecast(path: Path) -> None:
    spec = load(path)
    ahead = forecast(spec)
    # Which faults follow a state nobody knows before the run.
    follows = spec.nemesis.follow is not None
    assert ahead.guided is not None or ahead.faults or follows or path.stem in WITHOUT_FAULTS
    if ahead.guided is not None:
        assert len(ahead.guided.steps) > 2
    assert ahead.usual_s > spec.workload.duration_s
    assert all(phase.at_most_s is None or phase.usual_s <= phase.at_most_s for phase in ahead.phases)


@pytest.mark.parametrize("duration", ["1m", "8h"])
def test_ten_thousand_partitions_are_planned_at_once(
    duration: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "large.yaml"
    file.write_text(
        "name: large\nsystem: {kind: external, bootstrap: ['n:1'], hosts: {"
        + ", ".join(f"n{number}: {{node: {number}}}" for number in range(1, 101))
        + "}}\ntopic: {partitions: 10000}\n"
        f"workload: {{duration_s: {duration}}}\n"
        "nemesis: {random: {faults: [transfer-leadership, reassign]}}\n"
    )
    began = time.process_time()
    code, out, err = call(capsys, "plan", str(file))
    assert (code, err) == (0, "")
    assert "on log: 10000 partitions" in out
    assert time.process_time() - began < 15
