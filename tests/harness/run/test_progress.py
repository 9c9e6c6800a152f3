"""What is shown while a run goes on: one line about what it is at, how far, and what was counted."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.harness.doubles import Stage
from wrackline.harness.run.live import progress as module
from wrackline.harness.run.live.progress import Progress
from wrackline.harness.run.live.watch import Watch
from wrackline.history.model import CONTROL, DIED, NEMESIS, Event, Type
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.workloads.log.tally import Counts


class Said(Progress):
    def __init__(self) -> None:
        super().__init__(Console(file=io.StringIO()))
        self.lines: list[str] = []

    def status(self, line: str, *, of: str = "") -> None:
        del of
        self.lines.append(line)


class Recorded:
    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def tell(self, process: int, f: str, **extra: Any) -> None:
        for listener in self.listeners:
            listener(Event(process, Type.INFO, f, extra=extra))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def fault(recorded: Recorded, fault_id: str, phase: str, f: str = "kill", host: str = "n1") -> None:
    recorded.tell(NEMESIS, f, id=fault_id, phase=phase, targets=[host])


def test_the_line_of_the_main_phase_says_how_far_it_is(clock: list[float]) -> None:
    recorded, said = Recorded(), Said()
    schedule = [
        {"at_s": at, "duration_s": 2, "fault": "kill", "target": "n1"} for at in (5, 40, 80, 100, 120)
    ]
    watch = Watch(recorded, said, plan(load({"schedule": schedule}), 1, 180))  # type: ignore[arg-type]
    watch.begin("setup")
    assert said.lines[-1] == "setting up"
    counts = Counts(20_000, {}, 12, 3, 19_000, 12_034, 65_002)
    watch.workload = SimpleNamespace(counts=lambda: counts)  # type: ignore[assignment]
    watch.begin("main")
    for number in (1, 2):
        for phase in ("begin", "active", "undo", "ended"):
            fault(recorded, f"f{number}", phase)
    fault(recorded, "f3", "begin")
    fault(recorded, "f3", "active", host="n2")
    fault(recorded, "d1", "ended", DIED)
    clock[0] += 47
    watch.show()
    assert said.lines[-1] == (
        "main phase: 47 of 180 s, 3 of 5 faults, 12,034 acknowledged, 65,002 read, 426 operations a second, "
        "12 failed, 3 of unknown outcome (info); in force: kill n2"
    )
    fault(recorded, "f3", "undo")
    fault(recorded, "h1", "begin", "pause")
    clock[0] += 150
    watch.show()
    assert "main phase: 197 s, 180 were planned, 3 of 5 faults, 1 begun by hand, " in said.lines[-1]
    assert "in force" not in said.lines[-1]


def test_faults_of_a_guided_schedule_count_once_it_is_known(clock: list[float]) -> None:
    recorded, said = Recorded(), Said()
    watch = Watch(recorded, said, plan(load({}), 1, 12))  # type: ignore[arg-type]
    watch.workload = SimpleNamespace(counts=lambda: Counts(0, {}, 0, 0, 0, 0, 0))  # type: ignore[assignment]
    watch.begin("main")
    assert "faults" not in said.lines[-1]
    recorded.tell(CONTROL, "planned", schedule="x", faults={"g1": "kill", "g2": "partition"})
    fault(recorded, "g1", "active")
    clock[0] += 1
    watch.show()
    assert "1 of 12 s, 1 of 2 faults, " in said.lines[-1]


def test_a_file_gets_a_line_every_twelve_seconds_and_one_when_something_else_begins(
    clock: list[float],
) -> None:
    screen = io.StringIO()
    with Progress(Console(file=screen, width=200)) as progress:
        for second in range(31):
            progress.status(f"main {second}", of="main")
            clock[0] += 1
        progress.status("heal 0", of="heal")
        progress.status("heal 1", of="heal")
    assert screen.getvalue().splitlines() == ["main 0", "main 12", "main 24", "heal 0"]


def test_a_terminal_gets_one_line_redrawn() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=100, force_terminal=True, legacy_windows=False)
    with Progress(console) as progress:
        for second in range(5):
            progress.status(f"main {second}")
            progress.console.control()
    assert screen.getvalue().count("\n") <= 1
    assert module.PLAIN_EVERY_S == 12.0


def test_a_run_says_every_phase(stage: Stage) -> None:
    stage.run()
    said = stage.screen.getvalue()
    for words in (
        "warming up: ",
        "main phase: 0 of 1 s, ",
        "healing",
        "reading back",
        "fetching logs",
        "removing",
    ):
        assert words in said
