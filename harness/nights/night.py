"""A night under way: its folder, its journal, and the runs that it makes and has judged.

NIGHT/night.json      the file, whole, and the runs that it wants, in their order
NIGHT/journal.jsonl   what was done
NIGHT/specs/          the specification of every run, complete
NIGHT/runs/           the runs
NIGHT/logs/           what each run said
NIGHT/smallest/       violations made smaller
NIGHT/summary.md, junit.xml
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import yaml

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.agenda import Saved, Task, agenda
from wrackline.harness.nights.children import Child
from wrackline.harness.nights.journal import Did, Journal, State
from wrackline.harness.nights.shrinking import Raw
from wrackline.harness.nights.spec import Case, Night
from wrackline.harness.run.judge import read_verdict
from wrackline.harness.run.replay import replay_of
from wrackline.history.files import PARQUET, WAL

NIGHT_JSON = "night.json"
PATIENCE_S = 300.0
"""How long runs may take to end in good order, once they are asked to."""
TOGETHER = 4
"""So many runs are judged in one session of Spark, as long as there are others to make."""
_LOOK_S = 0.2
_RUN_ID = re.compile(r"^run (\S+) ", re.MULTILINE)
Say = Callable[[str], None]


class Stopped(Exception):
    """The night ends before all is done. One line: why."""

    def __init__(self, why: str, *, over: bool = False) -> None:
        """``over``: it does not go on another time."""
        super().__init__(why)
        self.over = over


class DiskFull(Stopped):
    """There is no room for another run."""


def begin(folder: Path, night: Night, cases: Sequence[Case]) -> None:
    """Everything that the night needs to know lies in its folder from now on. Raises OSError."""
    specs = folder / "specs"
    for below in (specs, folder / "runs", folder / "logs"):
        below.mkdir(parents=True)
    for case in cases:
        (specs / f"{case.name}.yaml").write_text(case.spec.to_yaml())
        if case.twin is not None:
            (specs / f"{case.name}~twin.yaml").write_text(case.twin.to_yaml())
    said = {"night": night.model_dump(mode="json"), "cases": [case.name for case in cases]}
    (folder / NIGHT_JSON).write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n")


def saved(folder: Path) -> tuple[Night, list[Saved]]:
    """What `begin` wrote. Raises OSError, and ValueError for what nobody of us wrote."""
    said = orjson.loads((folder / NIGHT_JSON).read_bytes())
    specs = folder / "specs"

    def text(name: str) -> str | None:
        path = specs / f"{name}.yaml"
        return path.read_text() if path.exists() else None

    cases = [Saved(name, text(name) or "", text(f"{name}~twin")) for name in said["cases"]]
    return Night.model_validate(said["night"], strict=False), cases


class Driver:
    """Makes the runs of a night, as many at a time as there are slots, and has them judged between."""

    def __init__(self, folder: Path, journal: Journal, *, master: str, say: Say) -> None:
        self.folder = folder
        self.night, self.cases = saved(folder)
        self.stopping = ""
        """Why the night shall stop in good order; empty while it shall not."""
        self._journal = journal
        self._master = master
        self._say = say
        self._running: dict[str, Child] = {}

    @property
    def state(self) -> State:
        return self._journal.state

    def drive(self) -> None:
        """Until nothing is left to do. Raises Stopped when it ends before; OSError for a full disk."""
        try:
            while not self._over():
                self._step()
                time.sleep(_LOOK_S)
        finally:
            for child in self._running.values():
                child.kill()
        self._journal.write(Did.CLOSED, why="", over=True)

    def replayed(self, run: str) -> Raw:
        """A run's specification, with its faults as a schedule where they were drawn. Raises SpecError."""
        folder = self.folder / "runs" / run
        raw: Raw = yaml.safe_load((folder / "spec.yaml").read_text())
        if (raw.get("nemesis") or {}).get("guided"):
            return raw
        done: Raw = yaml.safe_load(replay_of(folder).text)
        return done

    # --- one look -----------------------------------------------------------------------------------------

    def _over(self) -> bool:
        return not (self._running or self.state.made or self._open())

    def _open(self) -> list[Task]:
        return [
            task
            for task in agenda(self.night, self.cases, self.state, self.replayed)
            if task.name not in self._running
        ]

    def _step(self) -> None:
        for name in [name for name, child in self._running.items() if child.ended]:
            self._made(name, self._running.pop(name))
        if self.stopping:
            self._stop(self.stopping)
        waiting = len(self.state.made)
        wanted = self._open() if len(self._running) < self.night.slots else []
        if waiting and not self._running and (waiting >= TOGETHER or not wanted):
            self._judge()
        elif wanted and waiting < TOGETHER:
            if (end := self._end()) is None:
                self._begin(wanted[0])
            elif not self._running:
                self._judge()
                raise end

    def _end(self) -> Stopped | None:
        """Why no run may begin any more; None when one may."""
        if self._journal.spent_s > self.night.budget:
            return Stopped("its time is spent", over=True)
        free_mb = shutil.disk_usage(self.folder).free >> 20
        if free_mb < self.night.keep_free_mb:
            return DiskFull(f"{free_mb} MB are free, and keep_free_mb is {self.night.keep_free_mb}")
        return None

    def _begin(self, task: Task) -> None:
        spec = self.folder / "specs" / f"{task.name}.yaml"
        if not spec.exists():
            spec.write_text(task.text)
        self._journal.write(Did.BEGAN, task=task.name)
        log = self.folder / "logs" / f"{task.name}.log"
        log.unlink(missing_ok=True)  # of a try that was killed
        asked = ("run", spec, "--results", self.folder / "runs", "--no-analysis")
        self._running[task.name] = Child.start(asked, log)
        self._say(f"{self.account()}; begins {task.name}")

    def _made(self, name: str, child: Child) -> None:
        """A run that was interrupted counts as not made: it is made again another time."""
        said = child.log.read_text(errors="replace")
        found = _RUN_ID.search(said)
        run = found[1] if found else ""
        seconds = round(child.seconds, 1)
        if self.stopping:
            return
        if run and any((self.folder / "runs" / run / file).exists() for file in (PARQUET, WAL)):
            self._journal.write(Did.MADE, task=name, run=run, seconds=seconds)
        else:
            self._judged(name, run, Verdict.INFRASTRUCTURE, child.last_line(), ())

    def _judged(self, task: str, run: str, verdict: Verdict, headline: str, found: Sequence[str]) -> None:
        self._journal.write(
            Did.JUDGED, task=task, run=run, verdict=verdict, headline=headline, anomalies=list(found)
        )
        self._say(f"{verdict.value:<14} {task}  {headline}")

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
            forbidden = [
                one["anomaly"]
                for one in verdict["anomalies"]
                if one["count"] and one["meaning"] == Verdict.VIOLATION
            ]
            self._judged(task, run, Verdict(verdict["verdict"]), str(verdict["headline"]), forbidden)

    def _analyze(self, runs: Sequence[str]) -> str:
        """Its last line. Raises Stopped when it is interrupted."""
        self._say(f"{self.account()}; judging {len(runs)}")
        folders = [self.folder / "runs" / run for run in runs]
        child = Child.start(
            ("analyze", *folders, "--master", self._master), self.folder / "logs" / "judge.log"
        )
        try:
            while not child.ended:
                if self.stopping:
                    raise Stopped(self.stopping)
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
        raise Stopped(why)

    def account(self) -> str:
        """``3 of 12 runs, 1 violation, 5 min of 8 h``."""
        state = self.state
        done = sum(case.name in state.results for case in self.cases)
        bad = sum(state.results[case.name].violates for case in self.cases if case.name in state.results)
        beside = len(state.results) - done
        parts = [f"{done} of {len(self.cases)} runs"]
        if beside:
            parts.append(f"{beside} for violations")
        if bad:
            parts.append(f"{bad} violation{'s' if bad > 1 else ''}")
        parts.append(f"{_long(self._journal.spent_s)} of {_long(self.night.budget)}")
        return ", ".join(parts)


def _long(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
