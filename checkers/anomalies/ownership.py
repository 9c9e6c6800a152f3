"""Tables of who owned which partitions: what rebalances left the members of groups with, and until when."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.group_tables import REBALANCE, events, generation_of, group_of, said
from wrackline.checkers.engine.frames import Frame, all_of
from wrackline.checkers.engine.tables import EventRow, Partition, Tables
from wrackline.checkers.inputs.table import Table

CRASH = "crash"


@dataclass(frozen=True, slots=True)
class _Holding(Table[Column]):
    """What a process has after an event."""

    run: Column
    process: Column
    topic: Column
    f: Column
    at: Column
    ns: Column
    group: Column
    who: Column
    generation: Column
    protocol: Column
    partitions: Column


@dataclass(frozen=True, slots=True)
class Owned(Partition):
    """A partition that a rebalance left a member with, from the event ``at``."""

    group: Column
    who: Column
    process: Column
    generation: Column
    protocol: Column
    at: Column
    ns: Column
    until: Column
    """Index of the first later event of its process that leaves it without the partition, or says that it
    crashed; null: there is none."""


@dataclass(frozen=True, slots=True)
class Present(Table[Column]):
    """Who took part in a generation."""

    run: Column
    group: Column
    generation: Column
    who: Column


def owned_partitions(tables: Tables) -> Frame[Owned]:
    """The partitions that rebalances left members with."""
    rows = events(tables, REBALANCE, CRASH)
    e = rows.c
    listed = F.when(e.f == REBALANCE, F.from_json(said(e.extra, "partitions"), "array<int>"))
    holding = rows.filter(e.type == "ok").select(
        _Holding(
            run=e.run,
            process=e.process,
            topic=e.topic,
            f=e.f,
            at=e.index,
            ns=e.time_ns,
            group=group_of(e.extra),
            who=_who(e),
            generation=generation_of(e.extra),
            protocol=said(e.extra, "protocol"),
            partitions=F.coalesce(listed, F.array().cast("array<int>")),
        )
    )
    h = holding.c
    of_process = SqlWindow.partitionBy(h.run, h.process).orderBy(h.at)
    holding, next_at = holding.plus(F.lead(h.at).over(of_process))
    holding, next_partitions = holding.plus(F.lead(h.partitions).over(of_process))
    given = holding.filter((h.f == REBALANCE) & h.generation.isNotNull())
    given, partition = given.plus(F.explode(h.partitions))
    of_place = SqlWindow.partitionBy(h.run, h.process, h.topic, partition).orderBy(h.at)
    ends = F.when(~F.array_contains(next_partitions, partition), next_at)
    until = F.first(ends, ignorenulls=True).over(of_place.rowsBetween(0, SqlWindow.unboundedFollowing))
    given, until = given.plus(until)
    logs = tables.logs_of_runs.small()
    log = logs.c
    same = all_of(h.run == log.run, h.topic == log.topic, partition == log.partition)
    return given.join(logs, same).select(
        Owned(
            run=h.run,
            log=log.log,
            topic=log.topic,
            partition=log.partition,
            group=h.group,
            who=h.who,
            process=h.process,
            generation=h.generation,
            protocol=h.protocol,
            at=h.at,
            ns=h.ns,
            until=until,
        )
    )


def empty_handed(tables: Tables) -> Frame[Present]:
    """Every member that learned what it has in a generation, though it be nothing."""
    rows = events(tables, REBALANCE)
    e = rows.c
    generation = generation_of(e.extra)
    return rows.filter((e.type == "ok") & generation.isNotNull()).select(
        Present(run=e.run, group=group_of(e.extra), generation=generation, who=_who(e))
    )


def _who(e: EventRow) -> Column:
    """The member's name, where the client knows it."""
    return F.coalesce(said(e.extra, "member"), F.concat(F.lit("process "), e.process))
