"""The stages of an analysis one after another in this process: what Spark's shuffles do is here a sort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import orjson
import pyarrow as pa

from wrackline.checkers.anomalies.registry import marks
from wrackline.checkers.engine import tasks as stages
from wrackline.checkers.engine.candidates import COLUMNS
from wrackline.checkers.engine.context import Context, context_of
from wrackline.checkers.engine.facts import COLUMNS as COLUMNS_OF
from wrackline.checkers.engine.facts import Kind, Packet, Rows, Writer, packets, together, unpack
from wrackline.checkers.engine.object_times import DECIDED, SUMMARIES, beyond_of
from wrackline.checkers.engine.offset_ranges import SUMMARY
from wrackline.checkers.engine.range_bounds import below_of, carries
from wrackline.checkers.inputs.runs import Run
from wrackline.checkers.plan import NOBODY

Stage = Callable[[stages.Batches], stages.Batches]


def through(stage: Stage, rows: Iterable[Packet]) -> list[Packet]:
    def batches() -> Iterator[pa.RecordBatch]:
        writer = Writer()
        for row in rows:
            writer.put(*row)
            yield from writer.batches()
        yield from writer.batches(everything=True)

    return list(packets(stage(batches())))


def suspects(runs: Sequence[Run], width: int) -> tuple[Rows, int]:
    """(the suspects of these runs, how many chunks were judged twice)."""
    context = context_of(runs, marks(), width=width, buckets=3)
    first = through(
        stages.judged(lambda: context), sorted(ingested(runs, context, stages.EVERYTHING), key=_place)
    )
    summaries = [
        {name: int(column[0]) for name, column in unpack(data, n, SUMMARY).columns.items()}
        for _, _, kind, n, data in first
        if kind is Kind.SUMMARY
    ]
    late = [row for row in first if row[2] in (Kind.JUMP, Kind.SESSION)]
    above, again, gaps = carries(summaries, context)
    again |= {(row[0], row[1]) for row in late}
    known = replace(
        context, carry=above, below=below_of(summaries), again=frozenset(again), unfilled=frozenset(gaps)
    )
    values = [row for row in first if row[2] in (Kind.SUSPECT, Kind.HOMELESS)]
    if again:
        facts = [*ingested(runs, known, stages.CHUNKS), *late]
        second = through(stages.judged(lambda: known), sorted(facts, key=_place))
        values += [row for row in second if row[2] is Kind.SUSPECT]
    wanted = through(stages.by_value(lambda: known), sorted(values, key=lambda row: row[1]))
    if any(orjson.loads(row[4])["unmatched"] for row in wanted if row[2] is Kind.META):
        values += ingested(runs, known, stages.SENDS)
        wanted = through(stages.by_value(lambda: known), sorted(values, key=lambda row: row[1]))
    untold = sorted((row for row in (*first, *wanted) if row[2] is Kind.UNTOLD), key=_place)
    wanted += through(stages.in_order(lambda: known), untold)
    found = [unpack(data, n, COLUMNS) for _, _, kind, n, data in wanted if kind is Kind.SUSPECT]
    return together(found, COLUMNS), len(again)


def _place(row: Packet) -> tuple[int, int]:
    return row[0], row[1]


def ingested(runs: Sequence[Run], context: Context, what: str) -> list[Packet]:
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
    return list(packets(stages.ingested(lambda: context, what)(iter([table]))))


def breaches(runs: Sequence[Run], span: int) -> Rows:
    """What is wrong with the registers and queues of these runs, as stretches of ``span`` events tell it."""
    context = context_of(runs, marks(), span=span)
    first = through(
        stages.judged(lambda: context),
        sorted(ingested(runs, context, stages.EVERYTHING), key=lambda row: (*_place(row), row[2])),
    )
    told = [row for row in first if row[2] in SUMMARIES]
    known = replace(context, beyond=beyond_of(told))
    second = through(
        stages.moments(lambda: known), sorted((row for row in first if row[2] in DECIDED), key=_place)
    )
    packed = [row for row in (*first, *second) if row[2] is Kind.BREACH]
    names = COLUMNS_OF[Kind.BREACH]
    return together([unpack(data, n, names) for *_, n, data in packed], names)
