"""The stages of an analysis one after another in this process: what Spark's shuffles do is here a sort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import orjson
import pyarrow as pa

from wrackline.checkers.anomalies.registry import marks
from wrackline.checkers.engine import tasks as stages
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.context import Context, context_of
from wrackline.checkers.engine.facts import Kind, Summary
from wrackline.checkers.engine.object_facts import Contradiction
from wrackline.checkers.engine.object_times import DECIDED, SUMMARIES, beyond_of
from wrackline.checkers.engine.packed import Packed, Writer, read
from wrackline.checkers.engine.range_bounds import below_of, bounds, row_of
from wrackline.checkers.inputs.arrays import Ints
from wrackline.checkers.inputs.runs import Run
from wrackline.checkers.inputs.table import concatenated
from wrackline.checkers.plan import NOBODY

Stage = Callable[[stages.Batches], stages.Batches]


def through(stage: Stage, rows: Iterable[Packed]) -> list[Packed]:
    def batches() -> Iterator[pa.RecordBatch]:
        writer = Writer()
        for row in rows:
            writer.put(row)
            yield from writer.batches()
        yield from writer.batches(everything=True)

    return list(read(stage(batches())))


def candidates(runs: Sequence[Run], width: int) -> tuple[Candidate[Ints], int]:
    """(the candidates of these runs, how many ranges of offsets were judged twice)."""
    context = context_of(runs, marks(), width=width, buckets=3)
    first = through(
        stages.judged(lambda: context), sorted(ingested(runs, context, stages.EVERYTHING), key=_place)
    )
    summaries = [row_of(row.rows_of(Summary)) for row in first if row.kind is Kind.SUMMARY]
    late = [row for row in first if row.kind in (Kind.JUMP, Kind.SESSION)]
    above, again, gaps = bounds(summaries, context)
    again |= set(map(_place, late))
    known = replace(
        context, above=above, below=below_of(summaries), again=frozenset(again), unfilled=frozenset(gaps)
    )
    values = [row for row in first if row.kind in (Kind.CANDIDATE, Kind.UNPLACED)]
    if again:
        facts = [*ingested(runs, known, stages.RANGES), *late]
        second = through(stages.judged(lambda: known), sorted(facts, key=_place))
        values += [row for row in second if row.kind is Kind.CANDIDATE]
    wanted = through(stages.by_value(lambda: known), sorted(values, key=lambda row: row.part))
    if any(row.note()["unmatched"] for row in wanted if row.kind is Kind.NOTE):
        values += ingested(runs, known, stages.SENDS)
        wanted = through(stages.by_value(lambda: known), sorted(values, key=lambda row: row.part))
    records = sorted((row for row in (*first, *wanted) if row.kind is Kind.IN_FINAL), key=_place)
    wanted += through(stages.in_order(lambda: known), records)
    found = [row.rows_of(Candidate[Ints]) for row in wanted if row.kind is Kind.CANDIDATE]
    return concatenated(Candidate[Ints], found), len(again)


def _place(row: Packed) -> tuple[int, int]:
    return row.owner, row.part


def ingested(runs: Sequence[Run], context: Context, what: str) -> list[Packed]:
    rows = [
        {
            "run": number,
            "number": split.number,
            "path": split.path,
            "first": split.first,
            "last": split.last,
            "partners": orjson.dumps(run.partners.get(split.number, NOBODY)),
        }
        for number, run in enumerate(runs)
        for split in run.splits
    ]
    table = pa.RecordBatch.from_pylist(rows)
    return list(read(stages.ingested(lambda: context, what)(iter([table]))))


def contradictions(runs: Sequence[Run], span: int) -> Contradiction[Ints]:
    """What is wrong with the registers and queues of these runs, as intervals of ``span`` events say it."""
    context = context_of(runs, marks(), span=span)
    first = through(
        stages.judged(lambda: context),
        sorted(ingested(runs, context, stages.EVERYTHING), key=lambda row: (*_place(row), row.kind)),
    )
    known = replace(context, beyond=beyond_of(row for row in first if row.kind in SUMMARIES))
    decided = sorted((row for row in first if row.kind in DECIDED), key=_place)
    second = through(stages.intervals(lambda: known), decided)
    packed = [row for row in (*first, *second) if row.kind is Kind.CONTRADICTION]
    return concatenated(Contradiction[Ints], [row.rows_of(Contradiction[Ints]) for row in packed])
