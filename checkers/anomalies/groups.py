"""Groups and offsets (docs/anomalies.md section 5): what consumers committed, and what members of groups were
given."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import (
    Window,
    findings,
    place,
    process_label,
    say,
    seconds,
    value_label,
)
from wrackline.checkers.anomalies.explained_by import IN_ANY_ORDER, By, ExplainedBy, FurtherRows
from wrackline.checkers.anomalies.group_commits import (
    Before,
    Operation,
    Reached,
    accounts,
    may_follow,
    operations,
    reached,
    succeeded,
    with_largest_before,
)
from wrackline.checkers.anomalies.group_tables import (
    COMMIT,
    COMMITTED,
    REBALANCE,
    Delivery,
    Placed,
    deliveries,
    events,
    generation_of,
    group_of,
    kept,
    members,
    positions,
    without_position,
)
from wrackline.checkers.anomalies.registry import Evidence, Findings, check
from wrackline.checkers.engine.frames import Frame, all_of, packed, unpacked
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise


@dataclass(frozen=True, slots=True)
class _Smaller(Table[Column]):
    """An operation that names a smaller offset than a commit before it."""

    operation: Operation
    before: Before
    how: Column


@dataclass(frozen=True, slots=True)
class _Key(Table[Column]):
    run: Column
    log: Column
    group: Column
    invoke_index: Column


@dataclass(frozen=True, slots=True)
class _Given(Table[Column]):
    """Partitions that a member was given under a generation."""

    generation: Column
    index: Column
    process: Column
    time_ns: Column


@dataclass(frozen=True, slots=True)
class _InTime(Table[Column]):
    run: Column
    group: Column
    at: Column
    given: Column
    commit: Column


@dataclass(frozen=True, slots=True)
class _GroupOfLog(Table[Column]):
    run: Column
    log: Column
    group: Column


@dataclass(frozen=True, slots=True)
class _Lowest(Table[Column]):
    offset: Column


@check(
    "commit-regression",
    Family.GROUPS,
    "–",
    "a committed offset goes back, and no consumer had sought back",
    breaks=Promise.ALWAYS,
    needs=[COMMIT],
    explained_by=IN_ANY_ORDER,
)
def commit_regression(evidence: Evidence) -> Findings:
    """``where``: ``commit`` (a consumer committed less than had been committed, and neither it nor its group
    had sought back to there in between) or ``read`` (the response names a smaller committed offset, or none
    at all, and no commit accounts for it). A commit of unknown outcome accounts for it ever after: it may
    take effect late."""
    tables = evidence.tables
    commits = operations(tables, COMMIT)
    acked = succeeded(commits)
    unasked = _went_back(acked, acked)
    w = unasked.c
    moved = positions(tables)
    unasked = unasked.without(moved, _moved(moved.c, w) & (moved.c.start <= w.operation.offset))
    # Where no rebalance names a position, the consumer began at the committed offset: no less than any commit
    # that may have been the last by then.
    given, may = without_position(tables), accounts(commits)
    a, c, commit = given.c, may.c, w.operation
    last_by_then = (c.invoke_index < a.at) & (c.offset <= commit.offset)
    begun = (
        unasked.join(given, _moved(a, w))
        .join(may, may_follow(c, commit, w.before.since) & last_by_then)
        .select(_Key(run=commit.run, log=commit.log, group=commit.group, invoke_index=commit.invoke_index))
        .distinct()
    )
    b = begun.c
    unasked = unasked.without(
        begun,
        all_of(
            b.run == commit.run,
            b.log == commit.log,
            b.group == commit.group,
            b.invoke_index == commit.invoke_index,
        ),
    )
    asked = _went_back(succeeded(operations(tables, COMMITTED)), acked)
    t = asked.c
    unaccounted = asked.without(
        may, may_follow(c, t.operation, t.before.since) & (c.offset == t.operation.offset)
    )
    rows = unasked.select(_how(w, "commit")).union(unaccounted.select(_how(t, "read")))
    o, before, how = rows.c.operation, rows.c.before, rows.c.how
    who = process_label(o.process)
    committed = say("Process %s committed offset %,d of %s", who, o.offset, place(o))
    none = say(
        "Process %s asked for the committed offset of %s and learned that there is none", who, place(o)
    )
    less = say("Process %s asked for the committed offset of %s and got %,d", who, place(o), o.offset)
    return findings(
        rows,
        "commit-regression",
        at=o,
        offset=F.when(o.offset >= 0, o.offset),
        operations=[before.index, o.invoke_index, o.complete_index],
        where=how,
        sentence=F.concat(
            F.when(how == "commit", committed).when(o.offset < 0, none).otherwise(less),
            say(
                " for group %s at %s, after a commit of offset %,d had succeeded at %s",
                *(o.group, seconds(o.complete_ns), before.offset, seconds(before.ns)),
            ),
        ),
        around=Window(before.ns, o.complete_ns),
    )


def _went_back(asked: Frame[Operation], acked: Frame[Operation]) -> Frame[_Smaller]:
    """Operations that name a smaller offset than a commit that had succeeded before."""
    found = with_largest_before(asked, acked)
    operation, before = found.c
    return found.filter(before.offset > operation.offset).select(
        _Smaller(operation=operation, before=before, how=F.lit(""))
    )


def _how(found: _Smaller, how: str) -> _Smaller:
    return _Smaller(operation=found.operation, before=found.before, how=F.lit(how))


def _moved(placed: Placed, went: _Smaller) -> Column:
    """Whether a consumer or its group was given the partition between the two commits."""
    o = went.operation
    return all_of(
        placed.run == o.run,
        placed.log == o.log,
        (placed.process == o.process) | (placed.member == o.member),
        placed.at > went.before.index,
        placed.at < o.invoke_index,
    )


@check(
    "commit-beyond-end",
    Family.GROUPS,
    "–",
    "an offset was committed past the end of the log",
    breaks=Promise.CONSUMERS_GET_ALL,
    needs=[COMMIT],
    explained_by=ExplainedBy(By.FACTS, further_rows=FurtherRows.FINAL_READ),
)
def commit_beyond_end(evidence: Evidence) -> Findings:
    """Against the end that the final read reached: logs do not get shorter."""
    commits = succeeded(operations(evidence.tables, COMMIT))
    c = commits.c
    return findings(
        commits.filter(c.complete & (c.offset > c.log_end)),
        "commit-beyond-end",
        at=c,
        offset=c.offset,
        operations=[c.invoke_index, c.complete_index],
        sentence=say(
            "Process %s committed offset %,d of %s for group %s at %s, but the final read of the partition "
            "ends at offset %,d",
            *(process_label(c.process), c.offset, place(c), c.group, seconds(c.complete_ns), c.log_end),
        ),
        around=Window(c.complete_ns),
    )


@check(
    "zombie-commit",
    Family.GROUPS,
    "–",
    "the commit of a member that its group had fenced took effect",
    breaks=Promise.ALWAYS,
    needs=[COMMIT],
    explained_by=IN_ANY_ORDER,
)
def zombie_commit(evidence: Evidence) -> Findings:
    """A member is fenced when another one has been given partitions under a later generation of the group."""
    moves, commits = events(evidence.tables, REBALANCE), succeeded(operations(evidence.tables, COMMIT))
    e, c = moves.c, commits.c
    generation = generation_of(e.extra)
    given = _Given(generation=generation, index=e.index, process=e.process, time_ns=e.time_ns)
    both = (
        moves.filter(generation.isNotNull())
        .select(
            _InTime(run=e.run, group=group_of(e.extra), at=e.index, given=packed(given), commit=F.lit(None))
        )
        .union(
            commits.filter(c.generation.isNotNull()).select(
                _InTime(run=c.run, group=c.group, at=c.invoke_index, given=F.lit(None), commit=packed(c))
            )
        )
    )
    x = both.c
    until_here = (
        SqlWindow.partitionBy(x.run, x.group).orderBy(x.at).rowsBetween(SqlWindow.unboundedPreceding, -1)
    )
    both, given_before = both.plus(F.max(x.given).over(until_here))
    newer, commit = unpacked(_Given, given_before), unpacked(Operation, x.commit)
    return findings(
        both.filter(newer.generation > commit.generation),
        "zombie-commit",
        at=commit,
        offset=commit.offset,
        operations=[newer.index, commit.invoke_index, commit.complete_index],
        sentence=say(
            "Process %s committed offset %,d of %s for group %s under generation %d at %s, though process %s "
            "had been given partitions under generation %d at %s",
            *(process_label(commit.process), commit.offset, place(commit), commit.group, commit.generation),
            *(seconds(commit.complete_ns), process_label(newer.process), newer.generation),
            seconds(newer.time_ns),
        ),
        around=Window(newer.time_ns, commit.complete_ns),
    )


@check(
    "group-skip",
    Family.GROUPS,
    "–",
    "a group committed past a record that no member of it was given",
    breaks=Promise.CONSUMERS_GET_ALL,
    needs=[COMMIT],
    explained_by=IN_ANY_ORDER,
)
def group_skip(evidence: Evidence) -> Findings:
    """Of records that are in the final read, from where the group began: the lowest offset that a member was
    put at or given, or that was committed."""
    tables = evidence.tables
    given, put, who = deliveries(tables), positions(tables), members(tables).small()
    d, p, m = given.c, put.c, who.c
    first = given.grouped(_GroupOfLog(d.run, d.log, d.group), _Lowest(F.min(d.offset)))
    began = (
        put.filter(p.start >= 0)
        .join(who, (p.run == m.run) & (p.process == m.process))
        .grouped(_GroupOfLog(p.run, p.log, m.group), _Lowest(F.min(p.start)))
    )
    far = reached(tables)
    r, (of_first, low_given), (of_began, low_start) = far.c, first.c, began.c
    bounds = far.join(first, _of_same_group(r, of_first), "left").join(
        began, _of_same_group(r, of_began), "left"
    )
    low = F.least(low_given.offset, low_start.offset, r.low_commit)
    records = kept(evidence)
    k = records.c
    same_place = all_of(k.run == r.run, k.topic == r.topic, k.partition == r.partition)
    rows = (
        records.join(bounds.small(), same_place)
        .filter((k.offset >= low) & (k.offset < r.last.offset))
        .without(given, _of_same_group(r, d) & (k.offset == d.offset))
    )
    return findings(
        rows,
        "group-skip",
        at=r,
        offset=k.offset,
        value=k.value,
        operations=[r.last.complete_index, k.final_index],
        sentence=say(
            "Value %s is at offset %,d of %s, and group %s committed offset %,d (process %s did, at %s), but "
            "no member of the group was given that record",
            *(value_label(k.value), k.offset, place(r), r.group, r.last.offset),
            *(process_label(r.last.process), seconds(r.last.complete_ns)),
        ),
        around=Window(F.lit(0), r.last.complete_ns),
    )


def _of_same_group(one: Reached, other: _GroupOfLog | Delivery) -> Column:
    return (one.run == other.run) & (one.log == other.log) & (one.group == other.group)
