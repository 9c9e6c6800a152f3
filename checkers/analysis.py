"""From run directories to verdicts: one Spark session, one pass over the histories, for any number of runs.

``findings.parquet``, ``verdict.json`` and ``metrics.json`` appear in each run's directory. With a contract
forced on the runs only ``verdict.<contract>.json`` is written: what a run's own contract says stays where it
was.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wrackline.checkers.contracts import contract_for, named
from wrackline.checkers.cycles import TRANSACTIONS
from wrackline.checkers.evidence import finished
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.following import followed
from wrackline.checkers.group_tables import KINDS, duplicates
from wrackline.checkers.load import loads
from wrackline.checkers.metrics import Figures, TransactionEnds, metrics
from wrackline.checkers.plan import Judged, judge, survey_all
from wrackline.checkers.registry import Evidence, checks, like, names
from wrackline.checkers.runs import NO_HISTORY, AnalysisError, Place, Run, open_run
from wrackline.checkers.session import MEMORY_VARIABLE, in_one_piece, session
from wrackline.checkers.tables import Tables, few
from wrackline.checkers.transactions import ends
from wrackline.checkers.verdict import Found, verdict
from wrackline.history.files import whole_file

FINDINGS_FILE = "findings.parquet"
VERDICT_FILE = "verdict.json"
METRICS_FILE = "metrics.json"
SORTED_BY = ("rank", "topic", "partition", "offset", "value")
"""A run's findings; ``rank`` is the place of the anomaly among the checks."""
_OUT_OF_ROOM = re.compile("No space left|OutOfMemory|MemoryError|enough memory")
BRIEF_FACTS = 5_000_000
"""Below so many records and events the JVM's optimising compiler costs more than it saves."""


def _silent(_: str) -> None:
    pass


def analyze(
    run_dirs: Sequence[Path],
    *,
    contract: str | None = None,
    master: str = "local[*]",
    progress: Callable[[str], None] = _silent,
    status: Callable[[str], None] = _silent,
) -> list[dict[str, Any]]:
    """Judge runs; returns their verdicts, in order, as written to their directories. ``progress`` is told
    what has come about, ``status`` once a second what Spark is at and how far.

    Where a run cannot be read the others are still judged. AnalysisError is raised at the end, for the first
    of these, with the verdicts of the others in ``judged``; further ones are told to ``progress``, so that
    each is told once. Raises also UnknownContract, JavaMissing and SparkUnavailable, before anything is
    judged."""
    if contract is not None:
        named(contract)
    problems: list[str] = []

    def wrong(what: AnalysisError | str) -> None:
        problems.append(str(what))
        if len(problems) > 1:
            progress(str(what))

    runs = _opened(run_dirs, wrong, progress)
    verdicts: dict[Path, dict[str, Any]] = {}
    judged: dict[Path, _Outcome] = {}
    facts = sum(run.facts for run in runs)
    is_local = few(runs)
    if is_local:
        runs = _surveyed(None, runs, wrong)
    if any(run.files for run in runs):
        progress(f"starting Spark ({master}) for {sum(bool(run.files) for run in runs)} runs")
        with session(master, brief=facts < BRIEF_FACTS) as spark:
            if not is_local:
                runs = _surveyed(spark, runs, wrong)
            with followed(spark, status) as at:
                judged = _judge(spark, [run for run in runs if run.files], progress, at)
    nothing = _Outcome(Found(), Figures(), {"spark": "", "seconds": 0.0})
    for run in runs:
        outcome = judged.get(run.directory, nothing)
        if outcome.problem:
            wrong(outcome.problem)
        else:
            try:
                verdicts[run.directory] = _write(run, contract, outcome)
            except NO_HISTORY as odd:
                wrong(f"{run.directory}: {_no_sense(odd)}")
    if problems:
        more = len(problems) - 1
        besides = f" (and {more} more of {len(run_dirs)} runs cannot be judged, see above)" if more else ""
        error = AnalysisError(problems[0] + besides)
        error.judged = verdicts
        raise error
    return [verdicts[Path(one).resolve()] for one in run_dirs]


@dataclass(frozen=True, slots=True)
class _Outcome:
    found: Found
    figures: Figures
    engine: dict[str, Any]
    problem: str = ""


def _opened(
    run_dirs: Sequence[Path], wrong: Callable[[AnalysisError], None], progress: Callable[[str], None]
) -> list[Run]:
    runs: dict[str, Run] = {}
    for directory in dict.fromkeys(Path(one).resolve() for one in run_dirs):
        progress(f"reading {directory.name}")
        try:
            run = open_run(directory)
            twin = runs.setdefault(run.info.test_id, run)
            if twin is not run:
                raise AnalysisError(
                    f"{directory}: same test id as {twin.directory} ({run.info.test_id}); judge one at a time"
                )
        except AnalysisError as told:
            wrong(told)
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


def _judge(
    spark: SparkSession, runs: Sequence[Run], progress: Callable[[str], None], at: Callable[[str], None]
) -> dict[Path, _Outcome]:
    """All of them in one go. Where something in one of them breaks that, by halves: so the others are judged,
    and it is known which it is. Raises AnalysisError where it is Spark that breaks, whatever it is given."""
    try:
        return _judged(spark, runs, progress, at)
    except (PySparkException, Py4JError, *NO_HISTORY) as wrong:
        cause = _cause(wrong)
        if not isinstance(wrong, NO_HISTORY) and not _of_a_task(wrong):
            which = ", ".join(run.directory.name for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
            raise AnalysisError(f"Spark failed on {which}: {cause}") from wrong
    if len(runs) == 1:
        said = f"{runs[0].directory}: {_no_sense(cause)}"
        return {runs[0].directory: _Outcome(Found(), Figures(), {}, said)}
    progress(f"one of {len(runs)} histories cannot be judged: the others are judged without it")
    half = len(runs) // 2
    return _judge(spark, runs[:half], progress, at) | _judge(spark, runs[half:], progress, at)


def _no_sense(why: object) -> str:
    return f"its history makes no sense ({why}); restore it from a copy or run the test again"


def _of_a_task(wrong: Exception) -> bool:
    """Whether a task of ours raised it: data that is none, and neither memory nor disks."""
    return "Traceback (most recent call last)" in str(wrong) and not _OUT_OF_ROOM.search(str(wrong))


def _judged(
    spark: SparkSession, runs: Sequence[Run], progress: Callable[[str], None], at: Callable[[str], None]
) -> dict[Path, _Outcome]:
    began = time.monotonic()
    tables = Tables(spark, runs)
    progress(f"looking for {len(checks())} anomalies in {sum(run.rows for run in runs):,} events")
    scratch = Path(tempfile.mkdtemp(prefix=".analysis-", dir=runs[0].directory.parent))
    try:
        with in_one_piece(spark) if few(runs) else contextlib.nullcontext():
            at(f"{_runs(runs)}: reading and judging")
            judged = judge(tables)
            at(f"{_runs(runs)}: explaining what was found")
            found = search(judged.evidence, scratch)
            _count_groups(tables, judged.figures)
            _count_transactions(judged)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
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


def _count_groups(tables: Tables, counted: Sequence[Figures]) -> None:
    """The metric ``group-duplicates``, where there are groups."""
    if any(run.kinds & KINDS for run in tables.runs):
        for row in duplicates(tables).collect():
            counted[row["run"]].groups[row["group"]] = (row["deliveries"], row["records"])


def _count_transactions(judged: Judged) -> None:
    """The metric ``transaction-ends``, where there are transactions."""
    if judged.evidence.counts.get(TRANSACTIONS):
        for row in ends(judged.evidence.tables).collect():
            of_run = judged.figures[row["run"]].transactions
            of_run[row["transactional_id"]] = TransactionEnds(**row["ends"].asDict())


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
    found = [one.find(evidence) for one in checks() if one.applies(evidence)]
    return finished(reduce(DataFrame.union, found), evidence.tables) if found else None


def search(evidence: Evidence, scratch: Path) -> list[Found]:
    """Run the checks; each run's findings go to its directory. Only counts come back."""
    order = {name: number for number, name in enumerate(names())}
    runs = evidence.tables.runs
    rows = all_findings(evidence)
    if rows is None:
        return [_gather((), run) for run in runs]
    rows = rows.withColumn("rank", _rank(order))
    if few(runs):
        return _search_here(rows, runs)
    (
        rows.repartition(max(1, min(len(runs), 64)), "run")
        .sortWithinPartitions("run", *SORTED_BY)
        .drop("rank")
        .write.partitionBy("run")
        .parquet(str(scratch / "findings"))
    )
    return [_gather(_parts(scratch / "findings" / f"run={number}"), run) for number, run in enumerate(runs)]


def _search_here(rows: DataFrame, runs: Sequence[Run]) -> list[Found]:
    """The same without shuffle and files: few events have few findings, and a file of Spark's for each run
    takes longer than the search."""
    table = rows.coalesce(rows.sparkSession.sparkContext.defaultParallelism).toArrow()
    by = [(name, "ascending", "at_start") for name in ("run", *SORTED_BY)]
    table = table.take(pc.sort_indices(table, sort_keys=by))
    ends = np.searchsorted(table["run"].to_numpy(), np.arange(len(runs) + 1))
    found = table.select(FINDINGS.names)
    return [
        _gather(found.slice(ends[number], ends[number + 1] - ends[number]).to_batches(), run)
        for number, run in enumerate(runs)
    ]


def _rank(order: dict[str, int]) -> Any:
    pairs = [F.lit(item) for name, number in order.items() for item in (name, number)]
    return F.create_map(*pairs)[F.col("anomaly")]


def _parts(folder: Path) -> Iterator[pa.RecordBatch]:
    """Of Spark's part files."""
    for file in sorted(folder.glob("*.parquet")) if folder.is_dir() else []:
        yield from ds.dataset(str(file)).scanner(columns=FINDINGS.names, use_threads=False).to_batches()


def _gather(batches: Iterable[pa.RecordBatch], run: Run) -> Found:
    """One file of findings in the run's directory, batch by batch."""
    found = Found({name: {} for name in names()})
    with (
        whole_file(run.directory / FINDINGS_FILE) as part,
        pq.ParquetWriter(part, FINDINGS, compression="zstd") as writer,
    ):
        for batch in batches:
            table = pa.Table.from_batches([batch]).cast(FINDINGS)
            writer.write_table(table)
            _count(found, table)
    return found


def _count(found: Found, table: pa.Table) -> None:
    groups = table.group_by(["anomaly", "topic", "partition"], use_threads=False).aggregate(
        [([], "count_all")]
    )
    for row in groups.to_pylist():
        place: Place | None = None if row["topic"] is None else (row["topic"], row["partition"])
        by_place = found.counts[row["anomaly"]]
        by_place[place] = by_place.get(place, 0) + row["count_all"]


def _write(run: Run, contract: str | None, outcome: _Outcome) -> dict[str, Any]:
    result = verdict(contract_for(run, contract, like=like()), outcome.found, outcome.figures, outcome.engine)
    if contract is None:
        _write_json(run.directory / VERDICT_FILE, result)
    else:
        _write_json(run.directory / f"verdict.{contract}.json", result)
    _write_json(
        run.directory / METRICS_FILE,
        {**metrics(run, outcome.figures), "load": loads(run, outcome.figures)},
    )
    return result


def _write_json(path: Path, content: Any) -> None:
    with whole_file(path) as part:
        part.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
