"""The first bad one is found in as few runs as halving takes, also where a run may miss what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wrackline.checkers.findings import Verdict
from wrackline.harness.cli.runs import bisect
from wrackline.harness.cli.runs.bisect import bisect_command
from wrackline.harness.nights import subprocesses
from wrackline.harness.nights.bisecting import Candidate, Found, look, names
from wrackline.harness.nights.journal import Result as Judged
from wrackline.harness.nights.journal import State

STAND_IN = Path(__file__).with_name("stand_in.py")


def played(bad_from: int, count: int, tries: int = 2, missed: int = 0) -> tuple[Found, int]:
    """``missed``: so many runs of a bad one show nothing before one does."""
    candidates = [Candidate(f"v{number}", "") for number in range(count)]
    state = State()
    while (found := look(candidates, state, tries)).probe is not None:
        candidate = candidates[found.probe]
        name = next(name for name in names(candidate, tries) if name not in state.results)
        before = sum(name.startswith(f"{candidate.name}~") for name in state.results)
        verdict = Verdict.VIOLATION if found.probe >= bad_from and before >= missed else Verdict.PASS
        must = missed == 0  # a bisection looks for what a night takes for expected, too
        good = True if must else verdict is Verdict.PASS
        state.results[name] = Judged(name, "", verdict, "", (), 1.0, good)
    return found, len(state.results)


@pytest.mark.parametrize("count", [2, 3, 9, 16])
def test_every_place_is_found(count: int) -> None:
    for bad_from in range(1, count):
        found, _ = played(bad_from, count)
        assert (found.good, found.bad) == (bad_from - 1, bad_from)
        assert not found.trouble


def test_it_halves_and_tries_again_only_what_is_clean() -> None:
    _, runs = played(99, 100, tries=1)
    assert runs <= 2 + 7
    found, _ = played(5, 9, tries=3, missed=2)
    assert found.bad == 5, "a violation in the third run is one"


def test_ends_that_are_not_good_and_bad_are_told() -> None:
    assert "the first one is bad already" in played(0, 4)[0].trouble
    assert "the last one shows no violation" in played(9, 4)[0].trouble


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(subprocesses, "_ENTRY", (sys.executable, str(STAND_IN)))
    (tmp_path / "lap.yaml").write_text(
        "name: lap\nfleet: {kind: process, brokers: 3}\ntopic: {partitions: 1}\n"
        "workload: {duration_s: 0.1, rate: 20, senders: 1, pollers: 1, enders: 1}\n"
        "nemesis: {schedule: [{at_s: 0.05, duration_s: 0.04, fault: kill, target: one}]}\n"
    )
    return tmp_path


def asked(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        bisect_command,
        [str(folder / "lap.yaml"), *arguments, "--results", str(folder / "results"), "--tries", "1"],
        standalone_mode=False,
    )


def test_the_command_finds_the_value(folder: Path) -> None:
    key = "nemesis.schedule.0.fault"
    done = asked(folder, "kill", "restart", "pause", "--key", key)
    assert done.return_value == 0, done.output
    assert "first bad: pause; restart is good (3 runs" in done.output
    again = asked(folder, "kill", "restart", "pause", "--key", key)
    assert "begins" not in again.output, "it is known already"
    assert "first bad: pause" in again.output
    ends = asked(folder, "kill", "restart", "--key", key)
    assert ends.return_value == 3
    assert "no answer: the last one shows no violation" in ends.output


def test_commits_are_checked_out_and_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = folder / "repository"
    repository.mkdir()

    def git(*arguments: str) -> str:
        named = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        done = subprocess.run(
            ["git", "-C", repository, *named, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for number in range(4):
        (repository / "bad").write_text(str(number >= 2))
        (repository / "number").write_text(str(number))
        git("add", ".")
        git("commit", "-qm", str(number))
        commits.append(git("rev-parse", "HEAD"))
    monkeypatch.setattr(bisect, "SOURCES", repository)
    monkeypatch.setenv("STAND_IN_READS", "bad")
    done = asked(folder, "--commits", f"{commits[0]}..{commits[-1]}")
    assert done.return_value == 0, done.output
    assert f"first bad: {commits[2][:12]}; {commits[1][:12]} is good" in done.output
    assert git("worktree", "list").count("\n") == 0, "only the repository's own is left"
