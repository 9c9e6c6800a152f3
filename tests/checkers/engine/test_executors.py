"""Both executors find the same, and a run that is too large for one process goes to Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pytest

from tests.checkers.cases import all_cases
from tests.checkers.histories import History
from wrackline.checkers import analysis
from wrackline.checkers.analysis import analyze
from wrackline.checkers.engine.executor import LocalExecutor, LocalRows, TooLarge
from wrackline.checkers.engine.spark.session import JavaMissing
from wrackline.checkers.inputs.runs import AnalysisError
from wrackline.history.model import Event, RunInfo
from wrackline.proving.model.knobs import TO_MUTATE, drawn
from wrackline.proving.model.made import make, write_events
from wrackline.proving.model.object_events import make_objects
from wrackline.proving.model.objects import drawn_objects
from wrackline.proving.mutations.catalogue import mutate, mutations
from wrackline.proving.mutations.objects import KNOBS, mutate_objects, object_mutations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 7
FILES = ("findings.parquet", "explanations.json", "verdict.json", "metrics.json")
DRAWN = int(os.environ.get("WRACKLINE_SAME_HISTORIES", "60"))
"""Drawn histories; 10,000 of them take an hour."""


def write_runs(folder: Path) -> list[Path]:
    """Every case by hand, one history with each mutation, and drawn histories."""
    runs: list[Path | None] = []
    runs += [one.write(folder / f"case-{number:03}") for number, one in enumerate(all_cases())]
    for one in mutations():
        made = make(f"mutant-{one.name}", SEED, one.suited(TO_MUTATE))
        runs.append(_written(folder, made.info, mutate(one, made)))
    for other in object_mutations():
        of = make_objects(f"mutant-{other.name}", SEED, KNOBS[other.workload])
        runs.append(_written(folder, of.info, mutate_objects(other, of)))
    for seed in range(DRAWN):
        name = f"drawn-{seed}"
        if seed % 4:
            runs.append(make(name, seed, drawn(seed, 60)).write(folder / name))
        else:
            runs.append(make_objects(name, seed, drawn_objects(seed, 60)).write(folder / name))
    return [run for run in runs if run is not None]


def _written(folder: Path, info: RunInfo, events: list[Event] | None) -> Path | None:
    """None where the mutation has no place in the history."""
    return None if events is None else write_events(folder / info.test_id, info, events)


def contents(run: Path) -> Mapping[str, Any]:
    """What a judge writes, without who judged and for how long."""
    found: dict[str, Any] = {name: (run / name).read_bytes() for name in FILES if (run / name).exists()}
    verdict = orjson.loads(found["verdict.json"])
    verdict.pop("engine")
    verdict.pop("seal", None)
    found["verdict.json"] = verdict
    return found


@pytest.mark.spark
def test_both_executors_write_the_same(
    spark: SparkSession, judged_runs: Mapping[Path, dict[str, Any]], tmp_path: Path
) -> None:
    assert len(judged_runs) > 100
    copies = [Path(shutil.copytree(run, tmp_path / run.name)) for run in judged_runs]
    by_spark = analyze(copies, engine="spark")
    found = 0
    for (run, here), copy, there in zip(judged_runs.items(), copies, by_spark, strict=True):
        assert here["engine"]["name"] == "local"
        assert there["engine"]["name"] == f"spark {spark.version}"
        assert contents(copy) == contents(run), run.name
        found += sum(one["count"] for one in here["anomalies"])
    assert found > 300


def losing(folder: Path, name: str = "run") -> Path:
    h = History(name).phase("main").send(1, (160, 0)).send(1, (176, 1)).end(3, 2)
    return h.phase("drain").drain((0, 160, 0)).write(folder / name)


def engine_of(runs: list[Path], **asked: Any) -> tuple[str, list[str]]:
    told: list[str] = []
    verdicts = analyze(runs, progress=told.append, **asked)
    assert {one["verdict"] for one in verdicts} == {"violation"}
    return verdicts[0]["engine"]["name"], told


@pytest.mark.spark
def test_one_small_run_is_judged_in_this_process_and_everything_else_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = f"spark {spark.version}"
    one, other = losing(tmp_path, "one"), losing(tmp_path, "other")
    assert engine_of([one])[0] == "local"
    assert engine_of([one], engine="spark")[0] == version
    assert engine_of([one, other])[0] == version
    assert engine_of([one, other], engine="local")[0] == "local"
    monkeypatch.setattr(analysis, "LOCAL_FACTS", 3)
    assert engine_of([one])[0] == version


@pytest.mark.spark
def test_a_run_that_grows_past_the_bound_changes_over(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "LOCAL_BYTES", 200)
    run = losing(tmp_path)
    name, told = engine_of([run])
    assert name == f"spark {spark.version}"
    assert any("more memory than one process may take: Spark judges it" in line for line in told)
    with pytest.raises(AnalysisError, match="judge without --engine local"):
        analyze([run], engine="local")


def test_without_java_this_process_judges_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(*_: Any, **__: Any) -> Any:
        raise JavaMissing("no Java found")

    monkeypatch.setattr(analysis, "session", no_java)
    runs = [losing(tmp_path, "one"), losing(tmp_path, "other")]
    name, told = engine_of(runs)
    assert name == "local"
    assert any(line.startswith("no Java found") for line in told)
    with pytest.raises(JavaMissing):
        analyze(runs, engine="spark")


def test_without_java_and_memory_one_line_says_how_to_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_java(*_: Any, **__: Any) -> Any:
        raise JavaMissing("no Java found: install one")

    def no_memory(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(analysis, "session", no_java)
    monkeypatch.setattr(LocalExecutor, "table", no_memory)
    with pytest.raises(AnalysisError, match="more memory than this process gets; no Java found: install one"):
        analyze([losing(tmp_path, "one"), losing(tmp_path, "other")])


@pytest.mark.spark
@pytest.mark.parametrize(("rows", "parts"), [(0, 1), (1, 1), (5, 1), (5, 5)])
def test_spark_divides_what_it_is_given_among_all_its_tasks(
    spark: SparkSession, rows: int, parts: int
) -> None:
    from wrackline.checkers.engine.spark.executor import SparkExecutor

    executor = SparkExecutor(spark)
    table = pa.table({"x": pa.array(range(rows), pa.int64())})
    tasks = executor.table(table, max(parts, executor.parallel)).rows.rdd.glom().collect()
    assert sorted(row.x for task in tasks for row in task) == list(range(rows))
    assert sum(1 for task in tasks if task) >= min(rows, executor.parallel, 2)


def test_a_step_that_needs_more_than_it_may_ends_at_once() -> None:
    schema = pa.schema([("x", pa.int64())])
    read: list[int] = []

    def endless(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while True:
            read.append(1)
            yield pa.record_batch({"x": list(range(100))}, schema=schema)

    with pytest.raises(TooLarge):
        LocalExecutor(10_000).table(pa.table({"x": [1]}), 1).mapped(endless, schema)
    assert len(read) == 13
    with pytest.raises(TooLarge):
        LocalRows([pa.record_batch({"x": [1, 2]}, schema=schema)], schema, 8)
