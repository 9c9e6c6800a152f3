"""Registers, queues and guided scenes in virtual time: what their runs record, and how it is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from wrackline.harness.run.judge import judge_outcomes
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.replay import replay_of
from wrackline.harness.run.runner import run
from wrackline.harness.specification.spec import Spec, parse
from wrackline.history.faults import happened
from wrackline.history.model import MARKER, NEMESIS, is_marker, parts_of
from wrackline.nemesis.guided.scene import FAULTS
from wrackline.nemesis.inject import settings_of
from wrackline.scenarios import SCENES
from wrackline.scenarios.language import Do, Hold

REPOSITORY = Path(__file__).parents[3]
RANDOM = """
name: virtual
fleet: {kind: simulated}
system:
  kind: wrackline
  config: {replica_lag_time_max_ms: 1500, session_timeout_ms: 1500, heartbeat_interval_ms: 300}
workload: {duration_s: 40, rate: 60}
nemesis:
  random:
    every_s: [1, 3]
    duration_s: [1, 3]
    overlap: true
    faults:
      - {fault: kill, target: leader}
      - {fault: kill, target: follower}
      - {fault: power-cut, target: leader}
      - {fault: partition, target: follower}
"""
BROKEN, RIGHT = ("system.profile=kip101", "system.defects=[trunc_hw]"), ("system.profile=kip966",)
UNSEEN = {
    "drop-begun-batch": "its fetches without end take minutes",
    "keep-epoch-on-noop-trunc": "its clients reach a leader from which they are cut off on hosts",
    "keep-stale-peers": "its consumers must ask at the one moment",
    "stop-md-on-shutdown": "clients ask all brokers who leads, so no one waits",
    "no-adv-on-isr": "needs workload.in_flight",
}
"""Suites whose defect shows on hosts alone."""


def suite(path: Path, *, broken: bool = True) -> Spec:
    """The suite in virtual time, without the settings that only a client library has."""
    raw: dict[str, Any] = yaml.safe_load(path.read_text())
    raw["fleet"]["kind"] = "simulated"
    for name in ("librdkafka", "socket_timeout_ms", "retries", "linger_ms"):
        raw["workload"].get("client", {}).pop(name, None)
    if not broken:
        raw["system"].pop("defects")
        raw.get("contract", {}).pop("expected", None)
    return parse(yaml.safe_dump(raw), path.name)


def judged(folder: Path, specs: Sequence[Spec]) -> list[Any]:
    outcomes = [run(spec, Options(folder)) for spec in specs]
    return judge_outcomes(outcomes, engine="auto", master="local[1]")


def counts(verdict: Mapping[str, Any]) -> dict[str, int]:
    return {one["anomaly"]: one["count"] for one in verdict["anomalies"] if one["count"]}


def rows(run_dir: Path) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = pq.read_table(run_dir / "history.parquet").to_pylist()
    return written


@pytest.mark.parametrize(("name", "read"), [("register", "read"), ("queue", "dequeue")])
def test_the_suite_of_the_workload_passes_and_its_rows_are_those_of_hosts(
    name: str, read: str, tmp_path: Path
) -> None:
    [one] = judged(tmp_path, [suite_of_hosts(name)])
    assert one.word == "pass", [each for each in one.verdict["conditions"] if not each["ok"]]
    written = rows(one.run_dir)
    reads = [row for row in written if row["f"] == read and row["type"] == "ok"]
    assert len(reads) > 100
    assert all(len(row["records"]) <= 1 and row["partition"] in (0, 1) for row in reads)
    assert not any(is_marker(record["value"]) for row in reads for record in row["records"])
    assert {row["high_watermark"] is not None for row in reads} == {name == "register"}
    sends = [row for row in written if row["f"] == "send" and row["type"] == "ok"]
    by_kind = [
        {row["process"] for row in sends if is_marker(row["records"][0]["value"]) is kind}
        for kind in (True, False)
    ]
    readers = {row["process"] for row in reads}
    assert by_kind[0]
    assert not by_kind[0] & by_kind[1]
    assert not readers & (by_kind[0] | by_kind[1])
    assert all(parts_of(record["value"])[0] == row["process"] for row in sends for record in row["records"])
    assert MARKER not in {
        parts_of(r["value"])[2] for row in sends if row["process"] in by_kind[1] for r in row["records"]
    }


def suite_of_hosts(name: str) -> Spec:
    raw = yaml.safe_load((REPOSITORY / f"suites/{name}.yaml").read_text())
    return parse(yaml.safe_dump({**raw, "fleet": {"kind": "simulated", "brokers": 3}}), name)


def test_a_read_by_the_end_offset_sends_nothing(tmp_path: Path) -> None:
    settings = ("workload.name=register", "workload.read_by=end", "workload.duration_s=5")
    made = run(parse(RANDOM.split("nemesis:")[0], "r", settings=settings), Options(tmp_path)).run_dir
    written = rows(made)
    assert any(row["f"] == "read" and row["type"] == "ok" and row["records"] for row in written)
    assert not any(is_marker(r["value"]) for row in written if row["f"] == "send" for r in row["records"])


def test_a_lost_write_is_no_register_and_no_queue(tmp_path: Path) -> None:
    seeds = [("register", 5), ("queue", 4)]
    specs = [
        parse(RANDOM, name, settings=(f"workload.name={name}", *settings), seed=seed)
        for settings in (BROKEN, RIGHT)
        for name, seed in seeds
    ]
    verdicts = judged(tmp_path, specs)
    assert [one.word for one in verdicts] == ["violation", "violation", "pass", "pass"]
    assert "register-not-linearizable" in counts(verdicts[0].verdict)
    assert "queue-not-linearizable" in counts(verdicts[1].verdict)


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("canary")
    return run(suite(REPOSITORY / "suites/defects/trunc-hw.yaml"), Options(folder)).run_dir


def test_the_rows_of_a_scene_are_those_of_hosts(canary: Path) -> None:
    begun = {}
    for row in rows(canary):
        extra = json.loads(row["extra"] or "{}")
        if row["process"] == NEMESIS and extra["phase"] == "begin":
            begun[extra["id"]] = row["f"], extra["how"]
    expected = {}
    for step in SCENES["b01-truncate-to-hw"].all_steps():
        if isinstance(step, Do) and step.id != "g4":  # where the leader is a controller, too
            assert not isinstance(step.fault, Hold)
            expected[step.id] = FAULTS[step.fault].name, settings_of(FAULTS[step.fault])
    assert begun == expected
    planned = next(row for row in rows(canary) if row["f"] == "planned")
    assert json.loads(planned["extra"])["faults"] == {id_: name for id_, (name, _) in expected.items()}


def test_a_scene_is_replayed_both_ways(canary: Path, tmp_path: Path) -> None:
    on_hosts = replay_of(canary, fleet="netns")
    assert (on_hosts.faults, on_hosts.left_out) == (3, ())
    again = run(parse(replay_of(canary).text, "again.yaml"), Options(tmp_path)).run_dir
    first, second = ([(one.fault, one.targets, one.at_s) for one in happened(one)] for one in (canary, again))
    assert first == second


def test_a_replay_omits_what_virtual_time_has_not(tmp_path: Path) -> None:
    made = run(suite(REPOSITORY / "suites/defects/oor-to-start.yaml"), Options(tmp_path)).run_dir
    again = replay_of(made)
    assert again.faults == 3
    assert [line.split(" at ")[0] for line in again.left_out] == ["mtu-black-hole", "partition"]
    assert replay_of(made, fleet="netns").faults == 5


def test_a_scene_needs_no_controller_of_its_own_where_it_says_so(tmp_path: Path) -> None:
    path = REPOSITORY / "suites/demo-canary.yaml"
    broken, right = judged(tmp_path, [suite(path), suite(path, broken=False)])
    assert (broken.word, right.word) == ("violation", "pass")
    assert counts(broken.verdict)["lost-write"]
    assert "g4" in {one.id for one in happened(broken.run_dir)}


def test_a_run_that_is_too_short_says_so(tmp_path: Path) -> None:
    """What is not undone when the time of the whole schedule is over is undone then."""
    text = RANDOM.split("nemesis:")[0] + "nemesis: {guided: {name: wiped-disk, deadline_s: 1}}"
    [one] = judged(tmp_path, [parse(text, "short.yaml", settings=("workload.duration_s=8",))])
    assert one.word == "inconclusive"
    unmet = [each["detail"] for each in one.verdict["conditions"] if each["name"] == "every fault proved"]
    assert "g0 (wiped disk): waited 1 s for: ISR [1, 3]" in unmet[0]
    assert all(each["ok"] for each in one.verdict["conditions"] if each["name"] == "every replica's log read")


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem)
        for path in sorted((REPOSITORY / "suites/defects").glob("*.yaml"))
        if yaml.safe_load(path.read_text())["nemesis"]["guided"]["name"] in SCENES and path.stem not in UNSEEN
    ],
)
def test_every_scene_shows_its_defect_and_is_clean_without_it(path: Path, tmp_path: Path) -> None:
    broken, right = judged(tmp_path, [suite(path), suite(path, broken=False)])
    assert right.word == "pass", [each for each in right.verdict["conditions"] if not each["ok"]]
    assert broken.word not in ("pass", "not reproduced") or broken.verdict["invariants"]["broken"]
