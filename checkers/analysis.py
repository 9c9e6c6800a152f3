"""From run directories to verdicts: one Spark session, one pass over the histories, for any number of runs.

``findings.parquet``, ``verdict.json`` and ``metrics.json`` appear in each run's directory. With a contract forced
on the runs only ``verdict.<contract>.json`` is written: what a run's own contract says stays where it was.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from checkers.contracts import contract_for, named
from checkers.evidence import finished
from checkers.findings import FINDINGS
from checkers.integrity import epochs
from checkers.loss import unproven
from checkers.metrics import Figures, figures, metrics
from checkers.order import steps
from checkers.places import is_stray, places, with_strays
from checkers.registry import Evidence, checks, names, suspect
from checkers.runs import AnalysisError, Place, Run, load_run
from checkers.session import MEMORY_VARIABLE, session
from checkers.tables import Tables, keep
from checkers.verdict import Found, verdict
from checkers.visibility import gap_above, too_late
from checkers.witnesses import witnesses

FINDINGS_FILE = "findings.parquet"
VERDICT_FILE = "verdict.json"
METRICS_FILE = "metrics.json"
SMALL_ROWS = 300_000
"""Below so many rows compiling queries costs more than it saves."""
BRIEF_ROWS = 3_000_000
"""Below so many events the JVM's optimising compiler costs more than it saves."""


def _silent(_: str) -> None:
    pass


def analyze(
    run_dirs: Sequence[Path],
    *,
    contract: str | None = None,
    master: str = "local[*]",
    progress: Callable[[str], None] = _silent,
) -> list[dict[str, Any]]:
    """Judge runs; returns their verdicts, in order, as written to their directories.

    A run that cannot be read is told to ``progress`` and the others are still judged; AnalysisError is raised at the
    end, with their verdicts in ``judged``. Raises also UnknownContract, JavaMissing and SparkUnavailable, before anything is judged."""
    if contract is not None:
        named(contract)
    runs, problems = _load(run_dirs, progress)
    verdicts: dict[Path, dict[str, Any]] = {}
    if runs:
        with_history = [run for run in runs if run.files]
        judged: dict[Path, tuple[Found, Figures, dict[str, Any]]] = {}
        if with_history:
            progress(f"starting Spark ({master}) for {len(with_history)} runs")
            with session(master, brief=sum(run.rows for run in with_history) < BRIEF_ROWS) as spark:
                judged = _judge(spark, with_history, progress)
        for run in runs:
            found, counted, engine = judged.get(
                run.directory, (Found(), Figures(), {"spark": "", "seconds": 0.0})
            )
            verdicts[run.directory] = _write(run, contract, found, counted, engine)
    if problems:
        error = AnalysisError("; ".join(problems))
        error.judged = list(verdicts.values())
        raise error
    return [verdicts[Path(one).resolve()] for one in run_dirs]


def _load(run_dirs: Sequence[Path], progress: Callable[[str], None]) -> tuple[list[Run], list[str]]:
    runs: list[Run] = []
    problems: list[str] = []
    for directory in dict.fromkeys(Path(one).resolve() for one in run_dirs):
        progress(f"reading {directory.name}")
        try:
            run = load_run(directory)
            twin = next((one for one in runs if one.info.test_id == run.info.test_id), None)
            if twin is not None:
                raise AnalysisError(
                    f"{directory}: same test id as {twin.directory} ({run.info.test_id}); judge one at a time"
                )
            runs.append(run)
        except AnalysisError as wrong:
            problems.append(str(wrong))
            progress(str(wrong))
    return runs, problems


def _judge(
    spark: SparkSession, runs: Sequence[Run], progress: Callable[[str], None]
) -> dict[Path, tuple[Found, Figures, dict[str, Any]]]:
    began = time.monotonic()
    tune(spark, sum(run.rows for run in runs))
    tables = Tables(spark, runs)
    progress(f"looking for {len(checks())} anomalies in {sum(run.rows for run in runs):,} events")
    scratch = Path(tempfile.mkdtemp(prefix=".analysis-", dir=runs[0].directory.parent))
    try:
        counted = figures(tables)
        found = search(tables, scratch)
    except (PySparkException, Py4JError) as wrong:
        which = ", ".join(run.directory.name for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
        raise AnalysisError(f"Spark failed on {which}: {_cause(wrong)}") from wrong
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    engine = {"spark": spark.version, "seconds": round(time.monotonic() - began, 3)}
    return {
        run.directory: (one, numbers, engine) for run, one, numbers in zip(runs, found, counted, strict=True)
    }


def _cause(wrong: Exception) -> str:
    """Spark's reason in one line: the last cause in its trace, and what to do about memory."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    cause = (causes or lines or [type(wrong).__name__])[-1 if causes else 0][:300]
    if any(word in cause for word in ("OutOfMemory", "enough memory", "No space left")):
        cause += f"; give it more memory ({MEMORY_VARIABLE}=6g) or room in the temporary directory"
    return cause


def tune(spark: SparkSession, rows: int) -> None:
    """Small histories are many small queries: their cost is in planning and compiling, not in rows."""
    small = rows < SMALL_ROWS
    spark.conf.set("spark.sql.codegen.wholeStage", str(not small).lower())
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if small else "FALLBACK")
    spark.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    if small:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    else:
        spark.conf.unset("spark.sql.shuffle.partitions")


def evidence_of(tables: Tables) -> Evidence:
    """The places and steps that some check wants to see; everything else of the histories is read once, here."""
    unsteady = keep(steps(tables))
    jumps = unsteady.filter("told > offset").drop("run")
    wanted = keep(places(tables, jumps).filter(suspect() | is_stray()))
    suspects = keep(with_strays(wanted, tables))
    known = witnesses(suspects, too_late() | gap_above(), tables)
    return Evidence(tables, suspects, unsteady, known, keep(epochs(tables)))


def all_findings(evidence: Evidence) -> DataFrame:
    """Findings of every check, in the common schema plus ``run``."""
    return finished(reduce(DataFrame.union, [one.find(evidence) for one in checks()]), evidence.tables)


def search(tables: Tables, scratch: Path) -> list[Found]:
    """Run every check; each run's findings go to its directory. Only counts come back."""
    evidence = evidence_of(tables)
    tune(tables.spark, evidence.suspects.count())
    order = {name: number for number, name in enumerate(names())}
    ranked = all_findings(evidence).withColumn("rank", _rank(order))
    (
        ranked.repartition(max(1, min(len(tables.runs), 64)), "run")
        .sortWithinPartitions("run", "rank", "topic", "partition", "offset", "value")
        .drop("rank")
        .write.partitionBy("run")
        .parquet(str(scratch / "findings"))
    )
    found = [_gather(scratch / "findings" / f"run={number}", run) for number, run in enumerate(tables.runs)]
    seen = F.coalesce(F.col("in_final") | F.col("was_polled"), F.lit(False))
    for row in (
        evidence.suspects.filter(unproven())
        .groupBy("run")
        .agg(F.count_if(seen).alias("read"), F.count_if(~seen).alias("unseen"))
        .collect()
    ):
        found[row["run"]].unproven_read = row["read"]
        found[row["run"]].unproven_unseen = row["unseen"]
    return found


def _rank(order: dict[str, int]) -> Any:
    pairs = [F.lit(item) for name, number in order.items() for item in (name, number)]
    return F.create_map(*pairs)[F.col("anomaly")]


def _gather(folder: Path, run: Run) -> Found:
    """One file of findings in the run's directory, out of Spark's part files, batch by batch."""
    found = Found({name: {} for name in names()})
    part = run.directory / (FINDINGS_FILE + ".part")
    with pq.ParquetWriter(part, FINDINGS, compression="zstd") as writer:
        for file in sorted(folder.glob("*.parquet")) if folder.is_dir() else []:
            for batch in (
                ds.dataset(str(file)).scanner(columns=FINDINGS.names, use_threads=False).to_batches()
            ):
                table = pa.Table.from_batches([batch]).cast(FINDINGS)
                writer.write_table(table)
                _count(found, table)
    part.replace(run.directory / FINDINGS_FILE)
    return found


def _count(found: Found, table: pa.Table) -> None:
    groups = table.group_by(["anomaly", "topic", "partition"], use_threads=False).aggregate(
        [([], "count_all")]
    )
    for row in groups.to_pylist():
        place: Place | None = None if row["topic"] is None else (row["topic"], row["partition"])
        by_place = found.counts[row["anomaly"]]
        by_place[place] = by_place.get(place, 0) + row["count_all"]


def _write(
    run: Run, contract: str | None, found: Found, counted: Figures, engine: dict[str, Any]
) -> dict[str, Any]:
    result = verdict(contract_for(run, contract), found, counted, engine)
    if contract is None:
        _write_json(run.directory / VERDICT_FILE, result)
    else:
        _write_json(run.directory / f"verdict.{contract}.json", result)
    _write_json(run.directory / METRICS_FILE, metrics(run, counted))
    return result


def _write_json(path: Path, content: Any) -> None:
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    fresh.replace(path)
