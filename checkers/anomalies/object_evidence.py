"""What is wrong with registers and queues as rows that Spark can read, and what findings say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import MAX_OPERATIONS, Window, seconds
from wrackline.checkers.anomalies.registry import Evidence
from wrackline.checkers.engine import tasks
from wrackline.checkers.engine.frames import Frame, frame, packed, unpacked
from wrackline.checkers.engine.object_facts import Call, Contradiction
from wrackline.checkers.engine.object_values import REGISTER, RULES
from wrackline.checkers.engine.tables import Partition
from wrackline.checkers.exact.register import Rule
from wrackline.checkers.inputs.table import Table

R = TypeVar("R", bound=StrEnum)
_TWO_VALUES = RULES.index((REGISTER, Rule.TWO_AT_ONCE)), RULES.index((REGISTER, Rule.INSIDE))


@dataclass(frozen=True, slots=True)
class _OfRun(Contradiction[Column]):
    run: Column


@dataclass(frozen=True, slots=True)
class _Culprit(Table[Column]):
    run: Column
    log: Column
    family: Column
    key: Column


@dataclass(frozen=True, slots=True)
class _Known(Table[Column]):
    """What all intervals of time know of a culprit."""

    contradicted: Column
    first: Contradiction[Column]
    """What the first of them says."""
    there: Column
    pieces: Column


@dataclass(frozen=True, slots=True)
class Culprit(Partition):
    """A value that is wrong, with its operations. Those that are not there are null, and so are ``ret`` and
    ``ret_ns`` of one that did not return."""

    rule: Column
    contradicted: Column
    """How many values it contradicts."""
    found: Contradiction[Column]

    @property
    def calls(self) -> Column:
        """All its operations, as an array of structs."""
        calls = (F.when(call.inv.isNotNull(), packed(call)) for call in self.found.calls)
        return F.array_distinct(F.array_compact(F.array(*calls)))


def culprits(evidence: Evidence, workload: str) -> Frame[Culprit]:
    """A row for each value that is wrong."""
    assert evidence.contradictions is not None
    numbers = [number for number, (of, _) in enumerate(RULES) if of == workload]
    rows = frame(
        evidence.contradictions.mapInArrow(tasks.contradictions, tasks.schema_of(Contradiction)), _OfRun
    )
    c = rows.c
    first, second = _TWO_VALUES
    # What intervals of time know of one culprit, together; the first says by which of the two rules it is
    # called.
    family = F.when(c.rule == second, first).otherwise(c.rule)
    known = _Known(
        contradicted=F.sum(c.contradicted),
        first=unpacked(Contradiction, F.min_by(packed(c), c.order)),
        there=F.count("*"),
        pieces=F.max(c.pieces),
    )
    together = rows.filter(c.rule.isin(numbers)).grouped(
        _Culprit(run=c.run.cast("int"), log=c.log, family=family, key=c.key), known
    )
    of, found = together.c
    logs = evidence.tables.logs.small()
    names = F.array(*(F.lit(str(rule)) for _, rule in RULES))
    return (
        together.filter(found.there >= found.pieces)
        .join(logs, of.log == logs.c.log)
        .select(
            Culprit(
                run=of.run,
                log=of.log,
                topic=logs.c.topic,
                partition=logs.c.partition,
                rule=F.get(names, found.first.rule.cast("int")),
                contradicted=found.contradicted,
                found=found.first,
            )
        )
    )


def by_rule(rule: Column, sentences: Mapping[R, Column]) -> Column:
    """The sentence of each row's rule."""
    return reduce(
        lambda other, one: F.when(rule == str(one), sentences[one]).otherwise(other), sentences, F.lit("")
    )


def indexes(calls: Column) -> list[Column]:
    """The events of a witness: of each operation its completion, or its invocation where there is none."""

    def last(column: Column) -> Column:
        call = _call(column)
        return F.coalesce(call.ret, call.inv)

    found = F.transform(calls, last)
    return [F.get(found, F.lit(n)) for n in range(MAX_OPERATIONS)]


def at(ns: Column) -> Column:
    """``12.318 s``; ``the beginning`` for what was there before anything."""
    return F.coalesce(seconds(ns), F.lit("the beginning"))


def around(calls: Column) -> Window:
    """The faults between a witness's first event and its last."""

    def end(column: Column) -> Column:
        call = _call(column)
        return F.coalesce(call.ret_ns, call.inv_ns)

    begins = F.array_min(F.transform(calls, lambda column: _call(column).inv_ns))
    ends = F.array_max(F.transform(calls, end))
    return Window(F.coalesce(begins, F.lit(0)), F.coalesce(ends, F.lit(0)))


def _call(column: Column) -> Call[Column]:
    return unpacked(Call, column)
