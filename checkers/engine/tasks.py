"""The functions that Spark's tasks run: packets in, packets out, one bucket of a shuffle after another.

A task gets its rows sorted by bucket, so that only one bucket is in memory at a time, whatever the size of
the partition; Spark's sort spills what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.engine.by_value import Bucket
from wrackline.checkers.engine.candidates import COLUMNS as SUSPECT_COLUMNS
from wrackline.checkers.engine.candidates import EPOCH, put, put_suspects, table_of
from wrackline.checkers.engine.context import Context, owner_of_run
from wrackline.checkers.engine.counts import figures_of, longest_gaps
from wrackline.checkers.engine.facts import (
    COLUMNS,
    VALUES,
    Kind,
    Rows,
    Writer,
    grouped,
    packets,
    together,
    unpack,
)
from wrackline.checkers.engine.ingest import Ingest
from wrackline.checkers.engine.object_times import DECIDED, Moments
from wrackline.checkers.engine.object_times import SUMMARIES as OF_STRETCHES
from wrackline.checkers.engine.object_values import Values
from wrackline.checkers.engine.offset_ranges import SUMMARY, Chunk
from wrackline.checkers.engine.per_process import POLLED, SENT, put_sessions, put_steps
from wrackline.checkers.engine.unacknowledged import LogOrder, of_senders, put_mates, put_untold
from wrackline.checkers.inputs.arrays import NONE
from wrackline.checkers.inputs.row_groups import Split
from wrackline.checkers.inputs.runs import BROKEN, surveyed_split, unreadable

Batches = Iterator[pa.RecordBatch]
Told = Callable[[], Context]
"""Gives the context of an analysis, out of a broadcast."""
SPLIT_SCHEMA = "run bigint, number bigint, path string, first bigint, last bigint, partners binary"
EVERYTHING, SENDS, CHUNKS = "everything", "sends", "chunks"


def _splits(batches: Batches) -> Iterator[tuple[Split, bytes]]:
    for batch in batches:
        for row in batch.to_pylist():
            split = Split(row["run"], row["number"], row["path"], row["first"], row["last"])
            yield split, row["partners"]


def surveys(batches: Batches) -> Batches:
    """Splits to packets of one ``Survey`` each."""
    writer = Writer()
    for split, _ in _splits(batches):
        writer.put(split.run, split.number, Kind.META, 1, surveyed_split(split).to_json())
        yield from writer.batches()
    yield from writer.batches(everything=True)


def ingested(told: Told, what: str) -> Callable[[Batches], Batches]:
    """Splits to facts. ``what``: everything, sends alone, or what concerns chunks that are judged again."""

    def run(batches: Batches) -> Batches:
        context = told()
        for split, partners in _splits(batches):
            ingest = Ingest(split, orjson.loads(partners), context, sends_only=what == SENDS)
            try:
                yield from ingest.packets() if what != CHUNKS else _of_chunks(ingest.packets(), context)
            except BROKEN as wrong:
                yield from _problem(split, wrong)

    return run


def _of_chunks(batches: Batches, context: Context) -> Batches:
    for batch in batches:
        keys = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
        mask = pa.array([key in context.again for key in keys], pa.bool_())
        yield batch.filter(mask)


def _problem(split: Split, wrong: Exception) -> Batches:
    writer = Writer()
    said = {"run": split.run, "problem": unreadable(split.path, wrong)}
    writer.put(owner_of_run(split.run), 0, Kind.META, 1, orjson.dumps(said))
    yield from writer.batches(everything=True)


class _Log:
    """What is said of a log as a whole: where processes stood at the edges of splits, leader epochs, gaps in
    acks."""

    def __init__(self, log: int, context: Context) -> None:
        self.log, self.context = log, context
        self._facts: dict[Kind, list[Rows]] = {}

    def take(self, kind: Kind, rows: Rows) -> None:
        self._facts.setdefault(kind, []).append(rows)

    def _rows(self, kind: Kind) -> Rows:
        return together(self._facts.get(kind, []), COLUMNS[kind])

    def put(self, writer: Writer) -> int:
        found = self._edges(writer) + self._epochs(writer)
        gaps = self._rows(Kind.GAP)
        if len(gaps):
            said = {"run": self.log >> 32, "gaps": longest_gaps(self.log, gaps, self.context)}
            writer.put(self.log, -1, Kind.META, 1, orjson.dumps(said))
        return found

    def _edges(self, writer: Writer) -> int:
        """How many findings there may be."""
        edges = self._rows(Kind.EDGE)
        order = np.lexsort((edges.last, edges.order, edges.process, edges.what))
        rows = edges.take(order)
        for name in ("order", "next", "value", "index", "last", "process", "what"):
            rows.columns[f"earlier_{name}"] = np.append(NONE, rows.columns[name])[:-1]
        rows.columns["log"] = np.full(len(rows), self.log)
        same = (rows.earlier_what == rows.what) & (rows.earlier_process == rows.process)
        pairs = rows.take(same & (rows.last == 0) & (rows.earlier_last == 1))
        read = pairs.take((pairs.what == POLLED) & (pairs.earlier_next != NONE) & (pairs.offset != NONE))
        read = read.take(read.offset != read.earlier_next)
        put_steps(writer, read, self.context)
        sent = pairs.take(pairs.what == SENT)
        sent = sent.take(sent.earlier_next > sent.offset)
        put_sessions(writer, sent, self.context)
        return len(read) + len(sent)

    def _epochs(self, writer: Writer) -> int:
        """An epoch that begins before a smaller one ends."""
        epochs = self._rows(Kind.EPOCH)
        found = 0
        if not len(epochs):
            return found
        order, starts, _ = grouped(epochs.node, epochs.epoch)
        rows, at = epochs.take(order), np.flatnonzero(starts)
        node, epoch = rows.node[at], rows.epoch[at]
        first, index = np.minimum.reduceat(rows.first, at), np.minimum.reduceat(rows.index, at)
        last, last_index = np.maximum.reduceat(rows.last, at), np.maximum.reduceat(rows.last_index, at)
        for n in range(1, len(at)):
            smaller = np.flatnonzero(node[:n] == node[n])
            if not len(smaller):
                continue
            highest = smaller[np.lexsort((epoch[smaller], last_index[smaller], last[smaller]))[-1]]
            if last[highest] > first[n]:
                told = {
                    "offset": first[n],
                    "index": index[n],
                    "epoch_high": epoch[n],
                    "told": last[highest],
                    "told_index": last_index[highest],
                    "epoch_low": epoch[highest],
                    "process": node[n],
                    "log": self.log,
                }
                columns = {name: np.array([value], dtype=np.int64) for name, value in told.items()}
                put_suspects(writer, self.context, EPOCH, "disordered epochs", **columns)
                found += 1
        return found


class _Run:
    """What is counted in a run."""

    def __init__(self, run: int, context: Context) -> None:
        self.run, self.context = run, context
        self._tallies: list[Rows] = []

    def take(self, kind: Kind, rows: Rows) -> None:
        assert kind is Kind.TALLY
        self._tallies.append(rows)

    def put(self, writer: Writer) -> int:
        if self._tallies:
            said = figures_of(self.run, self._tallies, self.context)
            writer.put(owner_of_run(self.run), 0, Kind.META, 1, orjson.dumps(said))
        return 0


_BY_VALUE = frozenset({Kind.HOMELESS, Kind.SUSPECT})
_PASSING = frozenset({Kind.META, Kind.BREACH, Kind.UNTOLD, *_BY_VALUE, *DECIDED, *OF_STRETCHES})


def judged(told: Told) -> Callable[[Batches], Batches]:
    """Facts, sorted by (owner, chunk, kind), to suspects, summaries of chunks and counts. What is found by
    value passes, and what is of stretches of objects' time."""

    def run(batches: Batches) -> Batches:
        context = told()
        writer = Writer()
        found = 0
        here: tuple[int, int] | None = None
        bucket: Chunk | Values | _Log | _Run | None = None
        for owner, chunk, kind, n, data in packets(batches):
            if kind in _PASSING:
                found += n if kind in _BY_VALUE else 0
                writer.put(owner, chunk, kind, n, data)
                yield from writer.batches()
                continue
            if (owner, chunk) != here:
                found += _leave(bucket, writer, context)
                yield from writer.batches()
                here, bucket = (owner, chunk), _bucket(owner, chunk, context)
            assert bucket is not None
            bucket.take(kind, unpack(data, n, COLUMNS[kind]))
        found += _leave(bucket, writer, context)
        writer.put(VALUES, 0, Kind.META, 1, orjson.dumps({"by_value": found}))
        yield from writer.batches(everything=True)

    return run


def _bucket(owner: int, chunk: int, context: Context) -> Chunk | Values | _Log | _Run:
    if owner < 0:
        return _Run(-1 - owner, context) if chunk == 0 else Values(-1 - owner, context)
    return _Log(owner, context) if chunk < 0 else Chunk(owner, chunk, context)


def _leave(bucket: Chunk | Values | _Log | _Run | None, writer: Writer, context: Context) -> int:
    """How much there may be to be looked at by value."""
    if isinstance(bucket, Chunk):
        suspects, summary = bucket.judged()
        put(writer, context, suspects, again=bool(context.again))
        writer.rows(bucket.log, bucket.number, Kind.SUMMARY, summary, SUMMARY)
        put_mates(writer, context, bucket.mates)
        return len(suspects)
    return 0 if bucket is None else bucket.put(writer)


def moments(told: Told) -> Callable[[Batches], Batches]:
    """What stretches of objects' time hold, sorted by (owner, chunk), to breaches."""

    def run(batches: Batches) -> Batches:
        context = told()
        writer = Writer()
        here: Moments | None = None
        for owner, chunk, kind, n, data in packets(batches):
            if here is None or (owner, chunk) != (here.log, here.number):
                if here is not None:
                    here.put(writer)
                    yield from writer.batches()
                here = Moments(owner, chunk, context)
            here.take(kind, unpack(data, n, COLUMNS[kind]))
        if here is not None:
            here.put(writer)
        yield from writer.batches(everything=True)

    return run


def by_value(told: Told) -> Callable[[Batches], Batches]:
    """Suspects and sends, sorted by bucket of their value, to the suspects that some check wants, and
    counts."""

    def run(batches: Batches) -> Batches:
        context = told()
        writer = Writer()
        here: int | None = None
        bucket = Bucket(context)
        for owner, chunk, kind, n, data in packets(batches):
            if kind is Kind.META:  # a history that cannot be read says so again
                continue
            if chunk != here:
                if here is not None:
                    _leave_values(bucket, writer)
                    yield from writer.batches()
                here, bucket = chunk, Bucket(context)
            names = SUSPECT_COLUMNS if kind is Kind.SUSPECT else COLUMNS[kind]
            bucket.take(owner, kind, unpack(data, n, names))
        if here is not None:
            _leave_values(bucket, writer)
        yield from writer.batches(everything=True)

    return run


def _leave_values(bucket: Bucket, writer: Writer) -> None:
    rows, unproven, unmatched = bucket.judged()
    said = {
        "unproven": [[run, *both] for run, both in unproven.items()],
        "unmatched": unmatched,
        "untold": len(bucket.untold),
        "marks": bucket.context.marks.counted(rows),
    }
    writer.put(VALUES, 0, Kind.META, 1, orjson.dumps(said))
    writer.rows(VALUES, 0, Kind.SUSPECT, rows, SUSPECT_COLUMNS)
    put_untold(writer, bucket.context, bucket.untold)


def in_order(told: Told) -> Callable[[Batches], Batches]:
    """Records of Kind.UNTOLD, sorted by (owner, chunk), to the suspects among them, and counts."""

    def run(batches: Batches) -> Batches:
        context = told()
        writer = Writer()
        here: tuple[int, int] | None = None
        parts: list[Rows] = []
        log = LogOrder(context.marks)
        for owner, chunk, kind, n, data in packets(batches):
            if here is not None and (owner, chunk) != here:
                _leave_order(here[0], parts, log, writer, context)
                yield from writer.batches()
                log = log if owner == here[0] else LogOrder(context.marks)
                parts = []
            here = owner, chunk
            parts.append(unpack(data, n, COLUMNS[kind]))
        if here is not None:
            _leave_order(here[0], parts, log, writer, context)
        yield from writer.batches(everything=True)

    return run


def _leave_order(owner: int, parts: list[Rows], log: LogOrder, writer: Writer, context: Context) -> None:
    rows = together(parts, COLUMNS[Kind.UNTOLD])
    found = log.judged(rows) if owner >= 0 else of_senders(rows, context.marks)
    if len(found):
        whole = found.completed(SUSPECT_COLUMNS)
        writer.put(VALUES, 0, Kind.META, 1, orjson.dumps({"marks": context.marks.counted(whole)}))
        writer.rows(VALUES, 0, Kind.SUSPECT, whole, SUSPECT_COLUMNS)


def unpacked(batches: Batches) -> Batches:
    """Packets of suspects to rows that Spark can read."""
    for _, _, kind, n, data in packets(batches):
        if kind is Kind.SUSPECT:
            yield table_of(unpack(data, n, SUSPECT_COLUMNS))
