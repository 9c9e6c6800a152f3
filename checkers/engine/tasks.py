"""The tasks of the plan: facts in, facts out, one place after another.

A task gets its rows sorted by place (owner and part), so that only one is in memory at a time, whatever the
size of the partition; the sort is the executor's (wrackline.checkers.engine.executor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.engine.context import Context, owner_of_run
from wrackline.checkers.engine.executor import Batches, Task
from wrackline.checkers.engine.fact_codec import AS_A_WHOLE, VALUES, Packed, Writer, read
from wrackline.checkers.engine.facts import Count, EndAsked, Facts, InFinal, Kind
from wrackline.checkers.engine.ingest.counts import figures_of
from wrackline.checkers.engine.ingest.ingest import Ingest
from wrackline.checkers.engine.logs.by_value import Bucket
from wrackline.checkers.engine.logs.offset_ranges import Range
from wrackline.checkers.engine.logs.unacknowledged import LogOrder, of_senders
from wrackline.checkers.engine.logs.whole_log import WholeLog
from wrackline.checkers.engine.objects.times import DECIDED, SUMMARIES, Interval
from wrackline.checkers.engine.objects.values import Values
from wrackline.checkers.inputs.row_groups import Split
from wrackline.checkers.inputs.runs import BROKEN, scanned_split, unreadable
from wrackline.checkers.inputs.table import Ints, Table

GivesContext = Callable[[], Context]
"""Gives the context of an analysis, out of a broadcast."""
SPLITS = pa.schema(
    [
        ("run", pa.int64()),
        ("number", pa.int64()),
        ("path", pa.string()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("partners", pa.binary()),
    ]
)
EVERYTHING, SENDS, RANGES, ENDS = "everything", "sends", "ranges", "ends"


def splits_in(batches: Batches) -> Iterator[tuple[Split, bytes]]:
    for batch in batches:
        for row in batch.to_pylist():
            split = Split(row["run"], row["number"], row["path"], row["first"], row["last"])
            yield split, row["partners"]


def scans(batches: Batches) -> Batches:
    """Splits to notes of one ``SplitSummary`` each."""
    writer = Writer()
    for split, _ in splits_in(batches):
        writer.put(Packed(split.run, split.number, Kind.NOTE, 1, scanned_split(split).to_json()))
        yield from writer.batches()
    yield from writer.batches(everything=True)


def ingested(context_of: GivesContext, what: str) -> Task:
    """Splits to facts. ``what``: everything, sends alone, what concerns ranges that are judged again, or the
    end offsets that were asked for, by ranges from the log's end down (``in_order``)."""

    def run(batches: Batches) -> Batches:
        context = context_of()
        for split, partners in splits_in(batches):
            ingest = Ingest(split, orjson.loads(partners), context, sends_only=what == SENDS)
            try:
                facts = ingest.facts()
                if what == RANGES:
                    facts = _of_ranges(facts, context)
                yield from facts if what != ENDS else _ends_down(facts)
            except BROKEN as error:
                yield from _problem(split, error)

    return run


def _of_ranges(batches: Batches, context: Context) -> Batches:
    for batch in batches:
        keys = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
        mask = pa.array([key in context.again for key in keys], pa.bool_())
        yield batch.filter(mask)


def _ends_down(batches: Batches) -> Batches:
    for batch in batches:
        asked = batch.filter(pc.equal(batch.column("kind"), int(Kind.END_ASKED)))
        down = pc.negate(asked.column("part"))
        yield asked.set_column(1, batch.schema.field("part"), down)


def _problem(split: Split, wrong: Exception) -> Batches:
    writer = Writer()
    writer.note(owner_of_run(split.run), 0, {"run": split.run, "problem": unreadable(split.path, wrong)})
    yield from writer.batches(everything=True)


class _Run:
    """The counts of one run."""

    def __init__(self, run: int, context: Context) -> None:
        self.run, self.context = run, context
        self._counts: list[Count] = []

    def take(self, rows: Table[Ints]) -> None:
        assert isinstance(rows, Count)
        self._counts.append(rows)

    def put(self, writer: Writer) -> int:
        writer.note(owner_of_run(self.run), 0, figures_of(self.run, self._counts, self.context))
        return 0


class Place(Protocol):
    """Takes up the facts of one place; ``put`` writes what they come to when all are there."""

    def take(self, rows: Table[Ints]) -> None: ...

    def put(self, writer: Writer) -> int:
        """Returns how many rows there may be to be looked at by value."""


def _place(owner: int, part: int, context: Context) -> Place:
    if owner < 0:
        return _Run(-1 - owner, context) if part == 0 else Values(-1 - owner, context)
    return WholeLog(owner, context) if part == AS_A_WHOLE else Range(owner, part, context)


def place_of(packed: Packed) -> tuple[int, int]:
    return packed.owner, packed.part


_BY_VALUE = frozenset({Kind.UNPLACED, Kind.CANDIDATE})
_PASSING = frozenset({Kind.NOTE, Kind.CONTRADICTION, Kind.IN_FINAL, *_BY_VALUE, *DECIDED, *SUMMARIES})


def judged(context_of: GivesContext) -> Task:
    """Facts, sorted by (owner, part, kind), to candidates, summaries of ranges and counts. What is looked at
    by value passes, and what is of intervals of objects' time."""

    def run(batches: Batches) -> Batches:
        context, writer, by_value = context_of(), Writer(), 0
        for (owner, part), rows in groupby(read(batches), place_of):
            place: Place | None = None
            for packed in rows:
                if packed.kind in _PASSING:
                    by_value += packed.size if packed.kind in _BY_VALUE else 0
                    writer.put(packed)
                    yield from writer.batches()
                else:
                    place = place or _place(owner, part, context)
                    place.take(packed.rows())
            if place is not None:
                by_value += place.put(writer)
                yield from writer.batches()
        writer.note(VALUES, 0, {"by_value": by_value})
        yield from writer.batches(everything=True)

    return run


def intervals(context_of: GivesContext) -> Task:
    """Returns the task that turns intervals of objects' time, sorted by (owner, part), into
    contradictions."""

    def run(batches: Batches) -> Batches:
        context, writer = context_of(), Writer()
        for (owner, part), rows in groupby(read(batches), place_of):
            interval = Interval(owner, part, context)
            for packed in rows:
                interval.take(packed.rows())
            interval.put(writer)
            yield from writer.batches()
        yield from writer.batches(everything=True)

    return run


def by_value(context_of: GivesContext) -> Task:
    """Candidates and sends, sorted by bucket of their value, to the candidates that some check wants, and
    counts."""

    def run(batches: Batches) -> Batches:
        context, writer = context_of(), Writer()
        # A history that cannot be read says so again: notes are not looked at.
        facts = (packed for packed in read(batches) if packed.kind is not Kind.NOTE)
        for _, rows in groupby(facts, lambda packed: packed.part):
            bucket = Bucket(context)
            for packed in rows:
                bucket.take(packed.owner, packed.rows())
            bucket.put(writer)
            yield from writer.batches()
        yield from writer.batches(everything=True)

    return run


def in_order(context_of: GivesContext) -> Task:
    """Records in the final read and end offsets that were asked for, sorted by (owner, part), to the
    candidates among them, and counts."""

    def run(batches: Batches) -> Batches:
        context, writer = context_of(), Writer()
        for owner, rows in groupby(read(batches), lambda packed: packed.owner):
            log = LogOrder(context)
            for _, of_range in groupby(rows, place_of):
                facts = Facts(packed.rows() for packed in of_range)
                records = facts.of(InFinal)
                if owner < 0:
                    result = of_senders(records, context.marks)
                else:
                    result = log.judged(owner, records, facts.of(EndAsked))
                if len(result):
                    writer.note(VALUES, 0, {"marks": context.marks.counted(result)})
                    writer.rows(VALUES, 0, result)
                yield from writer.batches()
        yield from writer.batches(everything=True)

    return run
