"""Runs of specifications in virtual time: fleet ``simulated``."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from wrackline.broker.core.requests.produce import ProduceHandler
from wrackline.harness.records import record
from wrackline.harness.run.judge import judge_outcomes
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.replay import replay_of
from wrackline.harness.run.runner import run
from wrackline.harness.run.simulated.clients import clients_of
from wrackline.harness.run.simulated.setup import setup_of
from wrackline.harness.specification import virtual_time
from wrackline.harness.specification.spec import Spec, SpecError, parse
from wrackline.history.faults import happened
from wrackline.nemesis.follow.coverage import FOLLOW_JSON
from wrackline.nemesis.spec import FAULTS

REPOSITORY = Path(__file__).parents[3]
FAST = "{replica_lag_time_max_ms: 1500, session_timeout_ms: 1500, heartbeat_interval_ms: 300}"
TEXT = f"""
name: virtual
seed: 5
fleet: {{kind: simulated}}
system: {{kind: wrackline, config: {FAST}}}
workload: {{duration_s: 20, rate: 60}}
nemesis:
  schedule:
    - {{at_s: 5, duration_s: 3, fault: kill, target: leader(log-0)}}
    - {{at_s: 10, duration_s: 3, fault: power-cut, target: follower(log-1)}}
    - {{at_s: 15, duration_s: 3, fault: partition, target: minority}}
"""
RANDOM = f"""
name: virtual
fleet: {{kind: simulated}}
system: {{kind: wrackline, config: {FAST}}}
workload: {{duration_s: 40, rate: 60}}
nemesis:
  random:
    every_s: [1, 3]
    duration_s: [1, 3]
    overlap: true
    faults:
      - {{fault: kill, target: leader}}
      - {{fault: kill, target: follower}}
      - {{fault: power-cut, target: leader}}
      - {{fault: partition, target: follower}}
"""
FOLLOW = f"""
name: virtual
fleet: {{kind: simulated}}
system: {{kind: wrackline, config: {FAST}}}
topic: {{name: log, partitions: 2}}
workload: {{duration_s: 60, rate: 60}}
nemesis: {{follow: {{duration_s: [1, 3], patience_s: 8, tail_s: 10}}}}
"""


def spec(text: str = TEXT, *settings: str, seed: int | None = None) -> Spec:
    return parse(text, "virtual.yaml", settings=settings, seed=seed)


def rows(run_dir: Path) -> list[dict[str, Any]]:
    table = pq.read_table(run_dir / "history.parquet")
    return table.drop_columns([name for name in ("test_id",) if name in table.column_names]).to_pylist()


def as_row(row: dict[str, Any]) -> dict[str, Any]:
    """The same with its extra as a mapping."""
    return {**row, "extra": json.loads(row["extra"] or "{}")}


def test_a_specification_runs_and_is_judged_as_any_other(tmp_path: Path) -> None:
    [judged] = judge_outcomes([run(spec(), Options(tmp_path))], engine="auto", master="local[1]")
    assert judged.word == "pass", judged.verdict
    conditions = {one["name"]: one["ok"] for one in judged.verdict["conditions"]}
    assert all(conditions.values()), conditions
    assert judged.verdict["invariants"]["checked"]
    assert [one.fault for one in happened(judged.run_dir)] == ["kill", "power-cut", "partition"]
    assert len(happened(judged.run_dir)[2].targets) == 1


def test_the_same_seed_is_the_same_run(tmp_path: Path) -> None:
    first, second, other = (run(spec(seed=seed), Options(tmp_path)).run_dir for seed in (5, 5, 6))
    assert rows(first) == rows(second) != rows(other)


def test_a_defect_is_a_violation_and_without_it_the_runs_pass(tmp_path: Path) -> None:
    broken = ("system.profile=kip101", "system.defects=[trunc_hw]")
    made = [
        run(spec(RANDOM, *settings, seed=seed), Options(tmp_path))
        for settings in (broken, ("system.profile=kip966",))
        for seed in (3, 4)
    ]
    words = [one.word for one in judge_outcomes(made, engine="auto", master="local[1]")]
    assert words == ["violation", "violation", "pass", "pass"]


def test_what_happened_is_a_specification_for_hosts_and_back(tmp_path: Path) -> None:
    made = run(spec(), Options(tmp_path)).run_dir
    on_hosts = replay_of(made, fleet="netns")
    assert (on_hosts.faults, on_hosts.left_out) == (3, ())
    again = replay_of(made)
    assert parse(again.text, "again.yaml").fleet.kind == "simulated"
    targets = [(one.fault, one.targets) for one in happened(made)]
    repeated = run(parse(again.text, "again.yaml"), Options(tmp_path)).run_dir
    assert [(one.fault, one.targets) for one in happened(repeated)] == targets


@pytest.mark.parametrize("fault", FAULTS.models())
def test_every_fault_happens_or_is_refused_in_one_line(fault: str, tmp_path: Path) -> None:
    model = FAULTS.models()[fault]
    given = {"at_s": 2, "duration_s": 2, "fault": fault, **model.example}
    text = TEXT.split("nemesis:")[0]
    setting = f"nemesis.schedule=[{given!r}]".replace("True", "true").replace("False", "false")
    refused: tuple[str, ...] = ()
    try:
        asked = spec(text, setting, "workload.duration_s=8", "fleet.controllers=3")
    except SpecError as error:
        refused = error.mistakes
    if refused:
        assert len(refused) <= 2
        assert fault in refused[0]
        return
    made = run(asked, Options(tmp_path)).run_dir
    ended = [one for one in happened(made) if one.fault == fault]
    assert [one.targets != () for one in ended] == [True]


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("system.kind=apache-kafka", "only the broker that comes with Wrackline"),
        ("workload.name=group", "workload.name group: virtual time has log, register, queue"),
        ("workload.client.library=java", "workload.client.library: virtual time has no such setting"),
        ("workload.mix.delete=1", "workload.mix.delete: virtual time has no such setting"),
        ("system.config.segment_bytes=1000", "system.config.segment_bytes: virtual time has no such setting"),
        ("system.racks={n1: a}", "virtual time has no racks"),
        ("nemesis.guided=zombie-leader", "this schedule is for hosts alone"),
        ("nemesis={follow: {}, guided: last-leader}", "virtual time does not follow the state beside"),
        ("topics=[{name: a}, {name: b}]", "virtual time has one topic"),
        ("fleet.spares=1", "fleet.spares"),
    ],
)
def test_what_virtual_time_has_not_is_refused(setting: str, why: str) -> None:
    with pytest.raises(SpecError) as refused:
        spec(TEXT, setting)
    assert any(why in line for line in refused.value.mistakes), refused.value.mistakes


def test_every_key_of_a_workload_is_known_or_refused() -> None:
    """A key that is not on the list and not by default is refused, whatever it is."""
    assert not list(virtual_time.refusals(spec(TEXT, "workload.senders=3")))
    with pytest.raises(SpecError, match=r"workload\.in_flight"):
        spec(TEXT, "workload.in_flight=3")


def test_settings_are_those_of_the_deployed_program() -> None:
    one = spec(TEXT, "system.config.flush_mode=every-write")
    setup = setup_of(one, clients_of(one))
    brokers = dict(setup.broker)
    assert brokers["heartbeat_interval_ms"] == 300
    assert brokers["flush_mode"].value == "every-write"
    assert brokers["request_timeout_ms"] == 30_000  # by default there, not in other simulated runs
    assert dict(setup.controller)["session_timeout_ms"] == 1500


def test_an_interrupt_ends_the_main_phase_and_keeps_the_run(tmp_path: Path) -> None:
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = run(spec(TEXT, "workload.duration_s=3000"), Options(tmp_path))
    assert outcome.interrupted
    last = max(row["time_ns"] for row in rows(outcome.run_dir))
    assert last < 2_000e9
    assert any(row["f"] == "drain" for row in rows(outcome.run_dir))


def test_faults_follow_the_state_and_the_same_seed_follows_the_same(tmp_path: Path) -> None:
    made = [run(spec(FOLLOW), Options(tmp_path)).run_dir for _ in range(2)]
    assert rows(made[0]) == rows(made[1])
    coverage = json.loads((made[0] / FOLLOW_JSON).read_bytes())
    assert len(coverage["states"]) > 5
    assert sum(coverage["pairs"].values()) > 3
    faults = happened(made[0])
    for one in faults:
        assert 2 <= one.at_s <= 50
        assert one.at_s + one.duration_s <= 51
    roles = {role for row in map(as_row, rows(made[0])) if (role := row["extra"].get("role"))}
    assert any("to begin with" in role for role in roles), "an opener leads to a state"
    assert any("to begin with" not in role for role in roles), "and a fault follows it"


def test_leadership_is_transferred_and_replicas_move_to_who_has_none(tmp_path: Path) -> None:
    """What the targets lead goes to others in the ISR; a replica of theirs goes to the one broker without."""
    text = f"""
        name: virtual
        seed: 5
        fleet: {{kind: simulated, brokers: 4}}
        system: {{kind: wrackline, config: {FAST}}}
        topic: {{name: log, partitions: 4}}
        workload: {{duration_s: 12, rate: 20}}
        nemesis:
          schedule:
            - {{at_s: 2, duration_s: 1, fault: transfer-leadership, target: n1}}
            - {{at_s: 7, duration_s: 1, fault: reassign, target: n1}}
        """
    made = run(spec(text), Options(tmp_path)).run_dir
    assert [one.targets for one in happened(made)] == [("n1",), ("n1",)]
    states = {second: _partitions(made, second) for second in (2, 6, 12)}
    assert 1 in [leader for leader, _ in states[2]]
    assert 1 not in [leader for leader, _ in states[6]]
    assert all(1 not in replicas and len(replicas) == 3 for _, replicas in states[12])
    assert any(1 in replicas for _, replicas in states[6])


def _partitions(run_dir: Path, before_s: float) -> list[tuple[int, list[int]]]:
    """Returns leader and replicas of each partition then, from the beginning of the main phase."""
    last: dict[int, tuple[int, list[int]]] = {}
    begun_ns = None
    for row in map(as_row, rows(run_dir)):
        if row["f"] == "phase" and row["extra"]["phase"] == "main":
            begun_ns = row["time_ns"]
        if row["f"] == "cluster" and begun_ns is not None and row["time_ns"] - begun_ns < before_s * 1e9:
            last |= {one["partition"]: (one["leader"], one["replicas"]) for one in row["extra"]["partitions"]}
    return list(last.values())


def test_an_interrupt_ends_what_follows_the_state_too(tmp_path: Path) -> None:
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    outcome = run(spec(FOLLOW, "workload.duration_s=3000"), Options(tmp_path))
    assert outcome.interrupted
    ended = {
        row["extra"]["id"]: row["extra"]["phase"]
        for row in map(as_row, rows(outcome.run_dir))
        if row["extra"].get("id")
    }
    assert ended
    assert set(ended.values()) <= {"ended", "missed"}
    assert (outcome.run_dir / FOLLOW_JSON).exists()


def test_a_broken_invariant_is_a_violation_where_the_contract_has_it(tmp_path: Path) -> None:
    broken = ("system.defects=[last_known_leader]", "workload.duration_s=90")
    made = [
        run(spec(FOLLOW, *broken, f"contract.invariants={binds}"), Options(tmp_path))
        for binds in ("noted", "violation")
    ]
    noted, bound = judge_outcomes(made, engine="auto", master="local[1]")
    assert noted.verdict["invariants"]["broken"]
    assert bound.word == "violation"
    forbidden = [
        {one["anomaly"] for one in each.verdict["anomalies"] if one["meaning"] == "violation"}
        for each in (noted, bound)
    ]
    assert "I09" not in forbidden[0]
    assert "I09" in forbidden[1]
    assert "I09" not in record(noted.run_dir).violations
    assert "I09" in record(bound.run_dir).violations


def test_what_stands_still_after_the_faults_is_looked_for(tmp_path: Path) -> None:
    """A follower that a proposal under way keeps out of the ISR for ever."""
    one = yaml.safe_load((REPOSITORY / "suites/defects/inflight-leak.yaml").read_text())
    one["fleet"]["kind"] = "simulated"
    broken = parse(yaml.safe_dump(one), "broken")
    del one["system"]["defects"], one["contract"]["expected"]
    [judged, right] = judge_outcomes(
        [run(each, Options(tmp_path)) for each in (broken, parse(yaml.safe_dump(one), "right"))]
    )
    assert (judged.word, right.word) == ("reproduced", "pass")
    promises = [row["extra"] for row in map(as_row, rows(right.run_dir)) if row["f"] == "liveness"]
    assert {each["promise"]: each["kept"] for each in promises} == {
        "failed-start": True,
        "offline-partition": True,
        "under-replicated": True,
    }


def test_a_core_that_raises_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("no such partition")

    monkeypatch.setattr(ProduceHandler, "_take", broken)
    [judged] = judge_outcomes([run(spec(), Options(tmp_path))])
    assert judged.word == "violation"
    counts = {one["anomaly"]: one["count"] for one in judged.verdict["anomalies"] if one["count"]}
    assert counts["crash"] == 1
    details = {one["name"]: one["detail"] for one in judged.verdict["conditions"]}
    assert "crash" not in details["everything moved again after healing"]
