"""From run directories to verdicts: one Spark session, one pass over the histories, for any number of runs.

``findings.parquet``, ``verdict.json``, ``metrics.json`` and ``explanations.json`` appear in each run's
directory. With a contract forced on the runs ``verdict.<contract>.json`` is written instead of the second:
what a run's own contract says stays where it was. A history that lies elsewhere is not read again for
explanations: whoever has it here calls ``wrackline.checkers.explain.step.explain``.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.compute as pc
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycles import TRANSACTIONS
from wrackline.checkers.anomalies.evidence import finished
from wrackline.checkers.anomalies.group_tables import KINDS, duplicates
from wrackline.checkers.anomalies.registry import (
    Check,
    Evidence,
    Findings,
    anomalies,
    checks,
    names,
    not_looked_for,
)
from wrackline.checkers.anomalies.transaction_tables import ends
from wrackline.checkers.engine.frames import Frame
from wrackline.checkers.engine.spark.following import followed
from wrackline.checkers.engine.spark.session import MEMORY_VARIABLE, NO_PROPERTIES, in_pieces, session
from wrackline.checkers.engine.tables import Tables, few
from wrackline.checkers.explain.step import write as write_explanations
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.gather import FINDINGS_FILE, gather, parts
from wrackline.checkers.inputs.broken import JudgeBroken, broken, part_of_the_judge, told_by_a_worker
from wrackline.checkers.inputs.runs import NO_HISTORY, AnalysisError, Run, open_run
from wrackline.checkers.plan import Judged, judge, survey_all, tasks_of
from wrackline.checkers.verdict.contracts import contract_for, named
from wrackline.checkers.verdict.incidents.incidents import NONE_FOUND, incidents_of
from wrackline.checkers.verdict.load import loads
from wrackline.checkers.verdict.metrics import Figures, metrics
from wrackline.checkers.verdict.seal import sealed
from wrackline.checkers.verdict.verdict import Found, rules_of, verdict
from wrackline.history.addresses import is_elsewhere, remove
from wrackline.history.files import whole_file

VERDICT_FILE = "verdict.json"
METRICS_FILE = "metrics.json"
SORTED_BY = ("rank", "topic", "partition", "offset", "value")
"""A run's findings; ``rank`` is the place of the anomaly among the checks."""
_OUT_OF_ROOM = re.compile("No space left|OutOfMemory|MemoryError|enough memory")
_OF_SPARK = (PySparkException, Py4JError, *NO_HISTORY)
"""What Spark raises, and what of ours may come through it."""
_LACKING = re.compile("ModuleNotFoundError: No module named '([^']+)'")
BRIEF_FACTS = 5_000_000
"""Below so many records and events the JVM's optimising compiler costs more than it saves."""


def _silent(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What an analysis reads and keeps outside the runs' directories."""

    histories: Mapping[Path, str] = field(default_factory=dict)
    """Run's directory, resolved -> the address of its history, where that is not in the directory."""
    scratch: str = ""
    """The address of a folder that is there for the analysis alone. Empty: beside the first run."""


NOTHING_ELSEWHERE = Elsewhere()


def analyze(
    run_dirs: Sequence[Path],
    *,
    contract: str | None = None,
    master: str = "local[*]",
    properties: Mapping[str, str] = NO_PROPERTIES,
    elsewhere: Elsewhere = NOTHING_ELSEWHERE,
    progress: Callable[[str], None] = _silent,
    status: Callable[[str], None] = _silent,
) -> list[dict[str, Any]]:
    """Judge runs; returns their verdicts, in order, as written to their directories. ``properties``: Spark's
    own, which go before ours. ``progress`` is told what has come about, ``status`` once a second what Spark
    is at and how far.

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
    verdicts: dict[Path, dict[str, Any]] = {}
    judged: dict[Path, _Outcome] = {}
    facts = sum(run.facts for run in runs)
    is_local = few(runs)
    if is_local:
        runs = _surveyed(None, runs, wrong)
    if any(run.files for run in runs):
        progress(f"starting Spark ({master}) for {sum(bool(run.files) for run in runs)} runs")
        with (
            session(
                master,
                brief=facts < BRIEF_FACTS,
                addresses=elsewhere.histories.values(),
                properties=properties,
                progress=progress,
            ) as spark,
            _scratch(elsewhere, runs) as scratch,
        ):
            if not master.startswith("local"):
                spark.sparkContext.setCheckpointDir(scratch)
            if not is_local:
                runs = _surveyed(spark, runs, wrong)
            with followed(spark, status) as at:
                judged = _judge(spark, [run for run in runs if run.files], _Job(scratch, progress, at))
    broken_steps: list[JudgeBroken] = []
    nothing = _Outcome(Found(), Figures(), {"spark": "", "seconds": 0.0})
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


@dataclass(frozen=True, slots=True)
class _Job:
    """What all the halves of an analysis share."""

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


def _surveyed(
    spark: SparkSession | None, runs: Sequence[Run], wrong: Callable[[AnalysisError], None]
) -> list[Run]:
    found = []
    for run, problem in survey_all(spark, runs):
        if problem is None:
            found.append(run)
        else:
            wrong(problem)
    return found


def _is_of_interrupt(wrong: BaseException | None) -> bool:
    """Whether Spark broke while Ctrl-C was already being answered: a question that it cuts short leaves a
    connection on which the next one, of whoever cleans up, fails."""
    while wrong is not None and not isinstance(wrong, KeyboardInterrupt):
        wrong = wrong.__cause__ or wrong.__context__
    return wrong is not None


def _judge(spark: SparkSession, runs: Sequence[Run], job: _Job) -> dict[Path, _Outcome]:
    """All of them in one go. Where something in one of them breaks that, by halves: so the others are judged,
    and it is known which it is. Raises AnalysisError where it is Spark that breaks, whatever it is given."""
    try:
        return _judged(spark, runs, job)
    except _OF_SPARK as wrong:
        if _is_of_interrupt(wrong):
            raise KeyboardInterrupt from wrong
        cause = _cause(wrong)
        if said := told_by_a_worker(str(wrong)):
            raise JudgeBroken(_of_check(said)) from wrong
        if lacking := _LACKING.search(str(wrong)):
            raise AnalysisError(
                f"a worker of Spark has no Python module {lacking[1]}: install there what docs/spark.md names"
            ) from wrong
        if not isinstance(wrong, NO_HISTORY) and not _of_a_task(wrong):
            which = ", ".join(run.directory.name for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
            raise AnalysisError(f"Spark failed on {which}: {cause}") from wrong
    if len(runs) == 1:
        said = f"{runs[0].directory}: {_no_sense(cause)}"
        return {runs[0].directory: _Outcome(Found(), Figures(), {}, said)}
    job.progress(f"one of {len(runs)} histories cannot be judged: the others are judged without it")
    half = len(runs) // 2
    return _judge(spark, runs[:half], job) | _judge(spark, runs[half:], job)


def _of_check(said: str) -> str:
    """``mark lost (...) is broken`` with the checks that want its rows."""
    name = said.removeprefix("mark ").partition(" (")[0]
    wanting = [one.name for one in checks() if name in one.marks]
    return f"check {', '.join(wanting)}: {said}" if wanting else said


def _no_sense(why: object) -> str:
    return f"its history makes no sense ({why}); restore it from a copy or run the test again"


def _of_a_task(wrong: Exception) -> bool:
    """Whether a task of ours raised it: data that is none, and neither memory nor disks."""
    return "Traceback (most recent call last)" in str(wrong) and not _OUT_OF_ROOM.search(str(wrong))


def _judged(spark: SparkSession, runs: Sequence[Run], job: _Job) -> dict[Path, _Outcome]:
    began = time.monotonic()
    tables = Tables(spark, runs)
    job.progress(f"looking for {len(checks())} anomalies in {sum(run.rows for run in runs):,} events")
    if missing := not_looked_for():
        job.progress(f"not looked for: {', '.join(missing)}")
    with in_pieces(spark, _pieces(spark, runs)):
        job.at(f"{_runs(runs)}: reading and judging")
        judged = judge(tables)
        job.at(f"{_runs(runs)}: explaining what was found")
        found = search(judged.evidence, job.scratch)
        with part_of_the_judge("the figures of groups and transactions"):
            _count_groups(tables, judged.figures)
            _count_transactions(judged)
    engine = {"spark": spark.version, "seconds": round(time.monotonic() - began, 3)}
    for number, one in enumerate(found):
        one.unproven_read, one.unproven_unseen = judged.unproven.get(number, (0, 0))
    return {
        run.directory: _Outcome(
            found[number], judged.figures[number], engine, judged.problems.get(number, "")
        )
        for number, run in enumerate(runs)
    }


def _runs(runs: Sequence[Run]) -> str:
    events = f"{sum(run.rows for run in runs):,} events"
    return f"{runs[0].directory.name}, {events}" if len(runs) == 1 else f"{len(runs)} runs, {events}"


def _pieces(spark: SparkSession, runs: Sequence[Run]) -> int:
    """One for few rows; else enough for all processors, and for all rows."""
    if few(runs):
        return 1
    return max(2 * spark.sparkContext.defaultParallelism, min(64, 2 * tasks_of(runs)))


def _count_groups(tables: Tables, counted: Sequence[Figures]) -> None:
    """The metric ``group-duplicates``, where there are groups."""
    if any(run.kinds & KINDS for run in tables.runs):
        for (run, group), counts in duplicates(tables).items():
            counted[run].groups[group] = counts


def _count_transactions(judged: Judged) -> None:
    """The metric ``transaction-ends``, where there are transactions."""
    if judged.evidence.counts.get(TRANSACTIONS):
        for run, transactional_id, counts in ends(judged.evidence.tables):
            judged.figures[run].transactions[transactional_id] = counts


def _cause(wrong: Exception) -> str:
    """Spark's reason in one line: the last cause in its trace, and what to do about memory."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    cause = (causes or lines or [type(wrong).__name__])[-1 if causes else 0]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    if raised and "Python worker" in lines[0]:
        cause = raised[0]  # what a task of ours raised, after its traceback
    cause = cause[:300]
    if "No space left" in cause:
        cause += "; make room where the runs are and in the temporary directory"
    elif any(word in cause for word in ("OutOfMemory", "MemoryError", "enough memory")):
        cause += f"; give it more memory ({MEMORY_VARIABLE}=6g) or room in the temporary directory"
    return cause


def all_findings(evidence: Evidence) -> DataFrame | None:
    """Findings of every check that has something to look at, in the common schema plus ``run``; None when
    none has."""
    found = [_findings(one, evidence) for one in checks() if one.applies(evidence)]
    return finished(reduce(Frame.union, found), evidence.tables) if found else None


def _findings(one: Check, evidence: Evidence) -> Findings:
    with part_of_the_judge(f"check {one.name}", one.find.__module__):
        return one.find(evidence)


def _broken_check(evidence: Evidence) -> JudgeBroken | None:
    """The check that raises while Spark looks for its findings: each is tried alone."""
    for one in checks():
        if one.applies(evidence):
            try:
                _findings(one, evidence).rows.agg(F.count("*")).toArrow()
            except _OF_SPARK as wrong:
                if isinstance(wrong, NO_HISTORY) or _of_a_task(wrong):
                    return broken(f"check {one.name}", one.find.__module__, _cause(wrong))
    return None


def search(evidence: Evidence, scratch: str) -> list[Found]:
    """Run the checks; each run's findings go to its directory. Only counts come back."""
    order = {name: number for number, name in enumerate(names())}
    runs = evidence.tables.runs
    try:
        rows = all_findings(evidence)
        if rows is None:
            return [gather((), run) for run in runs]
        return _searched(rows.withColumn("rank", _rank(order)), runs, scratch)
    except _OF_SPARK as wrong:
        if (isinstance(wrong, NO_HISTORY) or _of_a_task(wrong)) and (which := _broken_check(evidence)):
            raise which from wrong
        raise


def _searched(rows: DataFrame, runs: Sequence[Run], scratch: str) -> list[Found]:
    if few(runs):
        return _search_here(rows, runs)
    (
        rows.repartition(max(1, min(len(runs), 64)), "run")
        .sortWithinPartitions("run", *SORTED_BY)
        .drop("rank")
        .write.mode("overwrite")
        .partitionBy("run")
        .parquet(f"{scratch}/findings")
    )
    return [gather(parts(f"{scratch}/findings/run={number}"), run) for number, run in enumerate(runs)]


def _search_here(rows: DataFrame, runs: Sequence[Run]) -> list[Found]:
    """The same without shuffle and files: few events have few findings, and a file of Spark's for each run
    takes longer than the search."""
    table = rows.coalesce(rows.sparkSession.sparkContext.defaultParallelism).toArrow()
    by = [(name, "ascending", "at_start") for name in ("run", *SORTED_BY)]
    table = table.take(pc.sort_indices(table, sort_keys=by))
    ends = np.searchsorted(table["run"].to_numpy(), np.arange(len(runs) + 1))
    found = table.select(FINDINGS.names)
    return [
        gather(found.slice(ends[number], ends[number + 1] - ends[number]).to_batches(), run)
        for number, run in enumerate(runs)
    ]


def _rank(order: dict[str, int]) -> Any:
    pairs = [F.lit(item) for name, number in order.items() for item in (name, number)]
    return F.create_map(*pairs)[F.col("anomaly")]


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
