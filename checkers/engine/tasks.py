"""The tasks of the plan: facts in, facts out, one place after another.

A task gets its rows sorted by place (owner and part), so that only one is in memory at a time, whatever the
size of the partition; the sort is the executor's (wrackline.checkers.engine.executor).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.engine.candidates import Candidate, Entry, SendOutcome, Step
from wrackline.checkers.engine.context import Context, owner_of_run
from wrackline.checkers.engine.executor import Batches
from wrackline.checkers.engine.fact_codec import AS_A_WHOLE, VALUES, Packed, Writer, read
from wrackline.checkers.engine.facts import (
    Count,
    Edge,
    EndAsked,
    Epoch,
    Facts,
    Gap,
    InFinal,
    Kind,
    Summary,
    grouped,
)
from wrackline.checkers.engine.ingest.counts import figures_of, longest_gaps
from wrackline.checkers.engine.ingest.ingest import Ingest
from wrackline.checkers.engine.ingest.per_process import (
    Pair,
    Walk,
    is_backwards,
    is_elsewhere,
    put_sessions,
    put_steps,
)
from wrackline.checkers.engine.logs.by_value import Bucket
from wrackline.checkers.engine.logs.offset_ranges import Range
from wrackline.checkers.engine.logs.unacknowledged import LogOrder, of_senders, put_to_senders, put_unplaced
from wrackline.checkers.engine.objects.times import DECIDED, SUMMARIES, Interval
from wrackline.checkers.engine.objects.values import Values
from wrackline.checkers.engine.routing import put_candidates, put_found
from wrackline.checkers.inputs.row_groups import Split
from wrackline.checkers.inputs.runs import BROKEN, scanned_split, unreadable
from wrackline.checkers.inputs.table import Ints, Table, constant

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


def ingested(context_of: GivesContext, what: str) -> Callable[[Batches], Batches]:
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
            except BROKEN as wrong:
                yield from _problem(split, wrong)

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


class _Log:
    """What is said of a log as a whole: where processes stood at the edges of splits, leader epochs, gaps in
    acks."""

    def __init__(self, log: int, context: Context) -> None:
        self.log, self.context = log, context
        self._facts = Facts()

    def take(self, rows: Table[Ints]) -> None:
        self._facts.take(rows)

    def put(self, writer: Writer) -> int:
        found = self._edges(writer) + self._epochs(writer)
        gaps = self._facts.of(Gap)
        if len(gaps):
            said = {"run": self.log >> 32, "gaps": longest_gaps(self.log, gaps, self.context)}
            writer.note(self.log, AS_A_WHOLE, said)
        return found

    def _edges(self, writer: Writer) -> int:
        """How many findings there may be."""
        edges = self._facts.of(Edge)
        edges = edges.take(np.lexsort((edges.last, edges.at.order, edges.at.process, edges.what)))
        earlier, later = edges.take(np.arange(len(edges) - 1)), edges.take(np.arange(1, len(edges)))
        same = (earlier.what == later.what) & (earlier.at.process == later.at.process)
        follows = same & (earlier.last == 1) & (later.last == 0)
        pairs = Pair(earlier.at, later.at)
        elsewhere = is_elsewhere(earlier.at.next, later.at.offset)
        read = pairs.take(follows & (later.what == Walk.POLLED) & elsewhere)
        put_steps(writer, read, self.context)
        backwards = is_backwards(earlier.at.next, later.at.offset)
        sent = pairs.take(follows & (later.what == Walk.SENT) & backwards)
        put_sessions(writer, sent, self.context)
        return len(read) + len(sent)

    def _epochs(self, writer: Writer) -> int:
        """An epoch that begins before a smaller one ends."""
        epochs = self._facts.of(Epoch)
        pairs: list[tuple[int, int]] = []
        if not len(epochs):
            return 0
        order, starts, _ = grouped(epochs.node, epochs.epoch)
        rows, at = epochs.take(order), np.flatnonzero(starts)
        whole = Epoch(
            node=rows.node[at],
            epoch=rows.epoch[at],
            first=np.minimum.reduceat(rows.first, at),
            last=np.maximum.reduceat(rows.last, at),
            index=np.minimum.reduceat(rows.index, at),
            last_index=np.maximum.reduceat(rows.last_index, at),
        )
        for n in range(1, len(at)):
            smaller = np.flatnonzero(whole.node[:n] == whole.node[n])
            if not len(smaller):
                continue
            last = whole.last[smaller]
            highest = smaller[np.lexsort((whole.epoch[smaller], whole.last_index[smaller], last))[-1]]
            if whole.last[highest] > whole.first[n]:
                pairs.append((int(highest), n))
        if pairs:
            below, above = (whole.take(np.array(rows)) for rows in zip(*pairs, strict=True))
            put_found(writer, self.context, Step.EPOCH, "disordered epochs", self._disordered(below, above))
        return len(pairs)

    def _disordered(self, smaller: Epoch, larger: Epoch) -> Candidate[Ints]:
        """The larger epoch begins before the smaller one ends."""
        size = len(larger)
        return replace(
            Candidate[Ints].unknown(size),
            log=constant(self.log, size),
            offset=larger.first,
            index=larger.index,
            epoch_high=larger.epoch,
            other_offset=smaller.last,
            rival=replace(Entry[Ints].unknown(size), index=smaller.last_index),
            epoch_low=smaller.epoch,
            process=larger.node,
        )


class _Run:
    """What is counted in a run."""

    def __init__(self, run: int, context: Context) -> None:
        self.run, self.context = run, context
        self._counts: list[Count] = []

    def take(self, rows: Table[Ints]) -> None:
        assert isinstance(rows, Count)
        self._counts.append(rows)

    def put(self, writer: Writer) -> int:
        if self._counts:
            writer.note(owner_of_run(self.run), 0, figures_of(self.run, self._counts, self.context))
        return 0


_BY_VALUE = frozenset({Kind.UNPLACED, Kind.CANDIDATE})
_PASSING = frozenset({Kind.NOTE, Kind.CONTRADICTION, Kind.IN_FINAL, *_BY_VALUE, *DECIDED, *SUMMARIES})


def judged(context_of: GivesContext) -> Callable[[Batches], Batches]:
    """Facts, sorted by (owner, part, kind), to candidates, summaries of ranges and counts. What is looked at
    by value passes, and what is of intervals of objects' time."""

    def run(batches: Batches) -> Batches:
        context = context_of()
        writer = Writer()
        found = 0
        here: tuple[int, int] | None = None
        place: Range | Values | _Log | _Run | None = None
        for packed in read(batches):
            if packed.kind in _PASSING:
                found += packed.size if packed.kind in _BY_VALUE else 0
                writer.put(packed)
                yield from writer.batches()
                continue
            if (packed.owner, packed.part) != here:
                found += _leave(place, writer, context)
                yield from writer.batches()
                here, place = (packed.owner, packed.part), _place(packed.owner, packed.part, context)
            assert place is not None
            place.take(packed.rows())
        found += _leave(place, writer, context)
        writer.note(VALUES, 0, {"by_value": found})
        yield from writer.batches(everything=True)

    return run


def _place(owner: int, part: int, context: Context) -> Range | Values | _Log | _Run:
    if owner < 0:
        return _Run(-1 - owner, context) if part == 0 else Values(-1 - owner, context)
    return _Log(owner, context) if part == AS_A_WHOLE else Range(owner, part, context)


def _leave(place: Range | Values | _Log | _Run | None, writer: Writer, context: Context) -> int:
    """How much there may be to be looked at by value."""
    if isinstance(place, Range):
        candidates, summary = place.judged()
        put_candidates(writer, context, candidates, again=bool(context.again))
        row: Summary[Ints] = Summary.of_columns([constant(value, 1) for value in summary.columns()])
        writer.rows(place.log, place.number, row)
        put_to_senders(writer, context, place.settled)
        return len(candidates)
    return 0 if place is None else place.put(writer)


def intervals(context_of: GivesContext) -> Callable[[Batches], Batches]:
    """What intervals of objects' time hold, sorted by (owner, part), to contradictions."""

    def run(batches: Batches) -> Batches:
        context = context_of()
        writer = Writer()
        here: Interval | None = None
        for packed in read(batches):
            if here is None or (packed.owner, packed.part) != (here.log, here.number):
                if here is not None:
                    here.put(writer)
                    yield from writer.batches()
                here = Interval(packed.owner, packed.part, context)
            here.take(packed.rows())
        if here is not None:
            here.put(writer)
        yield from writer.batches(everything=True)

    return run


def by_value(context_of: GivesContext) -> Callable[[Batches], Batches]:
    """Candidates and sends, sorted by bucket of their value, to the candidates that some check wants, and
    counts."""

    def run(batches: Batches) -> Batches:
        context = context_of()
        writer = Writer()
        here: int | None = None
        bucket = Bucket(context)
        for packed in read(batches):
            if packed.kind is Kind.NOTE:  # a history that cannot be read says so again
                continue
            if packed.part != here:
                if here is not None:
                    _leave_values(bucket, writer)
                    yield from writer.batches()
                here, bucket = packed.part, Bucket(context)
            bucket.take(packed.owner, packed.rows())
        if here is not None:
            _leave_values(bucket, writer)
        yield from writer.batches(everything=True)

    return run


def _leave_values(bucket: Bucket, writer: Writer) -> None:
    rows, unproven, unmatched = bucket.judged()
    said = {
        "unproven": [[run, *both] for run, both in unproven.items()],
        "unmatched": unmatched,
        "unplaced": len(bucket.unplaced),
        "acked_without_offset": int((bucket.unplaced.outcome == SendOutcome.ACKED).sum()),
        "marks": bucket.context.marks.counted(rows),
    }
    writer.note(VALUES, 0, said)
    writer.rows(VALUES, 0, rows)
    put_unplaced(writer, bucket.context, bucket.unplaced)


def in_order(context_of: GivesContext) -> Callable[[Batches], Batches]:
    """Records in the final read and end offsets that were asked for, sorted by (owner, part), to the
    candidates among them, and counts."""

    def run(batches: Batches) -> Batches:
        context = context_of()
        writer = Writer()
        here: tuple[int, int] | None = None
        facts = Facts()
        log = LogOrder(context)
        for packed in read(batches):
            if here is not None and (packed.owner, packed.part) != here:
                _leave_order(here[0], facts, log, writer, context)
                yield from writer.batches()
                log = log if packed.owner == here[0] else LogOrder(context)
                facts = Facts()
            here = packed.owner, packed.part
            facts.take(packed.rows())
        if here is not None:
            _leave_order(here[0], facts, log, writer, context)
        yield from writer.batches(everything=True)

    return run


def _leave_order(owner: int, facts: Facts, log: LogOrder, writer: Writer, context: Context) -> None:
    rows = facts.of(InFinal)
    found = of_senders(rows, context.marks) if owner < 0 else log.judged(owner, rows, facts.of(EndAsked))
    if len(found):
        writer.note(VALUES, 0, {"marks": context.marks.counted(found)})
        writer.rows(VALUES, 0, found)
