"""Topics with keys that are compacted: a record that a later one of the same key follows may be gone, from
any replica and for any reader; the last one of a key may not.

A value's key is in the event of its send; its offsets are in acks, polls, the final read and the replicas'
own logs (below their high watermarks). A record of unknown outcome that nobody has does not count: had it
taken the place of another, it would be there itself, or one after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.registry import Evidence
from wrackline.checkers.engine.frames import Frame, Int, Text, all_of
from wrackline.checkers.engine.tables import RecordOf, Tables, ValueOf, keep
from wrackline.checkers.inputs.table import Table


class Topical(Protocol):
    """Columns of what concerns a topic of a run."""

    @property
    def run(self) -> Column: ...

    @property
    def topic(self) -> Column: ...


class Valued(Topical, Protocol):
    """Columns of what concerns one value; ``offset`` is null where nobody knows it."""

    @property
    def partition(self) -> Column: ...

    @property
    def value(self) -> Column: ...

    @property
    def offset(self) -> Column: ...


A = TypeVar("A", bound=Topical)
V = TypeVar("V", bound=Valued)


@dataclass(frozen=True, slots=True)
class Compacted(Table[Column]):
    """A compacted topic."""

    run: Int
    topic: Text


@dataclass(frozen=True, slots=True)
class _Keyed(ValueOf):
    key: Column


@dataclass(frozen=True, slots=True)
class _Offset(ValueOf):
    offset: Column


@dataclass(frozen=True, slots=True)
class _Last(ValueOf):
    last: Column
    """The highest offset that is known of a record with the value's key."""


@dataclass(frozen=True, slots=True)
class _Key(Table[Column]):
    run: Column
    topic: Column
    partition: Column
    key: Column


@dataclass(frozen=True, slots=True)
class _Highest(Table[Column]):
    offset: Column


def compacted(tables: Tables) -> Frame[Compacted]:
    return tables.small(Compacted, _compacted(tables))


def _compacted(tables: Tables) -> list[tuple[int, str]]:
    return [(n, one.name) for n, run in enumerate(tables.runs) for one in run.info.topics if one.compacted]


def uncompacted_only(rows: Frame[A], tables: Tables) -> Frame[A]:
    """Rows that are not of a compacted topic."""
    if not _compacted(tables):
        return rows
    some = compacted(tables).small()
    return rows.without(some, (rows.c.run == some.c.run) & (rows.c.topic == some.c.topic))


def lasting(rows: Frame[V], evidence: Evidence) -> Frame[V]:
    """Rows of records that must be there still. One whose offset nobody knows may have been followed by any
    other of its key."""
    if not _compacted(evidence.tables):
        return rows
    last = evidence.once("last of keys", lambda: _last(evidence.tables).made(keep))
    followed = rows.c.offset.isNull() | (rows.c.offset < last.c.last)
    return rows.without(last, _same(rows.c, last.c) & followed)


def _same(one: ValueOf | Valued, other: ValueOf) -> Column:
    return all_of(
        one.run == other.run,
        one.topic == other.topic,
        one.partition == other.partition,
        one.value == other.value,
    )


def _last(tables: Tables) -> Frame[_Last]:
    events = tables.events({run for run, _ in _compacted(tables)})
    some, e = compacted(tables).small(), events.c
    records = (
        events.filter(e.f.isin("send", "poll", "drain", "replica"))
        .matching(some, (e.run == some.c.run) & (e.topic == some.c.topic))
        .exploded(e.records, RecordOf)
    )
    _, one = records.c
    keys = records.filter((e.f == "send") & (e.type == "invoke") & e.key.isNotNull()).select(
        _Keyed(run=e.run, topic=e.topic, partition=one.partition, key=e.key, value=one.value)
    )
    high_watermark = F.when(e.f == "replica", F.get_json_object(e.extra, "$.hw").cast("bigint"))
    is_there = high_watermark.isNull() | (one.offset < high_watermark)
    places = records.filter((e.type == "ok") & (one.offset >= 0) & (one.value >= 0) & is_there).select(
        _Offset(run=e.run, topic=e.topic, partition=one.partition, value=one.value, offset=one.offset)
    )
    k, p = keys.c, places.c
    highest = keys.join(places, _same(k, p)).grouped(
        _Key(run=k.run, topic=k.topic, partition=k.partition, key=k.key), _Highest(F.max(p.offset))
    )
    of, last = highest.c
    same = all_of(k.run == of.run, k.topic == of.topic, k.partition == of.partition, k.key == of.key)
    return keys.join(highest, same).select(
        _Last(run=k.run, topic=k.topic, partition=k.partition, value=k.value, last=last.offset)
    )
