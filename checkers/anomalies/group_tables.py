"""Tables of what groups did: where members were put, and what they were given.

The events of groups (``commit``, ``committed``, ``rebalance``: wrackline.history.model) are few,
compared with records, so these are plain queries. Only what members were given, and what of it is in the
final read, looks at records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.keys import lasting
from wrackline.checkers.anomalies.registry import Evidence
from wrackline.checkers.engine.frames import Frame, Int, Text, all_of
from wrackline.checkers.engine.tables import EventRow, LogOfRun, Partition, RecordOf, Tables
from wrackline.checkers.inputs.operations import ROWS_OF_MEMBERS
from wrackline.checkers.inputs.table import Table

COMMIT, COMMITTED, REBALANCE = "commit", "committed", "rebalance"
KINDS = frozenset({COMMIT, COMMITTED, "subscribe", *ROWS_OF_MEMBERS})
"""Where none of these is, there is no group."""
_OFFSETS = "map<string,bigint>"
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class OfGroup(Partition):
    """An operation of a group on a partition."""

    group: Column
    process: Column
    invoke_index: Column


@dataclass(frozen=True, slots=True)
class Placed(Table[Column]):
    """A partition that a consumer was given, by itself or by its group."""

    run: Column
    log: Column
    process: Column
    member: Column
    at: Column
    """Index of the event."""


@dataclass(frozen=True, slots=True)
class PlacedAt(Placed):
    start: Column
    """Where it was put."""


@dataclass(frozen=True, slots=True)
class Member(Table[Column]):
    run: Column
    process: Column
    group: Column


@dataclass(frozen=True, slots=True)
class Delivery(Table[Column]):
    """A record that a member of a group was given."""

    run: Column
    log: Column
    group: Column
    offset: Column
    undone: Column
    """Whether the transaction that it was given to was aborted."""
    poll_index: Column
    poll_ns: Column
    poll_process: Column


@dataclass(frozen=True, slots=True)
class Kept(Table[Column]):
    """A record of the final read that no later one of its key follows."""

    run: Column
    topic: Column
    partition: Column
    offset: Column
    value: Column
    final_index: Column


@dataclass(frozen=True, slots=True)
class Reader(Table[Column]):
    """The isolation level that the consumers of a run asked for."""

    run: Int
    isolation: Text


@dataclass(frozen=True, slots=True)
class _OfRecord(Table[Column]):
    run: Column
    group: Column
    log: Column
    offset: Column


@dataclass(frozen=True, slots=True)
class _Count(Table[Column]):
    n: Column


@dataclass(frozen=True, slots=True)
class _Named(Table[Column]):
    """An entry of a map."""

    key: Column
    value: Column


def said(extra: Column, name: str) -> Column:
    """A field of an event's ``extra``, as text."""
    return F.get_json_object(extra, f"$.{name}")


def group_of(extra: Column) -> Column:
    return F.coalesce(said(extra, "group"), F.lit(""))


def generation_of(extra: Column) -> Column:
    return said(extra, "generation").cast("bigint")


def by_partition(
    rows: Frame[A], run: Column, topic: Column, by_number: Column, tables: Tables
) -> Frame[tuple[A, LogOfRun, Column]]:
    """Rows, once for each partition that a map names (JSON, ``by_number``: number -> offset), with the
    partition and the offset."""
    named = rows.exploded(F.map_entries(F.from_json(by_number, _OFFSETS)), _Named)
    _, entry = named.c
    logs = tables.logs_of_runs.small()
    log = logs.c
    same = all_of(run == log.run, topic == log.topic, entry.key.try_cast("int") == log.partition)
    return Frame(named.join(logs, same).rows, (rows.c, log, entry.value))


def _with_groups(tables: Tables) -> list[int]:
    return [number for number, run in enumerate(tables.runs) if run.kinds & KINDS]


def _history(tables: Tables) -> Frame[EventRow]:
    return tables.events(_with_groups(tables))


def _of_members(tables: Tables) -> Frame[EventRow]:
    """Events of the kinds that groups alone have, and ``assign``."""
    return tables.events(_with_groups(tables), KINDS | {"assign"})


def events(tables: Tables, *kinds: str) -> Frame[EventRow]:
    """``kinds``: some of ``_of_members``."""
    rows = _of_members(tables)
    return rows.filter(rows.c.f.isin(*kinds))


def _moves(tables: Tables) -> Frame[EventRow]:
    moves = events(tables, "assign", REBALANCE)
    return moves.filter(moves.c.type == "ok")


def positions(tables: Tables) -> Frame[PlacedAt]:
    """Where consumers were put by themselves or by their groups."""
    moves = _moves(tables)
    named = by_partition(moves, moves.c.run, moves.c.topic, said(moves.c.extra, "positions"), tables)
    e, log, offset = named.c
    return named.select(
        PlacedAt(
            run=e.run,
            log=log.log,
            process=e.process,
            member=said(e.extra, "member"),
            at=e.index,
            start=offset,
        )
    )


def without_position(tables: Tables) -> Frame[Placed]:
    """Partitions that a group gave to a member, where nobody knows at which offset."""
    moves = _moves(tables)
    e = moves.c
    moves, number = moves.plus(F.explode(F.from_json(said(e.extra, "partitions"), "array<int>")))
    known = F.from_json(F.coalesce(said(e.extra, "positions"), F.lit("{}")), _OFFSETS)
    logs = tables.logs_of_runs.small()
    log = logs.c
    same = all_of(e.run == log.run, e.topic == log.topic, number == log.partition)
    without = moves.filter(~F.array_contains(F.map_keys(known), number.cast("string")))
    return without.join(logs, same).select(
        Placed(run=e.run, log=log.log, process=e.process, member=said(e.extra, "member"), at=e.index)
    )


def readers(tables: Tables) -> Frame[Reader]:
    rows: list[tuple[object, ...]] = [(n, run.info.isolation) for n, run in enumerate(tables.runs)]
    return tables.small(Reader, rows).small()


def members(tables: Tables) -> Frame[Member]:
    """Every consumer that ever named its group. One that assigns partitions to itself reads for a group only
    where it says so: its commits may be those of a transaction, and of another process."""
    rows = _of_members(tables)
    c = rows.c
    named = (c.f == "assign") & said(c.extra, "group").isNotNull()
    return (
        rows.filter(c.f.isin(COMMIT, REBALANCE, "subscribe") | named)
        .select(Member(run=c.run, process=c.process, group=group_of(c.extra)))
        .distinct()
    )


def deliveries(tables: Tables) -> Frame[Delivery]:
    """One row per record that a member of a group was given."""
    history, some = _history(tables), members(tables).small()
    e, member = history.c, some.c
    polls = history.filter((e.f == "poll") & (e.type == "ok")).join(
        some, (e.run == member.run) & (e.process == member.process)
    )
    records = polls.exploded(e.records, RecordOf)
    _, one = records.c
    logs = tables.logs_of_runs.small()
    log = logs.c
    same = all_of(e.run == log.run, e.topic == log.topic, one.partition == log.partition)
    return records.join(logs, same).select(
        Delivery(
            run=e.run,
            log=log.log,
            group=member.group,
            offset=one.offset,
            undone=F.coalesce(said(e.extra, "aborted") == "fail", F.lit(False)),
            poll_index=e.index,
            poll_ns=e.time_ns,
            poll_process=e.process,
        )
    )


def kept(evidence: Evidence) -> Frame[Kept]:
    """The records of the final read that no later one of their key follows."""
    history = _history(evidence.tables)
    e = history.c
    drained = history.filter((e.f == "drain") & (e.type == "ok")).exploded(e.records, RecordOf)
    _, one = drained.c
    records = drained.filter(one.value >= 0).select(
        Kept(
            run=e.run,
            topic=e.topic,
            partition=one.partition,
            offset=one.offset,
            value=one.value,
            final_index=e.index,
        )
    )
    return lasting(records, evidence)


def duplicates(tables: Tables) -> dict[tuple[int, str], tuple[int, int]]:
    """The metric ``group-duplicates``: (run, group) -> how many deliveries there were, and of how many
    different records."""
    given = deliveries(tables)
    d = given.c
    of_record = given.grouped(
        _OfRecord(run=d.run, group=d.group, log=d.log, offset=d.offset), _Count(F.count("*"))
    )
    of, to = of_record.c
    sums = of_record.rows.groupBy(of.run, of.group).agg(F.sum(to.n), F.count("*"))
    return {(run, group): (given, different) for run, group, given, different in sums.collect()}
