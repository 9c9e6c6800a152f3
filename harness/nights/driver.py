"""Runs made one after another or side by side, and judged between; stopped and gone on with in good order.

FOLDER/journal.jsonl  what was done
FOLDER/specs/         the specification of every run, complete
FOLDER/runs/          the runs
FOLDER/logs/          what each run said
"""

from __future__ import annotations

import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.journal import Did, Journal, State
from wrackline.harness.nights.queue import Task
from wrackline.harness.nights.subprocesses import Child
from wrackline.harness.records import Record, record
from wrackline.harness.report.read.files import replace_file
from wrackline.harness.run.judge import read_verdict
from wrackline.history.store.folder import PARQUET, WAL

PATIENCE_S = 300.0
"""How long runs may take to end in good order, once they are asked to."""
TOGETHER = 4
"""So many runs are judged in one session of Spark, as long as there are others to make."""
_LOOK_S = 0.2
_SHOW_S = 1.0
_RUN_ID = re.compile(r"^run (\S+) ", re.MULTILINE)
Say = Callable[[str], None]


class Status(Protocol):
    """The progress of what is under way, in a line that changes; ``of``: what it is about."""

    def __call__(self, line: str, *, of: str = "") -> None: ...


def silent(line: str, *, of: str = "") -> None:
    pass


class Stopped(Exception):
    """The night ends before all is done. One line: why."""

    def __init__(self, why: str, *, over: bool = False) -> None:
        """``over``: it does not go on another time."""
        super().__init__(why)
        self.over = over


class DiskFull(Stopped):
    """There is no room for another run."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of whoever makes runs."""

    budget_s: float
    slots: int = 1
    keep_free_mb: int = 2048


class Driver(ABC):
    """Makes runs, as many at a time as there are slots, and has them judged between."""

    def __init__(self, folder: Path, journal: Journal, limits: Limits, *, master: str, say: Say) -> None:
        self.folder = folder
        self.stopping = ""
        """Why it shall stop in good order; empty while it shall not."""
        self.journal = journal
        self._limits = limits
        self._master = master
        self._say = say
        self.status: Status = silent
        """What is told once a second how far the runs under way are."""
        self._shown_at = 0.0
        self._running: dict[str, Child] = {}

    @abstractmethod
    def agenda(self) -> Iterable[Task]:
        """All that can be begun now, most wanted first, with what is under way."""

    @abstractmethod
    def account(self) -> str:
        """Returns the progress in a few words."""

    @property
    def state(self) -> State:
        return self.journal.state

    def drive(self) -> None:
        """Makes runs until nothing is left to do. Raises Stopped when it ends before; OSError for a full
        disk."""
        try:
            while self._step():
                self._show(self._running)
                time.sleep(_LOOK_S)
        except Stopped as end:
            self.journal.write(Did.CLOSED, why=str(end), over=end.over)
            raise
        finally:
            for child in self._running.values():
                child.kill()
        self.journal.write(Did.CLOSED, why="", over=True)

    def _show(self, running: Mapping[str, Child]) -> None:
        """Shows the last line of each run."""
        if running and time.monotonic() - self._shown_at >= _SHOW_S:
            self._shown_at = time.monotonic()
            said = [f"{name}: {child.last_line()}" for name, child in running.items()]
            self.status("; ".join(said), of=" ".join(running))

    # --- one look -----------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """False when nothing is left to do. What comes next is asked for only where a run could begin: to
        find out may take a look at the runs before."""
        for name in [name for name, child in self._running.items() if child.ended]:
            self._made(name, self._running.pop(name))
        if self.stopping:
            self._stop(self.stopping)
        waiting = len(self.state.made)
        room = len(self._running) < self._limits.slots
        expected = [task for task in self.agenda() if task.name not in self._running] if room else []
        if waiting and not self._running and (waiting >= TOGETHER or not expected):
            self._judge()
        elif expected and waiting < TOGETHER:
            if (end := self._end()) is None:
                self._begin(expected[0])
            elif not self._running:
                self._judge()
                raise end
        return bool(expected or waiting or self._running)

    def _end(self) -> Stopped | None:
        """Returns why no run may begin any more; None when one may."""
        if self.journal.spent_s > self._limits.budget_s:
            return Stopped("its time is spent", over=True)
        free_mb = shutil.disk_usage(self.folder).free >> 20
        if free_mb < self._limits.keep_free_mb:
            return DiskFull(f"{free_mb} MB are free, and keep_free_mb is {self._limits.keep_free_mb}")
        return None

    def _begin(self, task: Task) -> None:
        replace_file(self.folder / "specs" / f"{task.name}.yaml", task.text.encode())
        self.journal.write(Did.BEGAN, task=task.name)
        log = self.folder / "logs" / f"{task.name}.log"
        log.unlink(missing_ok=True)  # of a try that was killed
        self._running[task.name] = Child.start(self._arguments(task.name), log, code=task.code)
        self._say(f"{self.account()}; begins {task.name}")

    def _arguments(self, name: str) -> Sequence[str | Path]:
        """Returns the command that makes a run."""
        spec = self.folder / "specs" / f"{name}.yaml"
        return ("run", spec, "--results", self.folder / "runs", "--no-analysis")

    def _made(self, name: str, child: Child) -> None:
        """A run that was interrupted counts as not made: it is made again another time."""
        said = child.log.read_text(errors="replace")
        match = _RUN_ID.search(said)
        run = match[1] if match else ""
        seconds = round(child.seconds, 1)
        if self.stopping:
            return
        if run and any((self.folder / "runs" / run / file).exists() for file in (PARQUET, WAL)):
            self.journal.write(Did.MADE, task=name, run=run, seconds=seconds)
        else:
            self._judged(name, run, Verdict.INFRASTRUCTURE, child.last_line(), ())

    def _judged(
        self,
        task: str,
        run: str,
        verdict: Verdict,
        headline: str,
        found: Sequence[str],
        *,
        one: Record | None = None,
    ) -> None:
        self.journal.write(
            Did.JUDGED,
            task=task,
            run=run,
            verdict=verdict,
            headline=headline,
            anomalies=list(found),
            good=one.good if one else None,
        )
        self._say(f"{one.word if one else verdict.value:<14} {task}  {headline}")

    def _judge(self) -> None:
        """All that wait, in one session of Spark; one that cannot be judged does not hold up the others."""
        waiting = dict(self.state.made)
        if not waiting:
            return
        self._analyze([run for run, _ in waiting.values()])
        for task, (run, _) in waiting.items():
            verdict = read_verdict(self.folder / "runs" / run)
            if verdict is None:
                last = self._analyze([run])
                verdict = read_verdict(self.folder / "runs" / run)
            if verdict is None:
                self._judged(task, run, Verdict.INFRASTRUCTURE, f"it could not be judged: {last}", ())
                continue
            self._take(task, run, verdict)

    def _take(self, task: str, run: str, verdict: Mapping[str, Any]) -> None:
        """Notes what the verdict of a run says."""
        forbidden = [
            one["anomaly"]
            for one in verdict["anomalies"]
            if one["count"] and one["meaning"] == Verdict.VIOLATION
        ]
        self._judged(
            task,
            run,
            Verdict(verdict["verdict"]),
            str(verdict["headline"]),
            forbidden,
            one=record(self.folder / "runs" / run),
        )

    def _analyze(self, runs: Sequence[str]) -> str:
        """Analyzes the runs and returns the last line of the analysis. Raises Stopped when it is
        interrupted."""
        self._say(f"{self.account()}; judging {len(runs)}")
        folders = [self.folder / "runs" / run for run in runs]
        child = Child.start(
            ("analyze", *folders, "--engine", "spark", "--master", self._master),
            self.folder / "logs" / "judge.log",
        )
        try:
            while not child.ended:
                if self.stopping:
                    raise Stopped(self.stopping)
                self._show({"judge": child})
                time.sleep(_LOOK_S)
        finally:
            child.kill()
        return child.last_line()

    def _stop(self, why: str) -> None:
        """Runs under way heal their clusters and remove their hosts. Raises Stopped."""
        for child in self._running.values():
            child.interrupt()
        deadline = time.monotonic() + PATIENCE_S
        while any(not child.ended for child in self._running.values()) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        for name, child in self._running.items():
            self._made(name, child)
        raise Stopped(why)

    @property
    def spent(self) -> str:
        """``5 min of 8.0 h``."""
        return f"{_long(self.journal.spent_s)} of {_long(self._limits.budget_s)}"


def _long(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
