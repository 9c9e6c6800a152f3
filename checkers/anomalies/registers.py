"""Registers on partitions (workload ``register``): the sentences of findings.
wrackline.checkers.exact.register decides, in pieces (wrackline.checkers.engine.object_values,
wrackline.checkers.engine.object_times)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import (
    findings,
    place,
    process_label,
    say,
    seconds,
    value_label,
)
from wrackline.checkers.anomalies.explained_by import By, ExplainedBy
from wrackline.checkers.anomalies.object_evidence import around, at, by_rule, culprits, indexes
from wrackline.checkers.anomalies.registry import Evidence, Findings, check, mark
from wrackline.checkers.engine.object_facts import Call
from wrackline.checkers.engine.object_values import REGISTER
from wrackline.checkers.exact.operations import NOTHING
from wrackline.checkers.exact.register import Rule
from wrackline.checkers.verdict.anomaly import Family, Promise

mark(REGISTER)  # set where they are found (wrackline.checkers.engine.object_values.put_contradictions)


def _value(value: Column) -> Column:
    return F.when(value == NOTHING, "nothing").otherwise(say("value %s", value_label(value)))


@check(
    "register-not-linearizable",
    Family.REGISTERS,
    "Knossos: register",
    "what clients wrote to and read from a partition as a register has no valid order",
    breaks=Promise.LINEARIZABLE_OBJECTS,
    marks=[REGISTER],
    explained_by=ExplainedBy(By.REGISTER),
)
def register_not_linearizable(evidence: Evidence) -> Findings:
    """One per culprit: a value that was read and should not have been, or was held when another must have
    been."""
    rows = culprits(evidence, REGISTER)
    c, found = rows.c, rows.c.found
    # Slots: write, first to return and last to start of one zone, and those of another.
    one, other = _value(found.value), _value(found.other)
    _, first, last, _, other_first, other_last, *_ = found.calls
    read = say("process %s read %s at %s", process_label(first.process), one, at(first.ret_ns))
    sentences = {
        Rule.GARBAGE: F.concat(read, F.lit(", but nobody wrote it")),
        Rule.ABORTED: F.concat(
            read, say(", but its write by process %s had failed", process_label(other_first.process))
        ),
        Rule.FUTURE: F.concat(read, say(", but its write was only invoked at %s", at(other_first.inv_ns))),
        Rule.TWO_AT_ONCE: _held(
            *(one, first, last, other, other_first, other_last),
            "it must also have held %s from %s to %s",
        ),
        Rule.INSIDE: _held(
            *(one, first, last, other, other_first, other_last),
            "%s was written and read between %s and %s",
        ),
    }
    like_it = say(" (%,d other values contradict it too)", c.contradicted - 1)
    return findings(
        rows,
        "register-not-linearizable",
        at=c,
        value=found.value,
        operations=indexes(c.calls),
        sentence=F.concat(
            place(c),
            F.lit(" is not a linearizable register: "),
            by_rule(c.rule, sentences),
            F.when(c.contradicted > 1, like_it).otherwise(""),
        ),
        around=around(c.calls),
        where=c.rule,
    )


def _held(
    one: Column,
    first: Call[Column],
    last: Call[Column],
    other: Column,
    other_first: Call[Column],
    other_last: Call[Column],
    how: str,
) -> Column:
    ends = other_first.ret_ns, other_last.inv_ns
    return say(
        "it held %s at least from %s until %s, but " + how,
        *(one, at(first.ret_ns), at(last.inv_ns)),
        *(other, seconds(F.least(*ends)), seconds(F.greatest(*ends))),
    )
