"""The command line: wrong calls are one line on standard error and exit code 2."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import tempfile
import time
from pathlib import Path

import orjson
import pytest

import wrackline.checkers.analysis
from tests.harness.cli.calling import call
from wrackline.checkers.engine.spark import masters, session
from wrackline.checkers.engine.spark.masters import SparkUnavailable
from wrackline.checkers.inputs.runs import AnalysisError
from wrackline.history import Recorder, read_info
from wrackline.history.model import Event, Record, RunInfo, TopicInfo, Type

SUITES = Path(__file__).parents[3] / "suites"


def recorded(results: Path, test_id: str, verdict: str | None = None) -> Path:
    info = RunInfo(test_id, "x", 1, "", "stub", "log", "all", False, (TopicInfo("log", 1, 3, 2),))
    Recorder(results / test_id, info).close()
    if verdict:
        told = {
            "verdict": verdict,
            "headline": "nothing was lost",
            "counts": {"acked_records": 12345},
            "faults": [{"proved": True}, {"proved": False}],
        }
        (results / test_id / "verdict.json").write_bytes(orjson.dumps(told))
    return results / test_id


def test_a_master_that_swallows_connections_is_given_up_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is full, so the knock meets silence."""
    monkeypatch.setattr(masters, "MASTER_KNOCK_S", 1.0)
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = deaf.getsockname()[1]
        for _ in range(3):  # whoever comes after these waits
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        began = time.monotonic()
        with pytest.raises(
            SparkUnavailable, match=rf"no Spark master answers .*127\.0\.0\.1:{port}: timed out"
        ):
            masters.check_master(f"spark://127.0.0.1:{port}")
        assert time.monotonic() - began < 60


def test_spark_is_not_started_for_a_master_that_is_not_there() -> None:
    began = time.monotonic()
    with pytest.raises(
        SparkUnavailable, match=r"Connection refused.*start it, or give another with --master"
    ):
        session.start("spark://127.0.0.1:7")
    assert time.monotonic() - began < 10


def test_without_root_nothing_is_begun(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for arguments in (["run", str(SUITES / "demo-canary.yaml")], ["demo"]):
        code, out, err = call(capsys, *arguments, "--results", str(tmp_path / "r"))
        assert (code, out) == (2, "")
        assert "root" in err
        assert err.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_runs_are_listed_with_their_verdicts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recorded(tmp_path, "20260101T000000Z-a-0001", "pass")
    recorded(tmp_path, "20260102T000000Z-b-0002")
    (tmp_path / "something-else").mkdir()
    code, out, _ = call(capsys, "runs", "--results", str(tmp_path))
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 3
    assert lines[1].split()[:4] == ["20260101T000000Z-a-0001", "pass", "12,345", "1/2"]
    assert "nothing was lost" in lines[1]
    assert "not judged" in lines[2]


def test_no_runs_is_no_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = call(capsys, "runs", "--results", str(tmp_path))
    assert code == 0
    assert out.startswith("no runs in")


def test_a_run_is_named_by_path_by_id_and_by_any_part_that_is_its_own(tmp_path: Path) -> None:
    from wrackline.harness.run.results import NoSuchRun, find

    first = recorded(tmp_path, "20260101T000000Z-a-0001")
    second = recorded(tmp_path, "20260102T000000Z-b-0002")
    assert find(str(first), tmp_path / "elsewhere") == first
    assert find(first.name, tmp_path) == first
    assert find("20260102", tmp_path) == second
    assert find("0001", tmp_path) == first
    assert find("last", tmp_path) == second
    with pytest.raises(NoSuchRun, match="2 runs match"):
        find("2026", tmp_path)
    with pytest.raises(NoSuchRun, match="without a run in it"):
        find(str(tmp_path), tmp_path)


def test_a_corrupt_history_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_dir = recorded(tmp_path, "20260101T000000Z-a-0001")
    (run_dir / "history.parquet").write_bytes(b"PAR1 and no more")
    code, _, err = call(capsys, "analyze", "last", "--results", str(tmp_path))
    assert code == 2
    last = err.splitlines()[-1]
    assert "history.parquet: corrupt or truncated" in last


def test_a_report_of_a_run_that_was_not_judged_says_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recorded(tmp_path, "20260101T000000Z-a-0001")
    code, _, err = call(capsys, "report", "last", "--results", str(tmp_path))
    assert code == 2
    assert "wrackline analyze 20260101T000000Z-a-0001" in err


def test_runs_beside_one_that_cannot_be_judged_are_told_and_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = recorded(tmp_path, "20260101T000000Z-good-0001", "pass")
    recorded(tmp_path, "20260101T000000Z-bad-0002")

    def analyze(_runs: object, **_options: object) -> None:
        error = AnalysisError("bad: corrupt or truncated")
        error.judged = {good: orjson.loads((good / "verdict.json").read_bytes())}
        raise error

    monkeypatch.setattr(wrackline.checkers.analysis, "analyze", analyze)
    code, _, err = call(capsys, "analyze", "20260101", "good", "bad", "--results", str(tmp_path))
    assert code == 2  # "20260101" means both
    code, _, err = call(capsys, "analyze", "good", "bad", "--results", str(tmp_path))
    assert (code, err.splitlines()[-1]) == (2, "wrackline: bad: corrupt or truncated")
    assert "pass           20260101T000000Z-good-0001  nothing was lost" in err
    assert (good / "report.html").exists()


@pytest.mark.parametrize("command", ["report", "export"])
def test_a_full_disk_is_one_line_and_leaves_what_was_there(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = recorded(tmp_path, "20260101T000000Z-a-0001", "pass")
    with Recorder(tmp_path / "20260101T000000Z-b-0002", read_info(run_dir)) as recorder:
        recorder.record(Event(1, Type.INVOKE, "send", topic="log", records=(Record(0, -1, 160),)))
    run_dir = tmp_path / "20260101T000000Z-b-0002"
    (run_dir / "verdict.json").write_bytes((tmp_path / "20260101T000000Z-a-0001/verdict.json").read_bytes())
    for name in ("report.html", "history.kafka.edn"):
        (run_dir / name).write_text("what was there")
    real = Path.replace

    def full(self: Path, target: Path) -> Path:
        if self.name.endswith(".part") and "history.parquet" not in self.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", full)
    code, _, err = call(capsys, command, "last", "--results", str(tmp_path))
    assert (code, len(err.splitlines())) == (2, 1)
    assert "No space left on device; make room" in err
    assert str(run_dir) in err
    assert not list(run_dir.glob("*.part"))
    assert (run_dir / "report.html").read_text() == "what was there"
    assert (run_dir / "history.kafka.edn").read_text() == "what was there"


def test_an_unexpected_exception_is_one_line_and_exit_code_4(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a traceback and exit code 1, which is a violation's."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def breaks(_results: Path) -> None:
        raise RuntimeError("nobody\nthought of this")

    monkeypatch.setattr("wrackline.harness.run.results.table", breaks)
    code, out, err = call(capsys, "runs")
    assert (code, out, len(err.splitlines())) == (4, "", 1)
    assert err.startswith(
        "wrackline broke down: RuntimeError: nobody thought of this; nothing is proved by that."
    )
    [kept] = tmp_path.glob("wrackline-*.traceback")
    assert str(kept) in err
    assert "in breaks" in kept.read_text()


def test_an_unexpected_exception_on_a_full_disk_is_still_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(_results: Path) -> None:
        raise RuntimeError("nobody thought of this")

    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("wrackline.harness.run.results.table", breaks)
    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    code, _, err = call(capsys, "runs")
    assert (code, len(err.splitlines())) == (4, 1)
    assert "no room for the traceback (No space left on device)" in err


def test_check_never_calls_a_history_not_linearizable_because_it_broke_down(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_arguments: object, **_options: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("wrackline.harness.check.files.read_operations", breaks)
    history = tmp_path / "history.edn"
    history.write_text("{:index 0, :type :invoke, :process 0, :f :read, :value nil}\n")
    code, _, err = call(capsys, "check", "--model", "register", str(history))
    assert (code, len(err.splitlines())) == (4, 1)


def test_the_table_of_runs_shows_what_was_planned_and_who_was_interrupted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_dir = recorded(tmp_path, "20260101T000000Z-a-0001", "inconclusive")
    told = orjson.loads((run_dir / "verdict.json").read_bytes())
    told |= {"planned_faults": 3, "headline": "nothing is proved: interrupted by the user 8.0 s into the run"}
    told["faults"] = [{"proved": True}, {"proved": True, "asked_for": False}]
    (run_dir / "verdict.json").write_bytes(orjson.dumps(told))
    code, out, _ = call(capsys, "runs", "--results", str(tmp_path))
    row = out.splitlines()[1]
    assert (code, row.split()[1], row.split()[3]) == (0, "inconclusive", "1/3")
    assert "interrupted by the user" in row


def test_a_simulation_that_acknowledges_nothing_is_never_clean(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--search", "2"]):
        code, out, err = call(
            capsys, "simulate", "--producers", "0", "--seconds", "1", "--faults", "none", *more
        )
        assert code == 3
        assert "clean" not in out
        assert (
            err
            == "no record was acknowledged, so nothing is shown; let it last longer, or give it producers\n"
        )


def test_a_version_that_nobody_knows_is_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("name: a\nsystem: {kind: apache-kafka, version: 9.9.9}\n")
    code, out, err = call(capsys, "validate", str(file))
    assert (code, out) == (0, f"{file}: fine\n")
    assert "warning: system.version: Kafka 9.9.9 is not on this machine, and newer than" in err
