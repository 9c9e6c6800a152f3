"""A night under way: slots, what breaks down, interruptions, a kill, a full disk; what it leaves behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from wrackline.checkers.findings import Verdict
from wrackline.harness.cli.options import WrongInput
from wrackline.harness.cli.runs.suite import suite_command
from wrackline.harness.nights import subprocesses
from wrackline.harness.nights.driver import DiskFull, Stopped
from wrackline.harness.nights.journal import Journal, read
from wrackline.harness.nights.night import NightDriver, begin
from wrackline.harness.nights.order import before
from wrackline.harness.nights.spec import cases, load_night
from wrackline.harness.records import JOURNAL

pytestmark = pytest.mark.real

STAND_IN = Path(__file__).with_name("stand_in.py")
SPEC = """
name: {name}
fleet: {{kind: process, brokers: 3}}
topic: {{partitions: 1}}
workload: {{duration_s: {lasts}, rate: 20, senders: 1, pollers: 1, enders: 1}}
nemesis: {{schedule: [{{at_s: 0.05, duration_s: 0.1, fault: {fault}, target: one}}]}}
"""


@pytest.fixture(autouse=True)
def _stood_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocesses, "_ENTRY", (sys.executable, str(STAND_IN)))


def night(folder: Path, *specs: tuple[str, str], lasts: float = 0.3, **settings: Any) -> Path:
    """Its file. ``specs``: name and fault of each."""
    for name, fault in specs:
        (folder / f"{name}.yaml").write_text(SPEC.format(name=name, fault=fault, lasts=lasts))
    said = {"name": "n", "keep_free_mb": 0, "repeat": 1, "shrink": {"runs": 0}, **settings}
    runs = [{"spec": f"{name}.yaml"} for name, _ in specs]
    path = folder / "night.yaml"
    path.write_text(repr({**said, "runs": runs}).replace("True", "true").replace("False", "false"))
    return path


def driver(folder: Path, file: Path, said: list[str]) -> NightDriver:
    here = folder / "here"
    if not here.exists():
        one = load_night(file)
        begin(here, one, cases(one, file))
    return NightDriver(here, Journal(here), master="local[1]", say=said.append)


def test_a_night_from_its_first_run_to_its_summary(tmp_path: Path) -> None:
    file = night(tmp_path, ("good", "kill"), ("bad", "pause"), ("breaks", "kill"), ("unjudged", "kill"))
    asked = [str(file), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(suite_command, asked, standalone_mode=False)
    assert done.return_value == 1, done.output
    [here] = (tmp_path / "results" / "nights").iterdir()
    state = read(here)
    assert {name: one.verdict for name, one in state.results.items()} == {
        "good": Verdict.PASS,
        "bad": Verdict.VIOLATION,
        "bad~repeat-1": Verdict.VIOLATION,
        "bad~twin": Verdict.PASS,
        "breaks": Verdict.INFRASTRUCTURE,
        "unjudged": Verdict.INFRASTRUCTURE,
    }
    assert state.over
    assert state.results["breaks"].headline == "no host could be made"
    assert state.results["unjudged"].headline == "it could not be judged: its history is torn"
    summary = (here / "summary.markdown").read_text()
    assert summary.startswith("## n: 1 violation in 4 of 4 runs")
    assert "| bad | **violation** (new) | 1 faults; again in 1 of 1; its twin: pass |" in summary

    suites = ElementTree.parse(here / "junit.xml").getroot()
    assert {one.get("name"): (one.get("failures"), one.get("errors")) for one in suites} == {
        "good": ("0", "0"),
        "bad": ("1", "0"),
        "breaks": ("0", "1"),
        "unjudged": ("0", "1"),
    }

    listed = CliRunner().invoke(suite_command, [*asked, "--list"], standalone_mode=False).output
    assert [line.split()[0] for line in listed.splitlines()] == ["bad", "breaks", "unjudged", "good"]


@pytest.mark.parametrize(
    ("fault", "word", "code"),
    [("pause", "as expected: violation", 0), ("kill", "not as expected: pass", 1)],
)
def test_a_canary_is_good_where_it_is_a_violation(tmp_path: Path, fault: str, word: str, code: int) -> None:
    """Nothing follows from it, and it comes no earlier the next night."""
    file = night(tmp_path, ("canary", fault), ("good", "kill"))
    with (tmp_path / "canary.yaml").open("a") as spec:
        spec.write("contract: {verdict: violation}\n")
    asked = [str(file), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(suite_command, asked, standalone_mode=False)
    assert done.return_value == code, done.output
    [here] = (tmp_path / "results" / "nights").iterdir()
    assert set(read(here).results) == {"canary", "good"}
    assert re.search(rf"^canary +{word}", done.output, re.MULTILINE), done.output
    assert re.search(rf"^{word} +canary  1 faults$", done.output, re.MULTILINE), done.output
    summary = (here / "summary.markdown").read_text()
    assert summary.startswith("## n: 0 violations in 2 of 2 runs")
    assert f"| canary | {'**' * code}{word}{'**' * code} | 1 faults |" in summary
    suites = {one.get("name"): one.get("failures") for one in ElementTree.parse(here / "junit.xml").getroot()}
    assert suites == {"canary": str(code), "good": "0"}
    assert before([here])["canary"].failed is bool(code)


def test_as_many_runs_at_a_time_as_there_are_slots(tmp_path: Path) -> None:
    file = night(tmp_path, *[(f"r{number}", "kill") for number in range(4)], lasts=3.0, slots=2)
    said: list[str] = []
    one = driver(tmp_path, file, said)
    most = 0
    step = one._step

    def counted() -> bool:
        nonlocal most
        left = step()
        most = max(most, len(one._running))
        return left

    one._step = counted  # type: ignore[method-assign]
    shown: list[tuple[str, str]] = []
    one.status = lambda line, *, of="": shown.append((of, line))
    one.drive()
    assert most == 2
    for of, line in shown:
        assert [part.partition(": ")[0] for part in line.split("; ")] == of.split()
    assert any(len(of.split()) == 2 and line.count(": run ") == 2 for of, line in shown), shown
    assert len(one.state.results) == 4


def once(path: Path, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not (path.exists() and holds()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_interrupted_night_goes_on_and_makes_only_the_run_that_was_under_way_again(tmp_path: Path) -> None:
    file = night(tmp_path, ("r1", "kill"), ("r2", "kill"), ("r3", "kill"), lasts=2.0)
    one = driver(tmp_path, file, [])
    began = tmp_path / "here" / "began"

    def stop() -> None:
        once(began, lambda: "r2" in began.read_text())
        one.stopping = "stopped by SIGINT"

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(Stopped, match="stopped by SIGINT") as end:
        one.drive()
    thread.join()
    assert not end.value.over
    assert "healed, and removed" in (tmp_path / "here" / "logs" / "r2.log").read_text()
    again = driver(tmp_path, file, [])
    again.drive()
    assert {one.verdict for one in again.state.results.values()} == {Verdict.PASS}
    assert began.read_text().split() == ["r1", "r2", "r2", "r3"]


def test_a_night_that_was_killed_takes_its_run_with_it_and_goes_on(tmp_path: Path) -> None:
    file = night(tmp_path, ("r1", "kill"), ("r2", "kill"), lasts=1.5)
    driver(tmp_path, file, [])
    code = (
        "import sys; from pathlib import Path\n"
        "from wrackline.harness.nights import subprocesses\n"
        "from wrackline.harness.nights.journal import Journal\n"
        "from wrackline.harness.nights.night import NightDriver\n"
        f"subprocesses._ENTRY = (sys.executable, {str(STAND_IN)!r})\n"
        f"here = Path({str(tmp_path / 'here')!r})\n"
        "NightDriver(here, Journal(here), master='local[1]', say=print).drive()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    began = tmp_path / "here" / "began"
    once(began, lambda: "r2" in began.read_text())
    process.kill()
    process.wait()
    log = tmp_path / "here" / "logs" / "r2.log"
    once(log, lambda: "healed, and removed" in log.read_text())
    again = driver(tmp_path, file, [])
    again.drive()
    assert began.read_text().split() == ["r1", "r2", "r2"]
    assert set(again.state.results) == {"r1", "r2"}


def test_a_night_is_made_by_one_process(tmp_path: Path) -> None:
    file = night(tmp_path, ("r1", "kill"))
    here = tmp_path / "results" / "nights" / "n-20261123T020000Z"
    begin(here, load_night(file), cases(load_night(file), file))
    other = Journal(here)
    assert other.claim()
    asked = [str(file), "--results", str(tmp_path / "results")]
    refused = CliRunner().invoke(suite_command, asked, standalone_mode=False)
    assert isinstance(refused.exception, WrongInput), refused.output
    assert "another process is at work on this night" in refused.exception.message
    assert not read(here).results
    other.close()
    assert CliRunner().invoke(suite_command, asked, standalone_mode=False).return_value == 0


def test_no_run_begins_on_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = night(tmp_path, ("r1", "kill"), ("r2", "kill"), keep_free_mb=1000)
    one = driver(tmp_path, file, [])
    free = iter([2000 << 20, 900 << 20])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
    with pytest.raises(DiskFull, match="900 MB are free, and keep_free_mb is 1000") as end:
        one.drive()
    assert not end.value.over
    assert set(one.state.results) == {"r1"}, "what was made is judged"


def test_when_its_time_is_spent_a_night_is_over(tmp_path: Path) -> None:
    file = night(tmp_path, ("r1", "kill"), ("r2", "kill"), lasts=1.5, budget=1.0)
    one = driver(tmp_path, file, [])
    with pytest.raises(Stopped, match="its time is spent") as end:
        one.drive()
    assert end.value.over
    assert set(one.state.results) == {"r1"}


def test_ctrl_c_ends_the_command_in_good_order(tmp_path: Path) -> None:
    file = night(tmp_path, ("r1", "kill"), lasts=20)
    results = tmp_path / "results"

    def interrupt() -> None:
        deadline = time.monotonic() + 30
        while not list(results.glob("nights/*/began")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = CliRunner().invoke(suite_command, [str(file), "--results", str(results)], standalone_mode=False)
    thread.join()
    assert done.return_value == 130, done.output
    assert "stopped by SIGINT: 0 of 1 runs" in done.output
    assert "the same command goes on" in done.output
    [journal] = results.glob(f"nights/*/{JOURNAL}")
    assert not read(journal.parent).over
