"""Tables of commits: what groups committed, what was answered when somebody asked for it, and which commits
may have taken effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.group_tables import (
    COMMIT,
    OfGroup,
    by_partition,
    events,
    generation_of,
    group_of,
    said,
)
from wrackline.checkers.engine.frames import Frame, packed, unpacked
from wrackline.checkers.engine.tables import Partition, Tables
from wrackline.checkers.inputs.table import Table

_FOR_EVER = 2**62
G = TypeVar("G", bound=OfGroup)


@dataclass(frozen=True, slots=True)
class Operation(OfGroup):
    """A ``commit`` or ``committed`` of one partition. ``complete_*`` are null where it never completed."""

    log_end: Column
    complete: Column
    """Whether the final read reached ``log_end``."""
    offset: Column
    """-1 where nothing was committed."""
    invoke_ns: Column
    complete_index: Column
    complete_ns: Column
    type: Column
    member: Column
    generation: Column
    txn: Column
    """The number of its transaction; null: of none."""
    asked: Column
    """Which end of its transaction was asked for; null: it is not on record."""
    mode: Column
    """``sync``, ``async`` or empty."""


@dataclass(frozen=True, slots=True)
class Before(Table[Column]):
    """A commit that had succeeded before."""

    offset: Column
    index: Column
    """Of its completion, as ``ns``."""
    ns: Column
    since: Column
    """Index of its invocation."""


@dataclass(frozen=True, slots=True)
class Account(Table[Column]):
    """A commit that took effect, or may have, and the index until when it may."""

    run: Column
    log: Column
    group: Column
    offset: Column
    invoke_index: Column
    until: Column


@dataclass(frozen=True, slots=True)
class LastCommit(Table[Column]):
    offset: Column
    complete_index: Column
    complete_ns: Column
    process: Column


@dataclass(frozen=True, slots=True)
class _InPartition(Partition):
    group: Column


@dataclass(frozen=True, slots=True)
class Reached(_InPartition):
    """How far a group committed in a partition."""

    last: LastCommit
    """The largest offset whose commit succeeded."""
    low_commit: Column
    """The smallest."""


@dataclass(frozen=True, slots=True)
class _Far(Table[Column]):
    last: LastCommit
    low_commit: Column


@dataclass(frozen=True, slots=True)
class _Ended(Table[Column]):
    type: Column
    index: Column
    ns: Column
    extra: Column


@dataclass(frozen=True, slots=True)
class _InTime(Table[Column]):
    run: Column
    log: Column
    group: Column
    at: Column
    row: Column
    commit: Column


def operations(tables: Tables, f: str) -> Frame[Operation]:
    """One row per partition of a ``commit`` or ``committed``."""
    every = events(tables, f)
    e = every.c
    by_process = SqlWindow.partitionBy(e.run, e.process).orderBy(e.index)
    ended = packed(_Ended(type=e.type, index=e.index, ns=e.time_ns, extra=e.extra))
    every, following = every.plus(F.lead(ended).over(by_process))
    next_ = unpacked(_Ended, following)
    answered = F.coalesce(next_.type != "invoke", F.lit(False))
    extra = F.coalesce(F.when(answered, next_.extra), e.extra)
    named = by_partition(every.filter(e.type == "invoke"), e.run, e.topic, said(extra, "offsets"), tables)
    _, log, offset = named.c
    return named.filter(offset >= (0 if f == COMMIT else -1)).select(
        Operation(
            run=e.run,
            log=log.log,
            topic=log.topic,
            partition=log.partition,
            log_end=log.log_end,
            complete=log.complete,
            group=group_of(extra),
            process=e.process,
            offset=offset,
            invoke_index=e.index,
            invoke_ns=e.time_ns,
            complete_index=F.when(answered, next_.index),
            complete_ns=F.when(answered, next_.ns),
            type=F.coalesce(F.when(answered, next_.type), F.lit("info")),
            member=said(extra, "member"),
            generation=generation_of(extra),
            txn=said(extra, "txn").cast("bigint"),
            asked=said(extra, "asked"),
            mode=F.coalesce(said(extra, "mode"), F.lit("")),
        )
    )


def succeeded(some: Frame[Operation]) -> Frame[Operation]:
    return some.filter(some.c.type == "ok")


def with_largest_before(asked: Frame[G], acked: Frame[Operation]) -> Frame[tuple[G, Before]]:
    """Each row with the largest offset whose commit had succeeded before it was invoked (null: none had)."""
    a, b = asked.c, acked.c
    commit = Before(offset=b.offset, index=b.complete_index, ns=b.complete_ns, since=b.invoke_index)
    rows = asked.select(
        _InTime(run=a.run, log=a.log, group=a.group, at=a.invoke_index, row=packed(a), commit=F.lit(None))
    )
    commits = acked.select(
        _InTime(
            run=b.run, log=b.log, group=b.group, at=b.complete_index, row=F.lit(None), commit=packed(commit)
        )
    )
    both = rows.union(commits)
    x = both.c
    until_here = (
        SqlWindow.partitionBy(x.run, x.log, x.group)
        .orderBy(x.at)
        .rowsBetween(SqlWindow.unboundedPreceding, -1)
    )
    both, before = both.plus(F.max(x.commit).over(until_here))
    found = both.filter(x.row.isNotNull())
    return Frame(found.rows, (unpacked(type(a), x.row), unpacked(Before, before)))


def reached(tables: Tables) -> Frame[Reached]:
    """How far each group committed, one row per partition."""
    commits = succeeded(operations(tables, COMMIT))
    c = commits.c
    last = F.max(
        packed(
            LastCommit(
                offset=c.offset,
                complete_index=c.complete_index,
                complete_ns=c.complete_ns,
                process=c.process,
            )
        )
    )
    far = commits.grouped(
        _InPartition(run=c.run, log=c.log, topic=c.topic, partition=c.partition, group=c.group),
        _Far(last=unpacked(LastCommit, last), low_commit=F.min(c.offset)),
    )
    of, found = far.c
    return far.select(
        Reached(
            run=of.run,
            log=of.log,
            topic=of.topic,
            partition=of.partition,
            group=of.group,
            last=found.last,
            low_commit=found.low_commit,
        )
    )


def may_follow(account: Account, row: OfGroup, since: Column) -> Column:
    """Whether a commit may have taken effect after another that was invoked at the index ``since``."""
    same = (account.run == row.run) & (account.log == row.log) & (account.group == row.group)
    return same & (account.until > since)


def accounts(commits: Frame[Operation]) -> Frame[Account]:
    """Commits that took effect, or may have. Of a transaction of which nothing but its abort was asked for it
    may not."""
    c = commits.c
    may = (c.type != "fail") & (F.coalesce(c.asked, F.lit("")) != "abort")
    return commits.filter(may).select(
        Account(
            run=c.run,
            log=c.log,
            group=c.group,
            offset=c.offset,
            invoke_index=c.invoke_index,
            until=F.when(c.type == "ok", c.complete_index).otherwise(F.lit(_FOR_EVER)),
        )
    )
