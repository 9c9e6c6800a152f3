"""What the generations of a group promise (docs/anomalies.md section 5): each begins where its group had
committed, what is committed somebody committed, and a partition has one owner.

A ``rebalance`` event lists the partitions that a member has from then on (wrackline.history.model). A member
is known by the name that the group gave it, where the client knows that, else by its process.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import Window, findings, place, process_label, say, seconds
from wrackline.checkers.anomalies.explained_by import IN_ANY_ORDER
from wrackline.checkers.anomalies.group_commits import (
    Operation,
    accounts,
    may_follow,
    operations,
    succeeded,
    with_largest_before,
)
from wrackline.checkers.anomalies.group_tables import (
    COMMIT,
    COMMITTED,
    REBALANCE,
    OfGroup,
    by_partition,
    events,
    generation_of,
    group_of,
    readers,
    said,
)
from wrackline.checkers.anomalies.ownership import Owned, Present, empty_handed, owned_partitions
from wrackline.checkers.anomalies.registry import Evidence, Findings, check
from wrackline.checkers.engine.frames import Frame, all_of, packed, unpacked
from wrackline.checkers.engine.tables import Partition, Tables
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise

_COMMITTED_ONLY = "read_committed"


@dataclass(frozen=True, slots=True)
class _Start(OfGroup):
    """The offset at which a member began in a partition. ``invoke_index`` and ``ns`` are of that event."""

    generation: Column
    ns: Column
    start: Column
    joined: Column
    """Index at which its process subscribed; null: that is not on record."""


@dataclass(frozen=True, slots=True)
class _Process(Table[Column]):
    run: Column
    process: Column


@dataclass(frozen=True, slots=True)
class _Index(Table[Column]):
    index: Column


@dataclass(frozen=True, slots=True)
class _Commit(Table[Column]):
    offset: Column
    complete_index: Column
    complete_ns: Column
    process: Column
    since: Column
    """Index of its invocation."""


@dataclass(frozen=True, slots=True)
class _Times(Table[Column]):
    at: Column
    first_at: Column
    process: Column
    ns: Column
    first_process: Column
    first_generation: Column
    first_ns: Column


@dataclass(frozen=True, slots=True)
class _Owners(Partition):
    """A partition that ``first_who`` had when ``who`` was given it."""

    group: Column
    generation: Column
    first_who: Column
    who: Column
    how: Column


@dataclass(frozen=True, slots=True)
class _TwoOwners(Table[Column]):
    owners: _Owners
    times: _Times


def _starts(tables: Tables) -> Frame[_Start]:
    """At which offsets members began in the partitions that they were given."""
    rows, subscribed = events(tables, REBALANCE), events(tables, "subscribe")
    e, s = rows.c, subscribed.c
    joined = subscribed.grouped(_Process(s.run, s.process), _Index(F.min(s.index)))
    who, first = joined.c
    named = by_partition(rows.filter(e.type == "ok"), e.run, e.topic, said(e.extra, "positions"), tables)
    e, log, offset = named.c
    return (
        named.filter(offset >= 0)
        .join(joined, (e.run == who.run) & (e.process == who.process), "left")
        .select(
            _Start(
                run=e.run,
                log=log.log,
                topic=log.topic,
                partition=log.partition,
                group=group_of(e.extra),
                generation=generation_of(e.extra),
                process=e.process,
                joined=first.index,
                invoke_index=e.index,
                ns=e.time_ns,
                start=offset,
            )
        )
    )


def _settled(commits: Frame[Operation], tables: Tables) -> Frame[Operation]:
    """Commits that whoever asks later must see: those that succeeded. The offsets of a transaction become
    visible some time after its commit has succeeded, and only clients at read_committed wait for that."""
    asked = readers(tables)
    c, reader = commits.c, asked.c
    waits = c.txn.isNull() | (reader.isolation == _COMMITTED_ONLY)
    return succeeded(commits).join(asked, c.run == reader.run).filter(waits).select(c)


@check(
    "forgotten-commit",
    Family.GROUPS,
    "–",
    "a generation of a group begins before what the group had committed",
    breaks=Promise.CONSUMERS_GET_ALL,
    needs=[COMMIT],
    explained_by=IN_ANY_ORDER,
)
def forgotten_commit(evidence: Evidence) -> Findings:
    """Only of commits that the new owner must know of: made under an older generation, which the group has
    fenced by then, or answered before the new owner subscribed. An asynchronous one may have been sent later
    than it was asked for, under another generation. Where another commit, that may have taken effect later,
    is of the very offset that it begins at, nothing was forgotten."""
    tables = evidence.tables
    commits = operations(tables, COMMIT)
    settled = _settled(commits, tables)
    begun = with_largest_before(_starts(tables), settled)
    start, largest = begun.c
    below = begun.filter(largest.offset > start.start).select(start)
    s, c = below.c, settled.c
    older = ((c.mode != "async") & (c.generation < s.generation)) | (c.complete_index < s.joined)
    must_know = all_of(
        c.run == s.run,
        c.log == s.log,
        c.group == s.group,
        c.complete_index < s.invoke_index,
        c.offset > s.start,
        older,
    )
    last = F.max(
        packed(
            _Commit(
                offset=c.offset,
                complete_index=c.complete_index,
                complete_ns=c.complete_ns,
                process=c.process,
                since=c.invoke_index,
            )
        )
    )
    behind = below.join(settled, must_know).grouped(s, unpacked(_Commit, last))
    b, before = behind.c
    may = accounts(commits)
    began_there = (may.c.offset == b.start) & (may.c.invoke_index < b.invoke_index)
    forgotten = behind.without(may, may_follow(may.c, b, before.since) & began_there)
    return findings(
        forgotten,
        "forgotten-commit",
        at=b,
        offset=b.start,
        operations=[before.since, before.complete_index, b.invoke_index],
        sentence=say(
            "Process %s was given %s by group %s at %s and began at offset %,d, though process %s had "
            "committed offset %,d at %s",
            *(process_label(b.process), place(b), b.group, seconds(b.ns), b.start),
            *(process_label(before.process), before.offset, seconds(before.complete_ns)),
        ),
        around=Window(before.complete_ns, b.ns),
    )


@check(
    "phantom-commit",
    Family.GROUPS,
    "–",
    "an answer names a committed offset that nobody committed",
    breaks=Promise.ALWAYS,
    needs=[COMMITTED],
    explained_by=IN_ANY_ORDER,
)
def phantom_commit(evidence: Evidence) -> Findings:
    """By commits that did not certainly fail, and that had been asked for by then; the commit of a
    transaction of which nothing but its abort was asked for is none."""
    tables = evidence.tables
    asked, commits = succeeded(operations(tables, COMMITTED)), accounts(operations(tables, COMMIT))
    t, c = asked.c, commits.c
    by_then = all_of(
        c.run == t.run,
        c.log == t.log,
        c.group == t.group,
        c.offset == t.offset,
        c.invoke_index < t.complete_index,
    )
    return findings(
        asked.filter(t.offset >= 0).without(commits, by_then),
        "phantom-commit",
        at=t,
        offset=t.offset,
        operations=[t.invoke_index, t.complete_index],
        sentence=say(
            "Process %s asked for the committed offset of %s for group %s and got %,d at %s, an offset that "
            "nobody had committed",
            *(process_label(t.process), place(t), t.group, t.offset, seconds(t.complete_ns)),
        ),
        around=Window(F.lit(0), t.complete_ns),
    )


@check(
    "double-owner",
    Family.GROUPS,
    "–",
    "a partition is owned by two members of a group at once",
    breaks=Promise.ALWAYS,
    needs=[REBALANCE],
    explained_by=IN_ANY_ORDER,
)
def double_owner(evidence: Evidence) -> Findings:
    """``where``: ``one generation`` (under whatever protocol), ``overlap`` (eager and cooperative, where the
    protocol is known: the first owner took part in the later generation too, so the group waited for it to
    give the partition up, and it had not). Whoever crashed owns nothing any more."""
    owned = owned_partitions(evidence.tables)
    before = owned.select(owned.c)
    o, b = owned.c, before.c
    still = (b.who != o.who) & (b.process != o.process) & (b.at < o.at)
    same_place = (b.run == o.run) & (b.group == o.group) & (b.log == o.log)
    same = owned.join(
        before,
        same_place & (b.generation == o.generation) & still & (b.until.isNull() | (b.until > o.at)),
    ).select(_two(o, b, "one generation"))
    # Who else was in the generation: the group waited for each of them before it began.
    present = owned.select(Present(run=o.run, group=o.group, generation=o.generation, who=o.who))
    others = present.union(empty_handed(evidence.tables)).distinct()
    p = others.c
    took_part = (p.run == o.run) & (p.group == o.group) & (p.generation == o.generation)
    overlap = (
        owned.filter(o.protocol.isin("eager", "cooperative"))
        .join(others, took_part)
        .join(before, same_place & (b.who == p.who) & still & (b.until > o.at))
        .filter((b.generation < o.generation) & (b.protocol == o.protocol))
        .select(_two(o, b, "overlap"))
    )
    every = same.union(overlap)
    c = every.c
    rows = every.grouped(c.owners, unpacked(_Times, F.min(packed(c.times))))
    both, times = rows.c
    return findings(
        rows,
        "double-owner",
        at=both,
        operations=[times.first_at, times.at],
        where=both.how,
        sentence=say(
            "Process %s was given %s by group %s in generation %d at %s, while process %s, which had been "
            "given it in generation %d at %s, had not given it up",
            *(process_label(times.process), place(both), both.group, both.generation, seconds(times.ns)),
            *(process_label(times.first_process), times.first_generation, seconds(times.first_ns)),
        ),
        around=Window(times.first_ns, times.ns),
    )


def _two(owner: Owned, first: Owned, how: str) -> _TwoOwners:
    return _TwoOwners(
        owners=_Owners(
            run=owner.run,
            log=owner.log,
            topic=owner.topic,
            partition=owner.partition,
            group=owner.group,
            generation=owner.generation,
            first_who=first.who,
            who=owner.who,
            how=F.lit(how),
        ),
        times=_Times(
            at=owner.at,
            first_at=first.at,
            process=owner.process,
            ns=owner.ns,
            first_process=first.process,
            first_generation=first.generation,
            first_ns=first.ns,
        ),
    )
