"""``analyze()`` judges several runs at once from their files, and refuses bad input in one clear line."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from tests.checkers.histories import TOPIC, History
from wrackline.checkers.engine.executor import LocalExecutor
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.inputs.runs import AnalysisError, load_run
from wrackline.checkers.verdict.contracts import UnknownContract
from wrackline.checkers.verdict.measures.metrics import isr_under
from wrackline.history.labels import value_label
from wrackline.history.model import UNKNOWN, TopicInfo, Type

S = 1_000_000_000
A, B, C = 160, 176, 192
"""Values."""
ONE = (TopicInfo(TOPIC, 1, 3, 2),)


def lossy_run(test_id: str, **changes: Any) -> History:
    """acks=1: B is acked by n1, which then loses its power; C takes its offset."""
    h = History(test_id, topics=ONE, **changes)
    h.assignment().cluster([1, 2, 3]).phase("main")
    h.assign(2, 0).end(3, 0).send(1, (A, 0)).poll(2, (0, A)).wait(6)
    h.send(1, (B, 1)).fault("f1", "power-cut", "begin").fault("f1", "power-cut", "active").wait(1)
    h.cluster([2, 3], leader=2, epoch=1)
    h.send(4, (9, UNKNOWN), kind=Type.INFO).send(5, (C, 1)).wait(1)
    lost = {
        "lossy": ["n1"],
        "lost": {"n1": {"log-0/00000000000000000000.log": 190}},
        "proved": True,
        "proof": "190 bytes",
        "restored": True,
    }
    h.fault("f1", "power-cut", "undo").fault("f1", "power-cut", "ended", **lost).wait(1)
    h.cluster([1, 2, 3], leader=2, epoch=1).wait(6).send(5, (D := 240, 2)).poll(2, (1, C), (2, D)).end(3, 3)
    h.phase("heal").phase("drain")
    log = ((0, A, 0), (1, C, 1), (2, D, 1))
    return h.drain(*log).replicas(*log).account()


def good_run(test_id: str) -> History:
    h = History(test_id, topics=ONE)
    h.assignment().cluster([1, 2, 3]).phase("main")
    h.assign(2, 0).send(1, (A, 0)).poll(2, (0, A)).end(3, 1).wait(6).phase("drain")
    return h.drain((0, A, 0)).replicas((0, A, 0)).account()


def hasty_run(test_id: str) -> History:
    """The final read was taken while a client still sent: C is acknowledged behind it."""
    h = History(test_id, topics=ONE, thresholds={"latency_ms.healthy.p99": 1.5, "records_per_s": 0.1})
    h.assignment().cluster([1, 2, 3]).phase("main")
    h.assign(2, 0).send(1, (A, 0)).poll(2, (0, A)).end(3, 1).wait(6).invoke_send(4, C).phase("drain")
    return h.drain((0, A, 0)).complete_send(4, (C, 1)).replicas((0, A, 0)).account()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Four good directories, one broken, judged together; then one of them under another contract."""
    from wrackline.checkers.analysis import analyze

    folder = tmp_path_factory.mktemp("runs")
    runs = {
        "acks-1": lossy_run("acks-1", acks="1", idempotence=False).write(folder / "acks-1"),
        "expected": lossy_run("expected", expected=("lost-write",), idempotence=False).write(
            folder / "expected"
        ),
        "good": good_run("good").write(folder / "good"),
        "hasty": hasty_run("hasty").write(folder / "hasty"),
    }
    broken = good_run("broken").write(folder / "broken")
    history = broken / "history.parquet"
    history.write_bytes(history.read_bytes()[:-100])
    infrastructure = folder / "no-hosts"
    infrastructure.mkdir()
    (infrastructure / "infrastructure.json").write_bytes(orjson.dumps({"error": "n2: no route to host"}))
    twin = shutil.copytree(runs["good"], folder / "twin")
    told: list[str] = []
    with pytest.raises(
        AnalysisError, match=r"corrupt or truncated.* \(and 1 more of 7 runs cannot be judged, see above\)"
    ) as raised:
        analyze([*runs.values(), broken, infrastructure, twin], engine="local", progress=told.append)
    assert "\n" not in str(raised.value)
    assert {path.name for path in raised.value.judged} == {"acks-1", "expected", "good", "hasty", "no-hosts"}
    assert sum("corrupt or truncated" in line for line in told) == 0, "the error says it, once"
    assert sum("twin: same test id as" in line for line in told) == 1
    shutil.rmtree(twin)
    twice = analyze([runs["acks-1"], runs["acks-1"]], contract="acks-all", engine="local")
    assert [one["verdict"] for one in twice] == ["violation", "violation"]
    return runs | {"broken": broken, "no-hosts": infrastructure}


def read(path: Path) -> dict[str, Any]:
    result: dict[str, Any] = orjson.loads(path.read_bytes())
    return result


def test_acks_1_may_lose_what_only_the_leader_had(judged: dict[str, Path]) -> None:
    verdict = read(judged["acks-1"] / "verdict.json")
    assert (verdict["verdict"], verdict["exit_code"]) == ("pass", 0), verdict["reasons"]
    counts = {(one["anomaly"], one["meaning"]): one["count"] for one in verdict["anomalies"] if one["count"]}
    assert counts == {
        ("lost-write", "allowed"): 1,
        ("inconsistent-offset", "allowed"): 1,
        ("not-linearizable", "allowed"): 1,
        ("unproven-write", "allowed"): 1,
    }
    assert verdict["contract"]["name"] == "acks-1"
    assert verdict["faults"][0]["lost"] == {"n1": {"log-0/00000000000000000000.log": 190}}
    assert verdict["counts"]["acked_records"] == 4
    assert verdict["counts"]["sends_by_error"] == {"_TIMED_OUT": 1}
    assert verdict["counts"]["unproven_unseen"] == 1


def test_the_evidence_of_a_lost_write(judged: dict[str, Path]) -> None:
    table = pq.read_table(judged["acks-1"] / "findings.parquet")
    assert table.schema.equals(FINDINGS)
    [finding] = [row for row in table.to_pylist() if row["anomaly"] == "lost-write"]
    assert (finding["topic"], finding["partition"], finding["offset"], finding["value"]) == (TOPIC, 0, 1, B)
    assert finding["where"] == "middle"
    assert finding["explanation"] == (
        f"Value {value_label(B)} was acknowledged at offset 1 of log-0 at 6.013 s while n1 led (leader epoch "
        f"0); the final read has value {value_label(C)} there. These faults were in force at that time or "
        "later: power cut of n1 at 6.0 s."
    )
    events = lossy_run("acks-1").events
    assert [events[index].f for index in finding["operations"]] == ["send", "send", "drain"]


def test_a_forced_contract_has_a_verdict_of_its_own(judged: dict[str, Path]) -> None:
    verdict = read(judged["acks-1"] / "verdict.acks-all.json")
    assert (verdict["verdict"], verdict["exit_code"]) == ("violation", 1)
    assert verdict["contract"]["because"][0] == "it was asked for with --contract"
    assert read(judged["acks-1"] / "verdict.json")["verdict"] == "pass"


def test_an_expected_anomaly_is_reproduced(judged: dict[str, Path]) -> None:
    verdict = read(judged["expected"] / "verdict.json")
    assert (verdict["verdict"], verdict["exit_code"]) == ("reproduced", 0)


def test_a_good_run_passes_beside_the_others(judged: dict[str, Path]) -> None:
    verdict = read(judged["good"] / "verdict.json")
    assert verdict["verdict"] == "pass", verdict["reasons"]
    assert sum(one["count"] for one in verdict["anomalies"]) == 0
    assert pq.read_table(judged["good"] / "findings.parquet").num_rows == 0


def test_an_acknowledgement_behind_the_final_read_is_no_loss(judged: dict[str, Path]) -> None:
    """It was: `violation`, lost-write, exit code 1."""
    verdict = read(judged["hasty"] / "verdict.json")
    assert (verdict["verdict"], verdict["exit_code"]) == ("inconclusive", 3)
    assert sum(one["count"] for one in verdict["anomalies"]) == 0
    missing = [one["name"] for one in verdict["conditions"] if not one["ok"]]
    assert missing == ["clients had stopped before the final read"]


def test_thresholds_are_held_against_what_was_measured(judged: dict[str, Path]) -> None:
    conditions = {one["name"]: one for one in read(judged["hasty"] / "verdict.json")["conditions"]}
    assert conditions["threshold latency_ms.healthy.p99"]["detail"] == (
        "p99 of the latency of sends without a fault: 1 ms, at most 1.5 ms was asked for"
    )
    assert conditions["threshold records_per_s"]["detail"].startswith(
        "records acknowledged a second: 0.166, at"
    )


def test_broken_runs_leave_no_verdict_and_infrastructure_has_one(judged: dict[str, Path]) -> None:
    assert not (judged["broken"] / "verdict.json").exists()
    verdict = read(judged["no-hosts"] / "verdict.json")
    assert (verdict["verdict"], verdict["exit_code"]) == ("infrastructure", 4)
    assert "no route to host" in verdict["headline"]


def test_nothing_else_is_left_behind(judged: dict[str, Path]) -> None:
    folder = judged["good"].parent
    assert sorted(one.name for one in folder.iterdir()) == [
        "acks-1",
        "broken",
        "expected",
        "good",
        "hasty",
        "no-hosts",
    ]
    assert sorted(one.name for one in judged["good"].iterdir()) == [
        "explanations.json",
        "findings.parquet",
        "history.parquet",
        "metrics.json",
        "verdict.json",
    ]
    assert not Path("spark-warehouse").exists()


def test_metrics(judged: dict[str, Path]) -> None:
    metrics = read(judged["acks-1"] / "metrics.json")
    [row] = metrics["availability"]
    events = lossy_run("acks-1").events
    acks = [e.time_ns for e in events if e.f == "send" and e.type is Type.OK]
    full = [e.time_ns for e in events if e.f == "cluster"][-1]
    assert row == {
        "fault_id": "f1",
        "topic": TOPIC,
        "partition": 0,
        "last_ack_ns": acks[2],
        "first_ack_ns": acks[3],
        "gap_ms": round((acks[3] - acks[2]) / 1e6, 3),
        "isr_shrank": True,
        "full_isr_ns": full,
    }
    assert metrics["longest_gap_ms"] == row["gap_ms"]
    seconds = {(one["t"], one["f"]): one for one in metrics["seconds"]}
    assert seconds[0, "send"]["ok"] == 1
    assert seconds[0, "send"]["p50_ms"] == pytest.approx(1.0, rel=0.02)
    assert seconds[7, "send"] == {
        "t": 7, "f": "send", "ok": 1, "fail": 0, "info": 1, "p50_ms": pytest.approx(1, rel=0.02),
        "p99_ms": pytest.approx(1, rel=0.02), "max_ms": 1.0,
    }  # fmt: skip
    assert metrics["latency"]["before"]["p99_ms"] == pytest.approx(1, rel=0.02)
    assert metrics["rate_before_first_fault"] == pytest.approx(4 / 6.0, rel=0.05)
    assert [phase["phase"] for phase in metrics["phases"]] == ["main", "heal", "drain"]
    assert metrics["no_progress"] == []


def seen(*full: tuple[float, bool]) -> list[SimpleNamespace]:
    return [SimpleNamespace(time_ns=int(at * S), full_isr=is_full) for at, is_full in full]


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (seen((4, False), (6, True), (8, True)), (False, None)),
        (seen((6, True), (7, False), (8, True), (9, True)), (True, 8 * S)),
        (seen((6, True), (7, False), (9, False)), (True, None)),
        (seen((7, False), (25, True)), (True, 25 * S)),
        (seen((6, True), (21, False), (22, True)), (False, None)),
        (seen((4, True), (21, False)), (None, None)),
        ([], (None, None)),
    ],
    ids=[
        "stayed full",
        "came back",
        "never back",
        "back after the next",
        "the next's doing",
        "silent",
        "nothing",
    ],
)
def test_what_a_fault_did_to_the_isr(
    samples: list[SimpleNamespace], told: tuple[bool | None, int | None]
) -> None:
    """The fault strikes at 5 s, the next one at 20 s."""
    first: Any = SimpleNamespace(struck_ns=5 * S)
    second = SimpleNamespace(struck_ns=20 * S)
    run: Any = SimpleNamespace(faults=(first, second), cluster={(TOPIC, 0): samples})
    assert isr_under(run, first, (TOPIC, 0)) == told


def test_an_unknown_contract_is_refused_before_anything_else(tmp_path: Path) -> None:
    from wrackline.checkers.analysis import analyze

    with pytest.raises(UnknownContract):
        analyze([tmp_path], contract="nonsense")


def test_directories_that_are_no_runs(tmp_path: Path) -> None:
    from wrackline.checkers.analysis import analyze

    with pytest.raises(AnalysisError, match="no history here"):
        analyze([tmp_path])


def test_a_nemesis_row_without_an_id(tmp_path: Path) -> None:
    h = good_run("odd")
    h.event(-1, Type.INFO, "kill", extra={"phase": "begin"})
    with pytest.raises(AnalysisError, match="rows of nemesis or runner make no sense"):
        load_run(h.write(tmp_path / "odd"))


def test_load_run_reads_faults_phases_and_replicas_from_the_history(tmp_path: Path) -> None:
    h = lossy_run("told").replica("n2", (0, A, 0), complete=False, problem="bad CRC at offset 1")
    run = load_run(h.write(tmp_path / "told"))
    assert [(fault.id, fault.title, fault.proved, fault.lossy) for fault in run.faults] == [
        ("f1", "power cut of n1", True, ("n1",))
    ]
    assert [phase.name for phase in run.phases] == ["main", "heal", "drain"]
    assert run.assignment == {(TOPIC, 0): (1, 2, 3)}
    assert run.final[TOPIC, 0].complete
    assert run.replicas[TOPIC, 0]["n2"].problem == "bad CRC at offset 1"
    assert [sample.full_isr for sample in run.cluster[TOPIC, 0]] == [True, False, True]
    assert run.rows == len(h.events)
    assert run.end_ns == h.clock_ns


def test_a_killed_run_is_judged_from_its_write_ahead_file(tmp_path: Path) -> None:
    from wrackline.history import Recorder

    recorder = Recorder(tmp_path / "killed", History("killed", topics=ONE).info)
    for event in good_run("killed").events[:8]:
        recorder.record(event)
    shutil.copytree(tmp_path / "killed", tmp_path / "left", ignore=shutil.ignore_patterns("*.part"))
    recorder.close()
    run = load_run(tmp_path / "left")
    assert run.rows == 8
    assert run.final == {}


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_history_that_breaks_under_the_analysis(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The runs judged beside it have their verdicts; this one has a problem, in one line."""
    from wrackline.checkers.analysis import _Job, _judge
    from wrackline.checkers.engine.spark.executor import SparkExecutor

    local = engine == "local"
    executor = LocalExecutor() if local else SparkExecutor(request.getfixturevalue("spark"))
    runs = [
        load_run(good_run("brittle").write(tmp_path / "brittle")),
        load_run(good_run("whole").write(tmp_path / "whole")),
    ]
    content = Path(runs[0].files[0]).read_bytes()
    Path(runs[0].files[0]).write_bytes(content[:20] + bytes(200) + content[220:])
    brittle, whole = _judge(executor, runs, _Job("")).values()
    assert "corrupt or truncated" in brittle.problem
    assert "\n" not in brittle.problem
    assert whole.problem == ""
    assert whole.figures.acked_records == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["brittle", "whole"]
