"""The plan of an analysis: which Spark jobs there are, and what goes from one to the next (docs/checkers.md).

Spark cuts, shuffles, sorts and spills; what the facts say is decided by numpy in the tasks
(wrackline.checkers.engine.tasks). Only what is small comes back to the driver: what runner, nemesis and
final reads wrote down, one short row per range of a log, and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycles import TRANSACTIONS
from wrackline.checkers.anomalies.registry import Evidence, marks
from wrackline.checkers.engine import tasks as stages
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.context import PARTITION_BITS, Context, context_of, places_of
from wrackline.checkers.engine.facts import Kind, Summary
from wrackline.checkers.engine.frames import Frame, frame
from wrackline.checkers.engine.object_times import DECIDED, SUMMARIES, beyond_of
from wrackline.checkers.engine.packed import SCHEMA, Packed, read
from wrackline.checkers.engine.range_bounds import below_of, bounds, row_of
from wrackline.checkers.engine.tables import CandidateOfRun, Tables, keep
from wrackline.checkers.inputs.first_look import Partners, Survey
from wrackline.checkers.inputs.row_groups import Split
from wrackline.checkers.inputs.runs import AnalysisError, Place, Run, surveyed, surveyed_split
from wrackline.checkers.verdict.metrics import Figures, take_counts, take_gaps, take_written

FACTS_PER_TASK = 1_500_000
"""So many records make a task of the shuffles: some 100 MiB."""
FACTS_PER_SPLIT = 1_000_000
"""... and so many a task that reads."""


@dataclass
class Judged:
    """What the plan leaves."""

    evidence: Evidence
    figures: list[Figures]
    unproven: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Run -> sends of unknown outcome that were read, and that never were."""
    problems: dict[int, str] = field(default_factory=dict)
    """Run -> why it could not be read to its end."""


def survey_all(spark: SparkSession | None, runs: Sequence[Run]) -> Iterator[tuple[Run, AnalysisError | None]]:
    """Completes runs that were opened, here or in Spark; each with what is wrong with it, if something is."""
    splits = [replace(split, run=number) for number, run in enumerate(runs) for split in run.splits]
    found: dict[int, list[Survey]] = {number: [] for number in range(len(runs))}
    if spark is None:
        local: Iterable[Survey] = map(surveyed_split, splits)
    else:
        rows = _table_of_splits(spark, splits, {}, sum(run.facts for run in runs)).mapInArrow(
            stages.surveys, SCHEMA
        )
        local = (Survey.from_json(packed.data) for packed in _collected(rows))
    for one in local:
        found[one.run].append(one)
    for number, run in enumerate(runs):
        try:
            yield surveyed(run, found[number]), None
        except AnalysisError as wrong:
            yield run, wrong


def judge(tables: Tables, **cuts: int) -> Judged:
    """Looks at everything once, and at what must be looked at again. ``cuts``: ``width`` and ``span`` of the
    context."""
    runs, spark = tables.runs, tables.spark
    tasks = tasks_of(runs)
    context = context_of(runs, marks(), buckets=tasks, **cuts)
    splits = [replace(split, run=number) for number, run in enumerate(runs) for split in run.splits]
    source = _table_of_splits(
        spark,
        splits,
        {number: run.partners for number, run in enumerate(runs)},
        sum(run.facts for run in runs),
    )
    first = keep(
        _judged(
            source.mapInArrow(_ingested(spark, context, stages.EVERYTHING), SCHEMA), spark, context, tasks
        )
    )
    few = (Kind.NOTE, Kind.SUMMARY, Kind.JUMP, Kind.SESSION, *SUMMARIES)
    small = first.filter(F.col("kind").isin(*map(int, few)))
    found = Judged(Evidence(tables), [Figures() for _ in runs])
    said = _take(found, _collected(small), tables)
    if context.objects:
        _objects(found, first, replace(context, beyond=beyond_of(said.intervals)), tasks)
    above, again, gaps = bounds(said.summaries, context)
    again |= said.late
    if not (again or said.by_value):
        return found
    context = replace(
        context,
        above=above,
        below=below_of(said.summaries),
        again=frozenset(again),
        unfilled=frozenset(gaps),
    )
    values = first.filter(F.col("kind").isin(int(Kind.CANDIDATE), int(Kind.UNPLACED)))
    if again:
        affected = sorted({log >> 32 for log, _ in again})
        facts = source.filter(F.col("run").isin(affected)).mapInArrow(
            _ingested(spark, context, stages.RANGES), SCHEMA
        )
        late = first.filter(F.col("kind").isin(int(Kind.JUMP), int(Kind.SESSION)))
        second = _judged(facts.union(late) if said.late else facts, spark, context, tasks)
        values = keep(values.union(second.filter(F.col("kind") == int(Kind.CANDIDATE))))
    in_final = first.filter(F.col("kind") == int(Kind.IN_FINAL))
    _by_value(found, source, values, in_final, context, tasks)
    return found


def _objects(found: Judged, first: DataFrame, context: Context, tasks: int) -> None:
    """Registers and queues: intervals of their time, each with what it must know of the others."""
    spark = found.evidence.tables.spark
    decided = first.filter(F.col("kind").isin(*map(int, DECIDED)))
    second = keep(
        _sorted(decided, tasks, "owner", "part").mapInArrow(stages.intervals(_given(spark, context)), SCHEMA)
    )
    for note in _notes(second):
        _count(found, note["contradictions"])
    found.evidence.contradictions = first.union(second).filter(F.col("kind") == int(Kind.CONTRADICTION))


def tasks_of(runs: Sequence[Run]) -> int:
    """Into how many parts the shuffles are cut."""
    return max(1, min(4_000, round(sum(run.facts for run in runs) / FACTS_PER_TASK)))


def _by_value(
    found: Judged, source: DataFrame, values: DataFrame, in_final: DataFrame, context: Context, tasks: int
) -> None:
    """Values with all their places. Where some place's value was sent with another place acked, all sends are
    looked at, which few histories need."""
    spark = found.evidence.tables.spark
    wanted = keep(_sorted(values, tasks, "part").mapInArrow(stages.by_value(_given(spark, context)), SCHEMA))
    said = _notes(wanted)
    if sum(one["unmatched"] for one in said):
        sends = source.mapInArrow(_ingested(spark, context, stages.SENDS), SCHEMA)
        both = _sorted(values.union(sends), tasks, "part")
        wanted = keep(both.mapInArrow(stages.by_value(_given(spark, context)), SCHEMA))
        said = _notes(wanted)
    for one in said:
        for run, seen, unseen in one["unproven"]:
            before = found.unproven.get(run, (0, 0))
            found.unproven[run] = (before[0] + seen, before[1] + unseen)
        _count(found, one["marks"])
    if any(one["unplaced"] for one in said):
        records = wanted.filter(F.col("kind") == int(Kind.IN_FINAL)).union(in_final)
        by_owner = records.repartition(tasks, "owner").sortWithinPartitions("owner", "part")
        order = keep(by_owner.mapInArrow(stages.in_order(_given(spark, context)), SCHEMA))
        for note in _notes(order):
            _count(found, note["marks"])
        wanted = wanted.union(order)
    found.evidence.found = _named(wanted, found.evidence.tables)


def _count(found: Judged, marks: Mapping[str, int]) -> None:
    counts = found.evidence.counts
    for mark, count in marks.items():
        counts[mark] = counts.get(mark, 0) + count


def _named(wanted: DataFrame, tables: Tables) -> Frame[CandidateOfRun]:
    """Candidates as rows, with what their logs are."""
    rows = wanted.mapInArrow(stages.candidates, stages.schema_of(Candidate))
    rows = rows.join(tables.logs.small().rows, "log", "left")
    number = F.col("log").bitwiseAND((1 << PARTITION_BITS) - 1).cast("int")
    changed = {
        "acked": F.col("acked") == 1,
        "partition": F.coalesce("partition", number),
        "run": F.col("run").cast("int"),
    }
    return frame(rows.withColumns(changed), CandidateOfRun)


def _judged(facts: DataFrame, spark: SparkSession, context: Context, tasks: int) -> DataFrame:
    return _sorted(facts, tasks, "owner", "part").mapInArrow(stages.judged(_given(spark, context)), SCHEMA)


def _sorted(rows: DataFrame, tasks: int, *by: str) -> DataFrame:
    """Each task gets whole places, one after another, and within one kind after kind."""
    return rows.repartition(tasks, *by).sortWithinPartitions(*by, "kind")


def _given(spark: SparkSession, context: Context) -> Callable[[], Context]:
    given = spark.sparkContext.broadcast(context)
    return lambda: given.value


def _ingested(spark: SparkSession, context: Context, what: str) -> Any:
    return stages.ingested(_given(spark, context), what)


def _table_of_splits(
    spark: SparkSession, splits: Sequence[Split], partners: Mapping[int, Mapping[int, Partners]], facts: int
) -> DataFrame:
    """One row per split, in as many tasks as keep all cores busy to the end; small ones share a task."""
    rows = [
        (
            s.run,
            s.number,
            s.path,
            s.first,
            s.last,
            orjson.dumps(partners.get(s.run, {}).get(s.number, NOBODY)),
        )
        for s in splits
    ]
    at_once = spark.sparkContext.defaultParallelism
    parallel = max(1, min(len(rows), max(at_once, facts // FACTS_PER_SPLIT)))
    table = spark.createDataFrame(rows, stages.SPLIT_SCHEMA, verifySchema=False)
    return table if parallel <= at_once else table.repartition(parallel)


NOBODY: Partners = {"invoked": [], "completed": []}


def _collected(rows: DataFrame) -> Iterable[Packed]:
    return read(rows.toArrow().to_batches())


def _notes(rows: DataFrame) -> list[dict[str, Any]]:
    """What the notes among these rows say."""
    return [packed.note() for packed in _collected(rows.filter(F.col("kind") == int(Kind.NOTE)))]


@dataclass
class _Said:
    """What the first round says to the driver."""

    summaries: list[Summary[int]] = field(default_factory=list)
    """Of ranges."""
    late: set[tuple[int, int]] = field(default_factory=set)
    """(log, number) of ranges with reads or sends that follow on ones in an earlier split."""
    intervals: list[Packed] = field(default_factory=list)
    """Summaries of intervals of objects' time."""
    by_value: int = 0
    """How many rows are to be looked at by value."""


def _take(found: Judged, rows: Iterable[Packed], tables: Tables) -> _Said:
    """Counts to their runs; returns what the plan goes on from."""
    places = [
        {tables.log(number, place): place for place in places_of(run)}
        for number, run in enumerate(tables.runs)
    ]
    said = _Said()
    for packed in rows:
        match packed.kind:
            case Kind.SUMMARY:
                said.summaries.append(row_of(packed.rows_of(Summary)))
            case Kind.NOTE:
                note = packed.note()
                said.by_value += note.get("by_value", 0)
                _count(found, note.get("contradictions", {}))
                if "run" in note:
                    _take_counts(found, note, tables, places[note["run"]])
            case Kind.JUMP | Kind.SESSION:
                said.late.add((packed.owner, packed.part))
            case _:
                said.intervals.append(packed)
    for figures in found.figures:
        figures.seconds.sort(key=lambda second: (second["t"], second["f"]))
    return said


def _take_counts(found: Judged, said: Mapping[str, Any], tables: Tables, places: Mapping[int, Place]) -> None:
    run = said["run"]
    if "problem" in said:
        found.problems[run] = said["problem"]
    take_counts(found.figures[run], said)
    _count(found, said.get("marks", {}))
    if TRANSACTIONS in said.get("marks", {}):
        tables.transactional.add(run)
    take_written(found.figures[run], said.get("written", ()), places)
    take_gaps(tables.runs[run], found.figures[run], said.get("gaps", ()), places)
