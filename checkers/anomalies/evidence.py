"""Findings with their evidence: the operations that prove them and one plain sentence
(docs/anomalies.md section 10).

A sentence is made in Spark, as a column. It begins with a capital letter, unless it begins with the name of a
partition, and ends without a full stop. It leaves marks where a name stands that only the run can tell: how
its values and processes are called (``value_label``, ``process_label``), and who led (``LEADER``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.registry import Evidence, Finding, Findings, bit_of
from wrackline.checkers.engine.candidates import Proof
from wrackline.checkers.engine.frames import Frame, Int, Long, Text, packed, unpacked
from wrackline.checkers.engine.tables import CandidateOfRun, Fault, Leader, Tables, few
from wrackline.checkers.findings import FAULTS_IN_FORCE, FINDINGS, NO_FAULT_IN_FORCE
from wrackline.checkers.inputs.table import Table
from wrackline.history import labels

A = TypeVar("A")
MAX_OPERATIONS = 8
MAX_FAULTS = 4
LEADER = "{leader}"
"""In a sentence: where the leader of that time is named, as far as metadata named one."""
MARGIN_NS = 1_000_000_000
"""A fault that ended within a second before a finding is named with it."""
_MARK = r"(?s)^(value|process) (-?[0-9]{1,18})\}(.*)$"
"""What follows a brace where a name is to stand."""


class Place(Protocol):
    """Columns of what concerns a partition."""

    @property
    def topic(self) -> Column: ...

    @property
    def partition(self) -> Column: ...


class Located(Place, Protocol):
    """Columns of what concerns a partition of a run."""

    @property
    def run(self) -> Column: ...

    @property
    def log(self) -> Column: ...


@dataclass(frozen=True, slots=True)
class Window:
    """Which faults are named with a finding: those in force from ``since`` (to ``until``; None: to the
    end)."""

    since: Column
    until: Column | None = None


def findings(
    rows: Frame[Any],
    anomaly: str,
    *,
    at: Located,
    offset: Column | None = None,
    value: Column | None = None,
    operations: Sequence[Column],
    sentence: Column,
    around: Window,
    where: Column | None = None,
    leader_at: Column | None = None,
) -> Findings:
    """One finding for each row. ``at``: the columns that name its partition. ``value`` below 0 is none."""
    indexes = F.array(*(one.cast("bigint") for one in operations))
    return rows.select(
        Finding(
            run=at.run,
            log=at.log,
            anomaly=F.lit(anomaly),
            topic=at.topic,
            partition=at.partition.cast("int"),
            offset=_or_null(offset).cast("bigint"),
            value=(F.lit(None) if value is None else F.when(value >= 0, value)).cast("bigint"),
            operations=F.slice(F.array_sort(F.array_distinct(F.array_compact(indexes))), 1, MAX_OPERATIONS),
            where=_or_null(where).cast("string"),
            sentence=sentence,
            since_ns=around.since.cast("bigint"),
            until_ns=_or_null(around.until).cast("bigint"),
            leader_ns=_or_null(leader_at).cast("bigint"),
        )
    )


def _or_null(column: Column | None) -> Column:
    return F.lit(None) if column is None else column


def finished(found: Findings, tables: Tables) -> DataFrame:
    """Findings in the common schema, plus ``run``: names stand in their sentences, and the faults follow."""
    one, faults, leaders, run = found.c, tables.faults.c, tables.leaders.c, tables.named.c
    joined = (
        found.join(tables.faults.small(), one.run == faults.run, "left")
        .join(tables.leaders.small(), one.log == leaders.log, "left")
        .join(tables.named.small(), one.run == run.run)
    )
    led = F.coalesce(_leader(leaders.leaders, one.leader_ns), F.lit(""))
    sentence = _with_names(F.replace(one.sentence, F.lit(LEADER), led), run.system == labels.IMPORTED)
    explanation = F.concat(sentence, F.lit("."), _faults(faults.faults, one))
    columns = {
        **dict(zip(one.names(), one.columns(), strict=True)),
        "test_id": run.test_id,
        "explanation": explanation.alias("explanation"),
    }
    return joined.rows.select(one.run, *(columns[name] for name in FINDINGS.names))


def _leader(leaders: Column, at_ns: Column) -> Column:
    then = F.filter(leaders, lambda change: unpacked(Leader, change).time_ns <= at_ns)
    last = unpacked(Leader, F.try_element_at(then, F.lit(-1)))
    return F.when(last.node.isNotNull(), say(" while %s led (leader epoch %d)", last.node, last.epoch))


def _faults(faults: Column, finding: Finding) -> Column:
    since, until = finding.since_ns, finding.until_ns

    def in_force(column: Column) -> Column:
        fault = unpacked(Fault, column)
        not_over = fault.ended_ns.isNull() | (fault.ended_ns + MARGIN_NS >= since)
        return (until.isNull() | (fault.begin_ns <= until)) & not_over

    texts = F.transform(F.filter(faults, in_force), lambda fault: unpacked(Fault, fault).text)
    first = F.array_join(F.slice(texts, 1, MAX_FAULTS), ", ")
    more = F.size(texts) - MAX_FAULTS
    when = F.when(until.isNull(), "at that time or later").otherwise("around that time")
    rest = F.when(more > 0, say(" and %d more", more)).otherwise("")
    some = say(FAULTS_IN_FORCE, when, first, rest)
    none = say(NO_FAULT_IN_FORCE, when)
    return F.when(F.coalesce(F.size(texts), F.lit(0)) > 0, some).otherwise(none)


def _with_names(sentence: Column, imported: Column) -> Column:
    """Names of values and processes in place of their marks."""

    def named(piece: Column, at: Column) -> Column:
        kind, number, rest = (F.regexp_extract(piece, _MARK, group) for group in (1, 2, 3))
        known = number.try_cast("bigint")
        name = F.when(kind == "value", _value_name(known, imported)).otherwise(_process_name(known, imported))
        as_it_is = F.when(at > 0, F.concat(F.lit("{"), piece)).otherwise(piece)
        return F.when((at > 0) & known.isNotNull(), F.concat(name, rest)).otherwise(as_it_is)

    return F.array_join(F.transform(F.split(sentence, r"\{"), named), "")


def _value_name(value: Column, imported: Column) -> Column:
    """wrackline.history.labels.value_label as a column."""
    attempt = value.bitwiseAND(F.lit(0xF))
    counter = F.shiftright(value, 4).bitwiseAND(F.lit(0xFFFFFFF))
    ours = F.concat(
        say("p%d·%d", F.shiftright(value, 32), counter),
        F.when(attempt > 0, say("/%d", attempt)).otherwise(""),
    )
    theirs = F.when(value >= labels.NUMBERED_FROM, say("#%d", value - labels.NUMBERED_FROM)).otherwise(
        value.bitwiseAND(F.lit(0xFFFFFFFF)).cast("string")
    )
    name = F.when(value < 0, value.cast("string")).when(imported, theirs).otherwise(ours)
    for special, word in labels.SPECIAL.items():
        name = F.when(value == special, word).otherwise(name)
    return name


def _process_name(process: Column, imported: Column) -> Column:
    """wrackline.history.labels.process_label as a column."""
    consumer = say("%d (consumer)", process - labels.CONSUMERS)
    return F.when(imported & (process >= labels.CONSUMERS), consumer).otherwise(process.cast("string"))


def having(evidence: Evidence, mark: str) -> Frame[CandidateOfRun]:
    """The candidates that have a mark."""
    rows = evidence.candidates
    return rows.filter(rows.c.marks.bitwiseAND(F.lit(bit_of(mark))) != 0)


def earliest(*proofs: Proof[Column]) -> Proof[Column]:
    """The earliest of these; null where there is none."""
    some = [F.when(one.index.isNotNull(), packed(one)) for one in proofs]
    return unpacked(Proof, F.least(*some) if len(some) > 1 else some[0])


@dataclass(frozen=True, slots=True)
class Details(Table[Column]):
    """What an event says in words."""

    run: Int
    index: Long
    node: Text
    error: Text
    extra: Text


@dataclass(frozen=True, slots=True)
class _Index(Table[Column]):
    run: Int
    index: Long


def details_of(rows: Frame[A], run: Column, index: Column, tables: Tables) -> Frame[tuple[A, Details]]:
    """Rows, each with the details of the event that has this index. They are read anew: only findings need
    them, and there are few."""
    wanted = rows.select(_Index(run=run, index=index)).distinct()
    if few(tables.runs):
        wanted = wanted.small()  # else every query would shuffle the history
    e, w = tables.history.c, wanted.c
    events = tables.history.select(
        Details(run=e.run, index=e.index, node=e.node, error=e.error, extra=e.extra)
    )
    d = events.c
    events = events.matching(wanted, (d.run == w.run) & (d.index == w.index))
    return rows.join(events, (run == d.run) & (index == d.index), "left")


def value_label(value: Column) -> Column:
    """``p3·607``: what a value is called in sentences."""
    return say("{value %d}", value)


def process_label(process: Column) -> Column:
    """What a process is called in sentences, after the word "process"."""
    return say("{process %d}", process)


def seconds(ns: Column) -> Column:
    """``12.318 s``, ``1,204.006 s``; null where the time is."""
    return F.when(ns.isNotNull(), F.format_string("%,.3f s", ns / 1e9))


def apart(earlier: Column, later: Column) -> tuple[Column, Column]:
    """Two times, as ``seconds`` has them; in nanoseconds where the milliseconds are the same."""
    short = [seconds(ns) for ns in (earlier, later)]
    long = [F.format_string("%,.9f s", ns / 1e9) for ns in (earlier, later)]
    alike = short[0] == short[1]
    return F.when(alike, long[0]).otherwise(short[0]), F.when(alike, long[1]).otherwise(short[1])


def place(at: Place) -> Column:
    """``log-0``."""
    return F.format_string("%s-%d", at.topic, at.partition)


def say(template: str, *parts: Column) -> Column:
    """A part of a sentence: ``%s``, ``%d`` (for numbers that are names) and ``%,d`` (for offsets and counts)
    stand for columns."""
    return F.format_string(template, *parts)
