"""Runs for other programs: as JSON, and as annotations of a job."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tests.harness.sample import SAMPLE, copy_sample
from wrackline.harness.cli.runs import run as commands
from wrackline.harness.cli.verdicts import analyze
from wrackline.harness.run import judge as judging
from wrackline.harness.run.judge import Judged
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.specification.spec import Spec

LAPTOP = Path(__file__).parents[4] / "suites" / "laptop.yaml"


def sample(run: Path) -> Path:
    return copy_sample(run, {"name": "canary", "seed": 7, "started_at": "2026-11-20"})


def test_runs_as_json_are_those_of_nights_too(tmp_path: Path) -> None:
    sample(tmp_path / "r1")
    night = tmp_path / "nights" / "weekly-1"
    sample(night / "runs" / "r2")
    (night / "journal.jsonl").write_bytes(orjson.dumps({"did": "made", "task": "canary~twin", "run": "r2"}))
    (night / "runs" / "r3").mkdir()
    (night / "runs" / "r3" / "history.wal").write_bytes(b"")
    asked = ["--json", "--results", str(tmp_path)]
    told = json.loads(CliRunner().invoke(analyze.runs_command, asked, standalone_mode=False).output)
    found = {one["run"]: one for one in told}
    assert list(found) == ["r1", "r2", "r3"]
    assert found["r1"]["verdict"] == "violation"
    assert found["r1"]["folder"] == str(tmp_path / "r1")
    judged = orjson.loads((SAMPLE / "verdict.json").read_bytes())
    assert found["r1"]["metrics"]["acknowledged"] == judged["counts"]["acked_records"] > 0
    assert found["r1"]["violations"] == ["inconsistent-offset", "lost-write", "vanished-read"]
    assert (found["r2"]["night"], found["r2"]["case"], found["r2"]["follow_up"]) == (
        *("weekly-1", "canary"),
        "twin",
    )
    assert (found["r3"]["state"], found["r3"]["verdict"]) == ("recording", None)


def test_no_runs_are_an_empty_list(tmp_path: Path) -> None:
    asked = ["--json", "--results", str(tmp_path)]
    assert json.loads(CliRunner().invoke(analyze.runs_command, asked, standalone_mode=False).output) == []


def test_a_run_in_a_job_of_github_is_annotated_at_its_specification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run itself is a sample: what is told of it is what is tried here."""
    made = sample(tmp_path / "r1")
    verdict = orjson.loads((made / "verdict.json").read_bytes())

    def run(_spec: Spec, _options: Options) -> Outcome:
        return Outcome(made, (), True, None, False)

    monkeypatch.setattr(commands, "run", run)
    monkeypatch.setattr(judging, "judge", lambda *_, **__: [Judged(made, verdict, None)])
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(LAPTOP.parents[1]))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    asked = [str(LAPTOP), "--results", str(tmp_path)]
    done = CliRunner().invoke(commands.run_command, asked, standalone_mode=False)
    assert done.return_value == 1, done.output
    first = done.output.splitlines()[0]
    assert first.startswith("::error file=suites/laptop.yaml,line=1,title=violation%3A canary::")
    assert "| canary | **violation** |" in (tmp_path / "summary").read_text()


def test_what_failed_on_our_side_is_said_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trouble, another = "install: n1: no space left", "collect: n2: no answer"
    verdict = {"verdict": "infrastructure", "headline": trouble, "reasons": [trouble, another]}
    analyze.show_verdicts([Judged(tmp_path, verdict, None)])
    lines = capsys.readouterr().out.splitlines()
    assert sum(trouble in line for line in lines) == 1
    assert f"  {another}" in lines
