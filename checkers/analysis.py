"""The way from run directories to verdicts: one pass over the histories, for any number of runs.

``findings.parquet``, ``verdict.json``, ``metrics.json`` and ``explanations.json`` appear in each run's
directory. With a contract forced on the runs ``verdict.<contract>.json`` is written instead of the second:
what a run's own contract says stays where it was. A history that lies elsewhere is not read again for
explanations: whoever has it here calls ``wrackline.checkers.explain.step.explain``.

Spark carries out the plan, or this process does for one small run (wrackline.checkers.engine.executor). What
they find is the same.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from pathlib import Path
from typing import Any

import orjson

from wrackline.checkers.checks.registry import anomalies, checks, not_looked_for
from wrackline.checkers.checks.tasks import ORDER
from wrackline.checkers.engine.executor import LOCAL_BYTES, LOCAL_FACTS, Executor, LocalExecutor, TooLarge
from wrackline.checkers.engine.spark.failures import (
    cause,
    failures,
    is_of_interrupt,
    is_of_task,
    module_lacking,
)
from wrackline.checkers.engine.spark.session import NO_PROPERTIES, JavaMissing, session
from wrackline.checkers.explain.step import write as write_explanations
from wrackline.checkers.gather import FINDINGS_FILE, gather
from wrackline.checkers.inputs.broken import JudgeBroken, part_of_the_judge, told_by_a_worker
from wrackline.checkers.inputs.runs import NO_HISTORY, AnalysisError, Run, open_run
from wrackline.checkers.plan import find, judge, scan_all
from wrackline.checkers.verdict.contracts import contract_for, named
from wrackline.checkers.verdict.incidents.incidents import NONE_FOUND, incidents_of
from wrackline.checkers.verdict.measures.load import loads
from wrackline.checkers.verdict.measures.metrics import Figures, metrics
from wrackline.checkers.verdict.seal import sealed
from wrackline.checkers.verdict.verdict import Found, rules_of, verdict
from wrackline.history.store.addresses import is_elsewhere, remove
from wrackline.history.store.folder import whole_file

VERDICT_FILE = "verdict.json"
METRICS_FILE = "metrics.json"
BRIEF_FACTS = 100_000_000
"""Below so many records and events the JVM's optimising compiler costs more than it saves."""
SCANNED_HERE = 500_000
"""With fewer events and records than this, runs are surveyed in this process."""


class Engine(StrEnum):
    """The engine that carries out an analysis."""

    AUTO = "auto"
    """This process for one small run on this machine, and where there is no Java; Spark for all else."""
    SPARK = "spark"
    LOCAL = "local"


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The addresses that an analysis reads and keeps outside the runs' directories."""

    histories: Mapping[Path, str] = field(default_factory=dict)
    """Run's directory, resolved -> the address of its history, where that is not in the directory."""
    scratch: str = ""
    """The address of a folder that is there for the analysis alone. Empty: beside the first run."""


NOTHING_ELSEWHERE = Elsewhere()


@dataclass(frozen=True, slots=True)
class _Request:
    """The request for an analysis: how it is to be carried out."""

    engine: Engine
    master: str
    properties: Mapping[str, str]
    elsewhere: Elsewhere
    progress: Callable[[str], None]
    status: Callable[[str], None]
    wrong: Callable[[AnalysisError | str], None]
    """Is told what cannot be judged."""


def analyze(
    run_dirs: Sequence[Path],
    *,
    contract: str | None = None,
    engine: str = Engine.AUTO,
    master: str = "local[*]",
    properties: Mapping[str, str] = NO_PROPERTIES,
    elsewhere: Elsewhere = NOTHING_ELSEWHERE,
    progress: Callable[[str], None] = _silent,
    status: Callable[[str], None] = _silent,
) -> list[dict[str, Any]]:
    """Judge runs; returns their verdicts, in order, as written to their directories. ``engine``: an
    ``Engine``. ``properties``: Spark's own, which go before ours. ``progress`` is told what has come about,
    ``status`` once a second what Spark is at and how far.

    Where a run cannot be read the others are still judged. AnalysisError is raised at the end, for the first
    of these, with the verdicts of the others in ``judged``; further ones are told to ``progress``, so that
    each is told once. Raises JudgeBroken where a check, or another step, is broken; UnknownContract,
    JavaMissing and SparkUnavailable before anything is judged."""
    if contract is not None:
        named(contract)
    problems: list[str] = []

    def wrong(what: AnalysisError | str) -> None:
        problems.append(str(what))
        if len(problems) > 1:
            progress(str(what))

    runs = _opened(run_dirs, elsewhere, wrong, progress)
    judged: dict[Path, _Outcome] = {}
    request = _Request(Engine(engine), master, properties, elsewhere, progress, status, wrong)
    if any(run.files for run in runs):
        runs, judged = _carried_out(runs, request)
    else:
        runs = _scanned(None, runs, wrong)
    verdicts: dict[Path, dict[str, Any]] = {}
    broken_steps: list[JudgeBroken] = []
    nothing = _Outcome(Found(), Figures(), {"name": "", "seconds": 0.0})
    for run in runs:
        outcome = judged.get(run.directory, nothing)
        if outcome.problem:
            wrong(outcome.problem)
        else:
            try:
                verdicts[run.directory] = _write(run, contract, outcome)
            except JudgeBroken as step:
                broken_steps.append(JudgeBroken(f"{run.directory}: {step}"))
    if broken_steps:
        raise broken_steps[0]
    if problems:
        more = len(problems) - 1
        besides = f" (and {more} more of {len(run_dirs)} runs cannot be judged, see above)" if more else ""
        error = AnalysisError(problems[0] + besides)
        error.judged = verdicts
        raise error
    return [verdicts[Path(one).resolve()] for one in run_dirs]


def _carried_out(runs: list[Run], request: _Request) -> tuple[list[Run], dict[Path, _Outcome]]:
    """The runs that can be read, and what is found in them, by the engine that is asked for."""
    is_scanned = sum(run.facts for run in runs) < SCANNED_HERE
    if is_scanned:
        runs = _scanned(None, runs, request.wrong)
    if request.engine is Engine.LOCAL or (request.engine is Engine.AUTO and _is_small(runs, request)):
        try:
            return _here(runs, request, LOCAL_BYTES if _is_brief(runs) else sys.maxsize, is_scanned)
        except TooLarge:
            if request.engine is Engine.LOCAL:
                raise AnalysisError(
                    f"{_runs(runs)}: more memory than this process may take; judge without --engine local"
                ) from None
            request.progress("this needs more memory than one process may take: Spark judges it")
    try:
        return _by_spark(runs, request, is_scanned)
    except JavaMissing as missing:
        if request.engine is Engine.SPARK or not request.master.startswith("local"):
            raise
        request.progress(f"{missing}; until then this process judges, which takes longer where there is much")
        try:
            return _here(runs, request, sys.maxsize, is_scanned)
        except TooLarge:
            raise AnalysisError(f"{_runs(runs)}: more memory than this process gets; {missing}") from None


def _is_small(runs: Sequence[Run], request: _Request) -> bool:
    """One run on this machine with few events."""
    here = request.master.startswith("local") and not any(is_elsewhere(f) for run in runs for f in run.files)
    return here and len(runs) == 1 and _is_brief(runs)


def _is_brief(runs: Sequence[Run]) -> bool:
    return sum(run.facts for run in runs) <= LOCAL_FACTS


def _here(
    runs: list[Run], request: _Request, limit: int, is_scanned: bool
) -> tuple[list[Run], dict[Path, _Outcome]]:
    """Raises TooLarge."""
    runs = runs if is_scanned else _scanned(None, runs, request.wrong)
    executor = LocalExecutor(limit)
    request.progress(f"judging {_runs(runs)} in this process")
    with executor.followed(request.status) as at:
        return runs, _judge(executor, [run for run in runs if run.files], _Job("", request.progress, at))


def _by_spark(runs: list[Run], request: _Request, is_scanned: bool) -> tuple[list[Run], dict[Path, _Outcome]]:
    facts = sum(run.facts for run in runs)
    request.progress(f"starting Spark ({request.master}) for {sum(bool(run.files) for run in runs)} runs")
    with (
        session(
            request.master,
            brief=facts < BRIEF_FACTS,
            addresses=request.elsewhere.histories.values(),
            properties=request.properties,
            progress=request.progress,
        ) as spark,
        _scratch(request.elsewhere, runs) as scratch,
    ):
        from wrackline.checkers.engine.spark.executor import SparkExecutor  # late: it imports Spark

        if not request.master.startswith("local"):
            spark.sparkContext.setCheckpointDir(scratch)
        executor = SparkExecutor(spark)
        if not is_scanned:
            runs = _scanned(executor, runs, request.wrong)
        with executor.followed(request.status) as at:
            return runs, _judge(
                executor,
                [run for run in runs if run.files],
                _Job("" if facts < SCANNED_HERE else scratch, request.progress, at),
            )


@dataclass(frozen=True, slots=True)
class _Job:
    """The settings that all the halves of an analysis share."""

    scratch: str
    progress: Callable[[str], None] = _silent
    at: Callable[[str], None] = _silent
    """Is told what comes next."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    found: Found
    figures: Figures
    engine: dict[str, Any]
    problem: str = ""


@contextlib.contextmanager
def _scratch(elsewhere: Elsewhere, runs: Sequence[Run]) -> Iterator[str]:
    """A folder that all executors see, gone at the end. Raises OSError."""
    scratch = elsewhere.scratch or tempfile.mkdtemp(prefix=".analysis-", dir=runs[0].directory.parent)
    try:
        yield scratch
    finally:
        remove(scratch)


def _opened(
    run_dirs: Sequence[Path],
    elsewhere: Elsewhere,
    wrong: Callable[[AnalysisError], None],
    progress: Callable[[str], None],
) -> list[Run]:
    runs: dict[str, Run] = {}
    for directory in dict.fromkeys(Path(one).resolve() for one in run_dirs):
        progress(f"reading {directory.name}")
        try:
            run = open_run(directory, history=elsewhere.histories.get(directory, ""))
            twin = runs.setdefault(run.info.test_id, run)
            if twin is not run:
                raise AnalysisError(
                    f"{directory}: same test id as {twin.directory} ({run.info.test_id}); judge one at a time"
                )
        except AnalysisError as problem:
            wrong(problem)
    return list(runs.values())


def _scanned(
    executor: Executor | None, runs: Sequence[Run], wrong: Callable[[AnalysisError], None]
) -> list[Run]:
    result = []
    for run, problem in scan_all(executor, runs):
        if problem is None:
            result.append(run)
        else:
            wrong(problem)
    return result


def _judge(executor: Executor, runs: Sequence[Run], job: _Job) -> dict[Path, _Outcome]:
    """All of them in one go. Where something in one of them breaks that, by halves: so the others are judged,
    and it is known which it is. Raises AnalysisError where it is Spark that breaks, whatever it is given."""
    try:
        return _judged(executor, runs, job)
    except JudgeBroken as error:
        raise JudgeBroken(_of_check(str(error))) from error
    except AnalysisError:
        raise
    except NO_HISTORY as error:
        why = str(error) or type(error).__name__
    except MemoryError as error:
        if not isinstance(executor, LocalExecutor):
            raise
        raise TooLarge from error
    except failures() as error:
        why = _of_spark(error, runs)
    if len(runs) == 1:
        said = f"{runs[0].directory}: {_no_sense(why)}"
        return {runs[0].directory: _Outcome(Found(), Figures(), {}, said)}
    job.progress(f"one of {len(runs)} histories cannot be judged: the others are judged without it")
    half = len(runs) // 2
    return _judge(executor, runs[:half], job) | _judge(executor, runs[half:], job)


def _of_spark(wrong: BaseException, runs: Sequence[Run]) -> str:
    """Returns the reason why a history makes no sense, by what one of Spark's tasks raised. Raises
    JudgeBroken and AnalysisError for all else."""
    if is_of_interrupt(wrong):
        raise KeyboardInterrupt from wrong
    if said := told_by_a_worker(str(wrong)):
        raise JudgeBroken(_of_check(said)) from wrong
    if module := module_lacking(wrong):
        raise AnalysisError(
            f"a worker of Spark has no Python module {module}: install there what docs/spark.md names"
        ) from wrong
    if not is_of_task(wrong):
        which = ", ".join(run.directory.name for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
        raise AnalysisError(f"Spark failed on {which}: {cause(wrong)}") from wrong
    return cause(wrong)


def _of_check(said: str) -> str:
    """``mark lost (...) is broken`` with the checks that want its rows."""
    name = said.removeprefix("mark ").partition(" (")[0]
    wanting = [one.name for one in checks() if name in one.marks]
    return f"check {', '.join(wanting)}: {said}" if wanting else said


def _no_sense(why: object) -> str:
    """A page whose checksum is wrong may be met only when its column is read."""
    if isinstance(why, OSError) or str(why).startswith("OSError"):
        return f"its history is corrupt or truncated ({why}); restore it from a copy or run the test again"
    return f"its history makes no sense ({why}); restore it from a copy or run the test again"


def _judged(executor: Executor, runs: Sequence[Run], job: _Job) -> dict[Path, _Outcome]:
    began = time.monotonic()
    job.progress(f"looking for {len(checks())} anomalies in {sum(run.rows for run in runs):,} events")
    if missing := not_looked_for():
        job.progress(f"not looked for: {', '.join(missing)}")
    job.at(f"{_runs(runs)}: reading and judging")
    work = judge(executor, runs)
    job.at(f"{_runs(runs)}: explaining what was found")
    rows = find(work)
    parts = repeat(()) if rows is None else rows.by_run(len(runs), ORDER, job.scratch)
    result = [gather(part, run) for part, run in zip(parts, runs, strict=False)]
    engine = {"name": executor.name, "seconds": round(time.monotonic() - began, 3)}
    for number, one in enumerate(result):
        one.unproven_read, one.unproven_unseen = work.unproven.get(number, (0, 0))
    return {
        run.directory: _Outcome(result[number], work.figures[number], engine, work.problems.get(number, ""))
        for number, run in enumerate(runs)
    }


def _runs(runs: Sequence[Run]) -> str:
    events = f"{sum(run.rows for run in runs):,} events"
    return f"{runs[0].directory.name}, {events}" if len(runs) == 1 else f"{len(runs)} runs, {events}"


def _write(run: Run, contract: str | None, outcome: _Outcome) -> dict[str, Any]:
    with part_of_the_judge("the contract"):
        terms = contract_for(run, anomalies(), contract)
    incidents = NONE_FOUND
    if any(map(outcome.found.total, outcome.found.counts)):
        with part_of_the_judge("the incidents"):
            incidents = incidents_of(run, run.directory / FINDINGS_FILE, anomalies(), rules_of(terms))
    with part_of_the_judge("the verdict"):
        result = verdict(terms, outcome.found, outcome.figures, outcome.engine, incidents, not_looked_for())
    with part_of_the_judge("the metrics"):
        counted = {**metrics(run, outcome.figures), "load": loads(run, outcome.figures)}
    result = sealed(run.directory, result)
    if contract is None:
        _write_json(run.directory / VERDICT_FILE, result)
    else:
        _write_json(run.directory / f"verdict.{contract}.json", result)
    _write_json(run.directory / METRICS_FILE, counted)
    if not any(map(is_elsewhere, run.files)):
        files = [Path(file) for file in run.files]
        with part_of_the_judge("the explanations"):
            write_explanations(run.directory, run.info.system, lambda: files, result, counted)
    return result


def _write_json(path: Path, content: Any) -> None:
    with whole_file(path) as part:
        part.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
