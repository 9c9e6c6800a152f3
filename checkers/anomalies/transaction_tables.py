"""Tables of transactions: what each sent, what was asked for and what became of it, and who read of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.group_tables import said
from wrackline.checkers.anomalies.keys import compacted
from wrackline.checkers.anomalies.registry import Evidence
from wrackline.checkers.engine.frames import Frame, all_of, packed, unpacked
from wrackline.checkers.engine.tables import EventRow, RecordOf, Tables, ValueOf, keep
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.metrics import TransactionEnds


@dataclass(frozen=True, slots=True)
class _Begun(Table[Column]):
    invoke_index: Column
    invoke_ns: Column
    transactional_id: Column


@dataclass(frozen=True, slots=True)
class _Done(Table[Column]):
    complete_index: Column
    complete_ns: Column
    type: Column
    asked: Column
    end_ns: Column
    offset: Column


@dataclass(frozen=True, slots=True)
class _BothEnds(Table[Column]):
    """The invocation and the completion of a send."""

    begun: _Begun
    done: _Done


@dataclass(frozen=True, slots=True)
class _Record(Table[Column]):
    run: Column
    txn: Column
    topic: Column
    partition: Column
    value: Column


@dataclass(frozen=True, slots=True)
class Sent(_Record):
    """A record of a transaction."""

    invoke_index: Column
    invoke_ns: Column
    transactional_id: Column
    """Null: it is not on record."""
    complete_index: Column
    complete_ns: Column
    type: Column
    """Null where it never completed."""
    asked: Column
    """``commit`` or ``abort``; null: it is not on record."""
    end_ns: Column
    """When that was asked for."""
    offset: Column
    """That of its acknowledgement, else a code (wrackline.history.model)."""


@dataclass(frozen=True, slots=True)
class Given(Table[Column]):
    """A record that a poll gave."""

    run: Column
    topic: Column
    partition: Column
    value: Column
    offset: Column
    poll_index: Column
    poll_ns: Column
    poll_process: Column
    txn: Column
    """The transaction that the poll was of; null: of none."""


@dataclass(frozen=True, slots=True)
class _Place(Table[Column]):
    final_offset: Column
    final_index: Column


@dataclass(frozen=True, slots=True)
class Final(ValueOf):
    """A value of a partition in the final read."""

    final_offset: Column
    final_index: Column


@dataclass(frozen=True, slots=True)
class About(Table[Column]):
    """One record of a transaction."""

    topic: Column
    partition: Column
    value: Column
    final_offset: Column
    final_index: Column
    run: Column
    log: Column
    offset: Column


@dataclass(frozen=True, slots=True)
class _Transaction(Table[Column]):
    run: Column
    txn: Column


@dataclass(frozen=True, slots=True)
class Whole(Table[Column]):
    """A transaction whose commit was asked for and did not fail, or of which nobody knows the end."""

    run: Column
    txn: Column
    type: Column
    asked: Column
    complete_index: Column
    complete_ns: Column
    invoke_index: Column
    invoke_ns: Column
    records: Column
    """How many it has."""
    seen: Column
    """How many of them are in the final read."""
    gone: Column
    """How many of them are not, though it is whole."""
    one_seen: About
    one_gone: About


@dataclass(frozen=True, slots=True)
class _End(Table[Column]):
    """How a transaction ended."""

    transactional_id: Column
    asked: Column
    """Whether its end was asked for."""
    type: Column


class OfRecord(Protocol):
    """Columns that name a value of a partition."""

    @property
    def run(self) -> Column: ...

    @property
    def topic(self) -> Column: ...

    @property
    def partition(self) -> Column: ...

    @property
    def value(self) -> Column: ...


def same_record(one: OfRecord, other: OfRecord) -> Column:
    return all_of(
        one.run == other.run,
        one.topic == other.topic,
        one.partition == other.partition,
        one.value == other.value,
    )


def _txn(event: EventRow) -> Column:
    return said(event.extra, "txn").cast("bigint")


def _sends(tables: Tables) -> Frame[EventRow]:
    rows = tables.events(tables.transactional)
    return rows.filter((rows.c.f == "send") & rows.c.extra.like('%"txn"%'))


def sent(evidence: Evidence) -> Frame[Sent]:
    """The records of all transactions, computed once."""
    return evidence.once("sent by transactions", lambda: _sent(evidence.tables).made(keep))


def _sent(tables: Tables) -> Frame[Sent]:
    sends = _sends(tables)
    rows = sends.exploded(sends.c.records, RecordOf)
    e, record = rows.c
    txn, invoked = _txn(e), e.type == "invoke"
    begun = _Begun(
        invoke_index=e.index, invoke_ns=e.time_ns, transactional_id=said(e.extra, "transactional_id")
    )
    done = _Done(
        complete_index=e.index,
        complete_ns=e.time_ns,
        type=e.type,
        asked=said(e.extra, "asked"),
        end_ns=said(e.extra, "end_ns").cast("bigint"),
        offset=record.offset,
    )
    ends = _BothEnds(
        begun=unpacked(_Begun, F.min(F.when(invoked, packed(begun)))),
        done=unpacked(_Done, F.max(F.when(~invoked, packed(done)))),
    )
    grouped = rows.filter(txn.isNotNull() & (record.value >= 0)).grouped(
        _Record(e.run, txn, e.topic, record.partition, record.value), ends
    )
    of, found = grouped.c
    return grouped.select(
        Sent(
            run=of.run,
            txn=of.txn,
            topic=of.topic,
            partition=of.partition,
            value=of.value,
            invoke_index=found.begun.invoke_index,
            invoke_ns=found.begun.invoke_ns,
            transactional_id=found.begun.transactional_id,
            complete_index=found.done.complete_index,
            complete_ns=found.done.complete_ns,
            type=found.done.type,
            asked=found.done.asked,
            end_ns=found.done.end_ns,
            offset=found.done.offset,
        )
    )


def never_asked(sent: Sent) -> Column:
    """Whether its transaction ended without success and nobody ever asked for its commit. Where the
    transactional id is on record, so is whatever was asked for."""
    silent = sent.asked.isNull() & sent.transactional_id.isNotNull()
    return (sent.type == "info") & ((sent.asked == "abort") | silent)


def given(tables: Tables) -> Frame[Given]:
    """The records that polls gave."""
    events = tables.events(tables.transactional)
    e = events.c
    rows = events.filter((e.f == "poll") & (e.type == "ok")).exploded(e.records, RecordOf)
    _, record = rows.c
    return rows.select(
        Given(
            run=e.run,
            topic=e.topic,
            partition=record.partition,
            value=record.value,
            offset=record.offset,
            poll_index=e.index,
            poll_ns=e.time_ns,
            poll_process=e.process,
            txn=_txn(e),
        )
    )


def final(tables: Tables) -> Frame[Final]:
    """The values of the final read, each at its lowest offset in a partition."""
    events = tables.events(tables.transactional)
    e = events.c
    rows = events.filter((e.f == "drain") & (e.type == "ok")).exploded(e.records, RecordOf)
    _, record = rows.c
    first = F.min(packed(_Place(final_offset=record.offset, final_index=e.index)))
    grouped = rows.grouped(ValueOf(e.run, e.topic, record.partition, record.value), unpacked(_Place, first))
    of, place = grouped.c
    return grouped.select(
        Final(
            run=of.run,
            topic=of.topic,
            partition=of.partition,
            value=of.value,
            final_offset=place.final_offset,
            final_index=place.final_index,
        )
    )


def whole_transactions(evidence: Evidence) -> Frame[Whole]:
    """One row per transaction. Of a compacted topic, where polls stand for the final read, and below the
    beginning of a log, no record is missing."""
    tables = evidence.tables
    sends, logs, stored = sent(evidence), tables.logs_of_runs.small(), final(tables)
    thinned = compacted(tables).small()
    s, log, there, topic = sends.c, logs.c, stored.c, thinned.c
    in_log = all_of(s.run == log.run, s.topic == log.topic, s.partition == log.partition)
    rows = (
        sends.filter((F.coalesce(s.type, F.lit("")) != "fail") & ~F.coalesce(never_asked(s), F.lit(False)))
        .join(logs, in_log)
        .join(thinned, (s.run == topic.run) & (s.topic == topic.topic), "left")
        .join(stored, same_record(s, there), "left")
    )
    deleted = (log.log_start > 0) & (F.coalesce(s.offset, F.lit(-1)) < log.log_start)
    known = log.complete & log.unread_from.isNull() & topic.run.isNull() & ~deleted
    missing = F.coalesce(known & there.final_index.isNull(), F.lit(False))
    one = packed(
        About(
            topic=s.topic,
            partition=s.partition,
            value=s.value,
            final_offset=there.final_offset,
            final_index=there.final_index,
            run=s.run,
            log=log.log,
            offset=s.offset,
        )
    )
    grouped = rows.grouped(
        _Transaction(s.run, s.txn),
        Whole(
            run=F.max(s.run),
            txn=F.max(s.txn),
            type=F.max(s.type),
            asked=F.max(s.asked),
            complete_index=F.max(s.complete_index),
            complete_ns=F.max(s.complete_ns),
            invoke_index=F.max(s.invoke_index),
            invoke_ns=F.max(s.invoke_ns),
            records=F.count("*"),
            seen=F.count(there.final_index),
            gone=F.count_if(missing),
            one_seen=unpacked(About, F.min(F.when(there.final_index.isNotNull(), one))),
            one_gone=unpacked(About, F.min(F.when(missing, one))),
        ),
    )
    _, whole = grouped.c
    return grouped.select(whole)


def ends(tables: Tables) -> Iterator[tuple[int, str, TransactionEnds]]:
    """The metric ``transaction-ends``: run, transactional id (empty where it is not on record), counts."""
    sends = _sends(tables)
    e = sends.c
    of_each = sends.grouped(
        _Transaction(e.run, said(e.extra, "txn")),
        _End(
            transactional_id=F.coalesce(F.max(said(e.extra, "transactional_id")), F.lit("")),
            asked=F.max(said(e.extra, "end_ns")).isNotNull(),
            type=F.max(F.when(e.type != "invoke", e.type)),
        ),
    )
    of, end = of_each.c
    counts = {
        "transactions": F.count("*"),
        "ends_asked": F.count_if(end.asked),
        "committed": F.count_if(end.type == "ok"),
        "aborted": F.count_if(end.type == "fail"),
        "unknown": F.count_if(F.coalesce(end.type, F.lit("info")) == "info"),
    }
    together = of_each.rows.groupBy(of.run, end.transactional_id).agg(
        *(count.alias(name) for name, count in counts.items())
    )
    for run, transactional_id, *numbers in together.collect():
        yield run, transactional_id, TransactionEnds(**dict(zip(counts, numbers, strict=True)))
