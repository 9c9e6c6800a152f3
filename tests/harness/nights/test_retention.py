"""What is kept of runs: all that did not pass, all that is in use, and the history of the rest."""

from __future__ import annotations

import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from wrackline.harness.cli.data.prune import prune_command
from wrackline.harness.nights.journal import Did, Journal
from wrackline.harness.nights.retention import NOTE, Does, carry_out, plan, prune
from wrackline.harness.notifications.spec import Keeping
from wrackline.harness.records import State, record

NOW = 1_764_000_000.0
DAY = 86_400.0
KEPT = {"history.parquet", "run.json", "verdict.json", "metrics.json", "spec.yaml", "findings.parquet"}


def made(results: Path, name: str, *, days: float, verdict: str | None = "pass", kb: int = 100) -> Path:
    """A run so old, of so many kilobytes; a tenth of them are its history."""
    run = results / name
    (run / "nodes" / "n1").mkdir(parents=True)
    (run / "nodes" / "n1" / "trace.jsonl.zst").write_bytes(b"t" * kb * 800)
    (run / "report.html").write_bytes(b"r" * kb * 100)
    (run / "history.parquet").write_bytes(b"h" * kb * 100)
    started = datetime.fromtimestamp(NOW - days * DAY, UTC).isoformat()
    (run / "run.json").write_bytes(orjson.dumps({"name": "x", "started_at": started}))
    for file in KEPT - {"history.parquet", "run.json", "verdict.json"}:
        (run / file).write_bytes(b"{}")
    if verdict:
        (run / "verdict.json").write_bytes(orjson.dumps({"verdict": verdict}))
    quiet(run, NOW - days * DAY)
    return run


def quiet(run: Path, at: float) -> None:
    """As if nobody had written there since."""
    for path in (*run.iterdir(), run):
        os.utime(path, (at, at))


def files(run: Path) -> set[str]:
    return {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}


def done(results: Path, **keeping: float) -> dict[str, str]:
    """What is done, by the run's name."""
    chosen = plan(results, Keeping(**keeping), now_s=NOW)
    carry_out(chosen)
    return {step.folder.name: step.does.value for step in chosen.steps}


def test_what_passed_is_cut_down_to_its_history_and_is_still_a_run(tmp_path: Path) -> None:
    old, young = made(tmp_path, "old", days=20), made(tmp_path, "young", days=10)
    before = files(young)
    assert done(tmp_path) == {"old": "shrink"}
    assert files(old) == KEPT | {NOTE}
    assert "history is whole" in (old / NOTE).read_text()
    assert files(young) == before
    assert record(old).state is State.JUDGED
    quiet(old, NOW - DAY)
    assert done(tmp_path) == {}, "once is enough"


@pytest.mark.parametrize("verdict", ["violation", "inconclusive", "infrastructure", "not reproduced", None])
def test_what_did_not_pass_is_kept_whole(tmp_path: Path, verdict: str | None) -> None:
    run = made(tmp_path, "bad", days=400, verdict=verdict)
    before = files(run)
    assert done(tmp_path, days=1, drop_days=1, max_gb=1e-6) == {}
    assert files(run) == before


def test_a_canary_that_found_its_bug_has_passed(tmp_path: Path) -> None:
    made(tmp_path, "canary", days=20, verdict="reproduced")
    assert done(tmp_path) == {"canary": "shrink"}


def test_what_is_at_work_on_is_left_alone(tmp_path: Path) -> None:
    recording = made(tmp_path, "recording", days=20)
    (recording / "history.wal").write_bytes(b"")
    quiet(recording, NOW - DAY)
    judging = made(tmp_path, "judging", days=20)
    os.utime(judging / "verdict.json", (NOW - 60, NOW - 60))
    elsewhere = made(tmp_path / "elsewhere" / "a" / "b" / "c", "linked", days=20)
    (tmp_path / "linked").symlink_to(elsewhere)
    assert done(tmp_path, drop_days=15) == {}
    assert files(elsewhere)


def night(results: Path, name: str, *lines: Did) -> Path:
    here = results / "nights" / name
    (here / "runs").mkdir(parents=True)
    (here / "night.json").write_bytes(orjson.dumps({"night": {"name": name.rpartition("-")[0]}}))
    journal = Journal(here)
    for did in lines:
        journal.write(did, why="", over=True)
    journal.close()
    made(here / "runs", f"of-{name}", days=20)
    return here


def test_a_night_that_may_go_on_keeps_its_runs(tmp_path: Path) -> None:
    ended = night(tmp_path, "weekly-20261101T020000Z", Did.OPENED, Did.CLOSED)
    left = night(tmp_path, "nightly-20261101T020000Z", Did.OPENED)
    last = night(tmp_path, "nightly-20261102T020000Z", Did.OPENED)
    assert done(tmp_path, drop_days=15) == {f"of-{ended.name}": "remove", f"of-{left.name}": "remove"}
    assert files(last / "runs" / f"of-{last.name}")
    assert (ended / "journal.jsonl").exists(), "which knows what failed lately"


def test_a_bisection_that_may_go_on_keeps_its_runs(tmp_path: Path) -> None:
    here = tmp_path / "bisects" / "kafka-0a1b2c3d"
    made(here / "runs", "probe", days=20)
    journal = Journal(here)
    journal.write(Did.OPENED)
    assert done(tmp_path) == {}
    journal.write(Did.CLOSED, why="", over=True)
    journal.close()
    assert done(tmp_path) == {"probe": "shrink"}


def test_with_too_much_the_oldest_is_cut_down_first_then_removed(tmp_path: Path) -> None:
    for number in range(4):
        made(tmp_path, f"r{number}", days=9 - number)
    bad = made(tmp_path, "r9", days=30, verdict="violation")
    assert done(tmp_path, max_gb=350e-6) == {"r0": "shrink", "r1": "shrink"}
    assert done(tmp_path, max_gb=150e-6) == {"r2": "shrink", "r3": "shrink"}
    for number in range(4):
        quiet(tmp_path / f"r{number}", NOW - DAY)
    assert done(tmp_path, max_gb=125e-6) == {"r0": "remove", "r1": "remove"}
    assert files(bad)
    over = plan(tmp_path, Keeping(max_gb=50e-6), now_s=NOW)
    assert [step.does for step in over.steps] == [Does.REMOVE, Does.REMOVE]
    assert "still 0.1 MB more than max_gb: 0.1 MB did not pass, or are in use" in str(over)


def test_a_cut_down_run_is_removed_by_its_own_age(tmp_path: Path) -> None:
    run = made(tmp_path, "old", days=20)
    assert done(tmp_path) == {"old": "shrink"}
    quiet(run, NOW - DAY)
    assert done(tmp_path, drop_days=19) == {"old": "remove"}
    assert not run.exists()


def test_the_command_says_what_it_would_do_and_does_it_when_told_so(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    run = made(tmp_path, "old", days=20)
    before = files(run)
    ask = ["--results", str(tmp_path)]
    first = CliRunner().invoke(prune_command, ask, standalone_mode=False).output
    assert f"shrink         0.1 MB  {run}  (passed, older than 14 days)" in first
    assert first.endswith("0.1 MB of 0.1 MB freed; nothing was done yet: --yes does it\n")
    assert files(run) == before
    second = CliRunner().invoke(prune_command, [*ask, "--yes"], standalone_mode=False).output
    assert second.endswith("1 runs shrunk, 0 removed, 0.1 MB of 0.1 MB freed\n")
    assert files(run) == KEPT | {NOTE}


def test_it_is_planned_with_todays_clock(tmp_path: Path) -> None:
    made(tmp_path, "old", days=(NOW - time.time()) / DAY + 20)
    assert str(prune(tmp_path, Keeping())).startswith("1 runs shrunk")
