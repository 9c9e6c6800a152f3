"""The command line: wrong calls are one line on standard error and exit code 2."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from harness.cli import main
from harness.history import Recorder
from harness.history.model import RunInfo, TopicInfo

SUITES = Path(__file__).parents[2] / "suites"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "x.yaml", "--sed", "4"], "no such option '--sed'"),
        (["rnu"], "did you mean 'run'?"),
        (["run"], "missing argument 'spec.yaml"),
        (["run", "nosuch.yaml"], "nosuch.yaml: no such file"),
        (["run", str(SUITES / "demo-canary.yaml"), "--set", "workload.ratee=1"], "did you mean 'rate'?"),
        (["run", str(SUITES / "demo-canary.yaml"), "--seed", "-4"], "-4 is not in the range"),
        (["analyze"], "missing argument"),
        (["analyze", "nosuch"], "nosuch: no such run in"),
        (["report", "nosuch"], "nosuch: no such run in"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.setenv("WRACKLINE_RESULTS", str(tmp_path))
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert said in err.lower()


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


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--help")
    assert code == 0
    for word in ("wrackline demo", "run", "runs", "analyze", "report", "fleet", "doctor"):
        assert word in out
    code, out, _ = call(capsys, "run", "--help")
    assert "--seed 42" in out
    assert "Ctrl-C" in out


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
    code, out, _ = call(capsys, "runs", "--results", str(tmp_path / "none"))
    assert code == 0
    assert out.startswith("no runs in")


def test_a_run_is_named_by_path_by_id_and_by_any_part_that_is_its_own(tmp_path: Path) -> None:
    from harness.results import NoSuchRun, find

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
