"""What a transaction promises to those who read (docs/anomalies.md section 5), besides what cycles show
(wrackline.checkers.anomalies.cycles).

A run has transactions where operations have ``extra.txn`` (wrackline.history.model); elsewhere nothing of
this is planned. What each sent, what was asked for and what became of it is brought together once, with one
row for each record (wrackline.checkers.anomalies.transaction_tables).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.cycles import TRANSACTIONS
from wrackline.checkers.anomalies.evidence import (
    Window,
    findings,
    place,
    process_label,
    say,
    seconds,
    value_label,
)
from wrackline.checkers.anomalies.explained_by import IN_ANY_ORDER, By, ExplainedBy
from wrackline.checkers.anomalies.group_commits import operations, reached, succeeded
from wrackline.checkers.anomalies.group_tables import COMMIT, COMMITTED, deliveries, kept, readers
from wrackline.checkers.anomalies.registry import Evidence, Findings, check
from wrackline.checkers.anomalies.transaction_tables import (
    Sent,
    Whole,
    final,
    given,
    never_asked,
    same_record,
    sent,
    whole_transactions,
)
from wrackline.checkers.engine.frames import Frame, all_of, packed, unpacked
from wrackline.checkers.engine.tables import LogOfRun, ValueOf
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise

READ_UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True, slots=True)
class _Early(Table[Column]):
    """The first poll that gave a record too early."""

    others: Column
    """Whether none of the transaction itself did."""
    poll_index: Column
    poll_ns: Column
    poll_process: Column
    offset: Column


@dataclass(frozen=True, slots=True)
class _Poll(Table[Column]):
    index: Column
    ns: Column
    offset: Column


@dataclass(frozen=True, slots=True)
class _Torn(Table[Column]):
    """A transaction of which a part is visible."""

    whole: Whole
    group: Column
    """The group that has its offsets; null: of its records a part is visible."""
    answer_index: Column
    """The event that shows that the group has them."""


@dataclass(frozen=True, slots=True)
class _OffsetOfGroup(Table[Column]):
    run: Column
    log: Column
    group: Column
    offset: Column


@dataclass(frozen=True, slots=True)
class _Makers(Table[Column]):
    count: Column


@dataclass(frozen=True, slots=True)
class _Transaction(Table[Column]):
    run: Column
    txn: Column


@dataclass(frozen=True, slots=True)
class _Answer(Table[Column]):
    group: Column
    index: Column


@dataclass(frozen=True, slots=True)
class _LastGiven(Table[Column]):
    """The last time that a group was given a record."""

    index: Column
    ns: Column
    process: Column


@dataclass(frozen=True, slots=True)
class _Deliveries(Table[Column]):
    undone: Column
    """Whether all of them were to aborted transactions."""
    last: _LastGiven


def _in_log(record: Sent, log: LogOfRun) -> Column:
    return all_of(record.run == log.run, record.topic == log.topic, record.partition == log.partition)


@check(
    "precommitted-read",
    Family.TRANSACTIONS,
    "precommitted-read",
    "a record was given to a consumer before its transaction was asked to end, or to the transaction itself",
    breaks=Promise.COMMITTED_READS,
    marks=[TRANSACTIONS],
)
def precommitted_read(evidence: Evidence) -> Findings:
    """Whatever became of the transaction, and once per record. ``where``: ``its own`` (a transaction's polls
    come before its end), ``before its end`` (by the clock, of any consumer)."""
    polls, sends = given(evidence.tables), sent(evidence)
    g, s = polls.c, sends.c
    own = F.coalesce(g.txn == s.txn, F.lit(False))
    early = F.coalesce(g.poll_ns < s.end_ns, F.lit(False))
    first = F.min(
        packed(
            _Early(
                others=~own,
                poll_index=g.poll_index,
                poll_ns=g.poll_ns,
                poll_process=g.poll_process,
                offset=g.offset,
            )
        )
    )
    read = polls.join(sends, same_record(g, s)).filter(own | early).grouped(s, unpacked(_Early, first))
    one, poll = read.c
    logs = evidence.tables.logs_of_runs.small()
    rows = read.join(logs, _in_log(one, logs.c))
    value = value_label(one.value)
    itself = say(
        "Transaction %d sent value %s at %s and read it itself, at offset %,d of %s at %s, when it cannot "
        "have been committed yet",
        *(one.txn, value, seconds(one.invoke_ns), poll.offset, place(one), seconds(poll.poll_ns)),
    )
    other = say(
        "Process %s read value %s of transaction %d, at offset %,d of %s at %s, before the %s of the "
        "transaction was asked for at %s",
        *(process_label(poll.poll_process), value, one.txn, poll.offset, place(one), seconds(poll.poll_ns)),
        *(F.coalesce(one.asked, F.lit("end")), seconds(one.end_ns)),
    )
    return findings(
        rows,
        "precommitted-read",
        at=logs.c,
        offset=poll.offset,
        value=one.value,
        operations=[one.invoke_index, poll.poll_index],
        where=F.when(poll.others, "before its end").otherwise("its own"),
        sentence=F.when(poll.others, other).otherwise(itself),
        around=Window(one.invoke_ns, poll.poll_ns),
    )


def visible_though_aborted(evidence: Evidence) -> Findings:
    """``aborted-read`` of transactions whose end is unknown and whose commit nobody asked for: whatever the
    calls returned, nobody wanted these records to be visible. Once per record."""
    tables = evidence.tables
    sends, polls, asked, stored = sent(evidence), given(tables), readers(tables), final(tables)
    s, g, reader, kept_ = sends.c, polls.c, asked.c, stored.c
    first = F.min(packed(_Poll(index=g.poll_index, ns=g.poll_ns, offset=g.offset)))
    first_polls = polls.grouped(ValueOf(g.run, g.topic, g.partition, g.value), unpacked(_Poll, first))
    (p, poll), logs = first_polls.c, tables.logs_of_runs.small()
    rows = (
        sends.filter(never_asked(s))
        .join(asked, (s.run == reader.run) & (reader.isolation != READ_UNCOMMITTED))
        .join(first_polls, same_record(s, p), "left")
        .join(stored, same_record(s, kept_), "left")
        .filter(poll.index.isNotNull() | kept_.final_index.isNotNull())
        .join(logs, _in_log(s, logs.c))
    )
    offset = F.coalesce(kept_.final_offset, poll.offset)
    by = F.when(kept_.final_index.isNotNull(), F.lit("the final read")).otherwise(
        say("a consumer at %s", seconds(poll.ns))
    )
    return findings(
        rows,
        "aborted-read",
        at=logs.c,
        offset=offset,
        value=s.value,
        operations=[s.invoke_index, s.complete_index, poll.index, kept_.final_index],
        where=F.lit("abort failed"),
        sentence=say(
            "Value %s is of transaction %d, whose commit nobody asked for (it ended without success at %s), "
            "but the value was read at offset %,d of %s by %s",
            *(value_label(s.value), s.txn, seconds(s.complete_ns), offset, place(s), by),
        ),
        around=Window(s.invoke_ns, poll.ns),
    )


@check(
    "torn-transaction",
    Family.TRANSACTIONS,
    "–",
    "of one transaction a part is visible and a part is not",
    breaks=Promise.WHOLE_TRANSACTIONS,
    rests_on_final_read=True,
    marks=[TRANSACTIONS],
    explained_by=ExplainedBy(By.FACTS, transactions=True),
)
def torn_transaction(evidence: Evidence) -> Findings:
    """Once per transaction. ``where``: ``committed`` or ``end unknown`` (some of its records are in the final
    read and some are not), ``offsets`` (a group has its offsets, and the final read has none of its
    records)."""
    every = whole_transactions(evidence)
    w = every.c
    none = _Torn(whole=w, group=F.lit(None).cast("string"), answer_index=F.lit(None).cast("bigint"))
    half = every.filter((w.seen > 0) & (w.gone > 0)).select(none)
    if any({COMMIT, COMMITTED} <= run.kinds for run in evidence.tables.runs):
        half = half.union(_without_output(evidence, every))
    c, w = half.c, half.c.whole
    gone, seen = w.one_gone, w.one_seen
    ended = F.when(w.type == "ok", say("was committed at %s", seconds(w.complete_ns))).otherwise(
        "may have been committed"
    )
    part = say(
        "Transaction %d %s, but only a part of it is there: the final read has %,d of its %,d records (such "
        "as value %s at offset %,d of %s) and lacks %,d (such as value %s of %s)",
        *(w.txn, ended, w.seen, w.records, value_label(seen.value), seen.final_offset, place(seen)),
        *(w.gone, value_label(gone.value), place(gone)),
    )
    offsets = say(
        "Transaction %d %s, but only a part of it is there: group %s has its offsets, and the final read has "
        "none of its records (it lacks value %s of %s, for example)",
        *(w.txn, ended, c.group, value_label(gone.value), place(gone)),
    )
    known = F.when(w.type == "ok", "committed").otherwise("end unknown")
    return findings(
        half,
        "torn-transaction",
        at=gone,
        offset=F.when(gone.offset >= 0, gone.offset),
        value=gone.value,
        operations=[w.invoke_index, w.complete_index, seen.final_index, c.answer_index],
        where=F.when(c.group.isNotNull(), "offsets").otherwise(known),
        sentence=F.when(c.group.isNotNull(), offsets).otherwise(part),
        around=Window(w.invoke_ns),
    )


def _without_output(evidence: Evidence, every: Frame[Whole]) -> Frame[_Torn]:
    """Transactions none of whose records are in the final read, and whose offsets a group was answered to
    have committed: no less than theirs, where the commit had succeeded; where its end is unknown theirs
    exactly, which nobody else committed."""
    tables = evidence.tables
    all_commits = operations(tables, COMMIT)
    commits, asked = (
        all_commits.filter(all_commits.c.type != "fail"),
        succeeded(operations(tables, COMMITTED)),
    )
    c, t = commits.c, asked.c
    makers = commits.grouped(_OffsetOfGroup(c.run, c.log, c.group, c.offset), _Makers(count=F.count("*")))
    m, made = makers.c
    of_same = all_of(m.run == c.run, m.log == c.log, m.group == c.group, m.offset == c.offset)
    shows = ((c.type == "ok") & (t.offset >= c.offset)) | ((made.count == 1) & (t.offset == c.offset))
    later = all_of(
        t.run == c.run,
        t.log == c.log,
        t.group == c.group,
        t.invoke_index > F.coalesce(c.complete_index, c.invoke_index),
    )
    first = F.min(packed(_Answer(group=c.group, index=t.complete_index)))
    answered = (
        commits.filter(c.txn.isNotNull())
        .join(makers, of_same)
        .join(asked, later & shows)
        .grouped(_Transaction(c.run, c.txn), unpacked(_Answer, first))
    )
    w, (a, answer) = every.c, answered.c
    silent = every.filter((w.gone > 0) & (w.gone == w.records))
    return silent.join(answered, (w.run == a.run) & (w.txn == a.txn)).select(
        _Torn(whole=w, group=answer.group, answer_index=answer.index)
    )


@check(
    "unprocessed-input",
    Family.TRANSACTIONS,
    "–",
    "a group committed past a record that it was given in aborted transactions alone",
    breaks=Promise.PROCESSED_INPUT,
    marks=[TRANSACTIONS],
    explained_by=IN_ANY_ORDER,
)
def unprocessed_input(evidence: Evidence) -> Findings:
    """Of records that are in the final read. A transaction of unknown end may have processed what it was
    given."""
    tables = evidence.tables
    polls, far, records = deliveries(tables), reached(tables).small(), kept(evidence)
    d, r, k = polls.c, far.c, records.c
    last = F.max(packed(_LastGiven(index=d.poll_index, ns=d.poll_ns, process=d.poll_process)))
    each = polls.grouped(
        _OffsetOfGroup(d.run, d.log, d.group, d.offset),
        _Deliveries(undone=F.min(d.undone), last=unpacked(_LastGiven, last)),
    )
    u, given_ = each.c
    poll = given_.last
    passed = all_of(u.run == r.run, u.log == r.log, u.group == r.group, u.offset < r.last.offset)
    there = all_of(k.run == r.run, k.topic == r.topic, k.partition == r.partition, k.offset == u.offset)
    rows = each.filter(given_.undone).join(far, passed).join(records, there)
    return findings(
        rows,
        "unprocessed-input",
        at=r,
        offset=k.offset,
        value=k.value,
        operations=[poll.index, r.last.complete_index, k.final_index],
        sentence=say(
            "Value %s is at offset %,d of %s, and group %s committed offset %,d (process %s did, at %s), but "
            "the group was given that record in aborted transactions alone, last to process %s at %s",
            *(value_label(k.value), k.offset, place(r), r.group, r.last.offset),
            *(process_label(r.last.process), seconds(r.last.complete_ns)),
            *(process_label(poll.process), seconds(poll.ns)),
        ),
        around=Window(poll.ns, r.last.complete_ns),
    )
