"""The tasks that make findings: rows of one partition to what its checks say, events to what walks say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import EventBatch
from wrackline.checkers.checks.finding import Finding, finished
from wrackline.checkers.checks.keys import LastOfKeys
from wrackline.checkers.checks.places import Places, Words
from wrackline.checkers.checks.registry import Check
from wrackline.checkers.checks.walks import Figure, Walk
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.context import owner_of_run, run_of
from wrackline.checkers.engine.executor import Batches, Task
from wrackline.checkers.engine.fact_codec import Packed, Writer, read
from wrackline.checkers.engine.facts import Facts, Kind
from wrackline.checkers.engine.marks import Marks
from wrackline.checkers.engine.object_facts import Contradiction
from wrackline.checkers.engine.objects.values import RULES
from wrackline.checkers.engine.tasks import place_of, splits_in
from wrackline.checkers.findings import FINDINGS
from wrackline.checkers.inputs.broken import part_of_the_judge
from wrackline.checkers.inputs.row_groups import Split, events_of, ints
from wrackline.checkers.inputs.table import NONE, Ints

FOUND = pa.schema([pa.field("run", pa.int64()), pa.field("rank", pa.int64()), *FINDINGS])
"""A finding with its run and the place of its anomaly among the checks."""
ORDER = ("rank", "topic", "partition", "offset", "value", "where", "explanation")
"""The order of a run's findings."""
_AT_ONCE = 1_000


@dataclass(frozen=True)
class CheckContext:
    """Says what all tasks of checks know."""

    runs: Sequence[AboutRun]
    marks: Marks
    checks: Sequence[Check] = ()
    """Those that have rows to look at."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """Anomaly -> its place among the checks."""
    words: Mapping[int, Mapping[int, Words]] = field(default_factory=dict)
    """Run -> index of an event -> its words."""
    last_of_keys: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """Log of a compacted topic -> value -> the highest offset of its key."""


GivesCheckContext = Callable[[], CheckContext]


def by_log(batches: Batches) -> Batches:
    """Sends candidates that some check wants, and contradictions, to where all of their log are."""
    writer = Writer()
    for packed in read(batches):
        if packed.kind in (Kind.CANDIDATE, Kind.CONTRADICTION):
            rows: Any = packed.rows()
            if isinstance(rows, Candidate):
                rows = rows.take(rows.marks != 0)
            writer.spread(rows.log, 0, rows)
            yield from writer.batches()
    yield from writer.batches(everything=True)


def _logs(batches: Batches) -> Iterator[tuple[int, Facts]]:
    """Takes rows that are sorted by log apart, log by log."""
    for log, rows in groupby(read(batches), lambda packed: packed.owner):
        yield log, Facts(packed.rows() for packed in rows)


def words_wanted(given: GivesCheckContext) -> Task:
    """Turns rows, sorted by log, into notes of the events whose words checks want to read."""

    def run(batches: Batches) -> Batches:
        context, writer = given(), Writer()
        for log, facts in _logs(batches):
            rows = facts.of(Candidate)
            expected: set[int] = set()
            for check in context.checks:
                if check.words_of is not None:
                    bits = context.marks.bits(check.marks)
                    index = check.words_of(rows.take((rows.marks & bits) != 0))
                    expected |= set(index[index != NONE].tolist())
            about = context.runs[log >> 32].of_number.get(log)
            values = sorted(set(rows.value.tolist())) if about is not None and about.compacted else []
            if expected or values:
                writer.note(log, 0, {"index": sorted(expected), "values": values})
        yield from writer.batches(everything=True)

    return run


def words_of(wanted: Callable[[], Mapping[int, Ints]]) -> Task:
    """Turns splits into notes of what events say in words. ``wanted``: run -> indexes, ascending."""

    def run(batches: Batches) -> Batches:
        indexes, writer = wanted(), Writer()
        for split, _ in splits_in(batches):
            of_run = indexes.get(split.run)
            if of_run is None:
                continue
            columns = ("index", "node", "error", "extra")
            for batch in events_of(split, columns, (int(of_run[0]), int(of_run[-1]))):
                there = np.isin(ints(batch.column("index")), of_run)
                for row in batch.filter(pa.array(there)).to_pylist():
                    writer.note(owner_of_run(split.run), 0, row)
            yield from writer.batches()
        yield from writer.batches(everything=True)

    return run


def found_at_places(given: GivesCheckContext) -> Task:
    """Turns rows, sorted by log, into findings."""

    def run(batches: Batches) -> Batches:
        context = given()
        for log, facts in _logs(batches):
            yield from _findings(_found_in(log, facts, context), context)

    return run


def _found_in(log: int, facts: Facts, context: CheckContext) -> Iterator[tuple[int, Finding]]:
    number = int(run_of(np.array([log]))[0])
    run = context.runs[number]
    about = run.of_number.get(log)
    if about is None:
        return
    rows = facts.of(Candidate)
    rows = rows.take(np.lexsort([*reversed(rows.columns()), rows.value, rows.offset]))
    contradictions = facts.of(Contradiction)
    at = Places(
        run,
        about,
        rows,
        contradictions,
        context.marks,
        context.words.get(number, {}),
        context.last_of_keys.get(log, {}),
    )
    there = int(np.bitwise_or.reduce(rows.marks))
    there |= context.marks.bits({RULES[rule][0] for rule in np.unique(contradictions.rule).tolist()})
    for check in context.checks:
        if check.find is not None and there & context.marks.bits(check.marks):
            with part_of_the_judge(f"check {check.name}", check.find.__module__):
                for finding in check.find(replace(at, anomaly=check.name)):
                    yield number, finding


def _findings(found: Iterable[tuple[int, Finding]], context: CheckContext) -> Batches:
    rows: list[dict[str, Any]] = []
    for run, finding in found:
        row = finished(finding, context.runs[run])
        rows.append({"run": run, "rank": context.ranks[finding.anomaly], **row})
        if len(rows) >= _AT_ONCE:
            yield pa.RecordBatch.from_pylist(rows, FOUND)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, FOUND)


# --- walks


Parts = Callable[[pa.RecordBatch, AboutRun], Ints]


def events_for(given: GivesCheckContext, kinds: frozenset[str], parts_of: Parts | None = None) -> Task:
    """Turns splits into events of these kinds: those of one part of a batch in one row, as Arrow's own
    bytes."""

    def run(batches: Batches) -> Batches:
        context, writer = given(), Writer()
        for split, _ in splits_in(batches):
            for batch in _events(split, kinds):
                one = np.zeros(len(batch), np.int64)
                parts = one if parts_of is None else parts_of(batch, context.runs[split.run])
                for part in np.unique(parts[parts >= 0]).tolist():
                    mine = batch.filter(pa.array(parts == part))
                    first = int(ints(mine.column("index")[:1])[0])
                    writer.put(Packed(split.run, part, Kind.EVENTS, first, _bytes(mine)))
                yield from writer.batches()
        yield from writer.batches(everything=True)

    return run


def _events(split: Split, kinds: frozenset[str]) -> Iterator[pa.RecordBatch]:
    expected = pa.array(sorted(kinds), pa.string())
    for batch in events_of(split):
        mine = batch.filter(pc.is_in(batch.column("f"), expected))
        if len(mine):
            yield mine


def _bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def _batch(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()


def _parts(batches: Batches) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Events that are sorted by run and part, part by part, each with its run and read before the next."""
    for (run, _), rows in groupby(read(batches), place_of):
        yield run, (_batch(packed.data) for packed in rows)


def walked(given: GivesCheckContext, walk: Walk) -> Task:
    """Events, sorted by part and index, to findings and figures: the latter are rows of no anomaly, with JSON
    in the column ``explanation``."""

    def run(batches: Batches) -> Batches:
        context = given()
        for number, events in _parts(batches):
            said = _walked(walk, events, context.runs[number])
            yield from _with_figures(number, said, context)

    return run


def _walked(walk: Walk, events: Iterable[pa.RecordBatch], run: AboutRun) -> Iterator[Finding | Figure]:
    with part_of_the_judge(f"the walk of {walk.name}", walk.find.__module__):
        yield from walk.find(events, run)


FIGURE = -1
"""``rank`` of a row that is a figure."""


def _with_figures(run: int, said: Iterable[Finding | Figure], context: CheckContext) -> Batches:
    figures: list[dict[str, Any]] = []

    def findings() -> Iterator[tuple[int, Finding]]:
        for one in said:
            if isinstance(one, Finding):
                yield run, one
            else:
                figures.append(_row_of(run, one))

    yield from _findings(findings(), context)
    if figures:
        yield pa.RecordBatch.from_pylist(figures, FOUND)


def _row_of(run: int, figure: Figure) -> dict[str, Any]:
    said = orjson.dumps([figure.kind, figure.name, figure.counts]).decode()
    return {"run": run, "rank": FIGURE, "test_id": "", "anomaly": "", "operations": [], "explanation": said}


def figure_in(explanation: str) -> Figure:
    """Decodes the figure of a row."""
    return Figure(*orjson.loads(explanation))


# --- keys


def last_of_keys(given: GivesCheckContext, wanted: Callable[[], Mapping[int, Sequence[int]]]) -> Task:
    """Events of compacted topics, sorted by run and index, to notes: value -> the highest offset of its key.
    ``wanted``: log -> values."""

    def run(batches: Batches) -> Batches:
        context, values, writer = given(), wanted(), Writer()
        for number, events in _parts(batches):
            about = context.runs[number]
            keys = LastOfKeys(about)
            for batch in events:
                keys.take(EventBatch(batch, about))
            for log in about.of_number.keys() & values.keys():
                some = np.array(values[log], np.int64)
                last = keys.of_values(log, some)
                pairs = np.stack([some, last], axis=1)[last != NONE]
                writer.note(log, 0, {"last": pairs.tolist()})
        yield from writer.batches(everything=True)

    return run
