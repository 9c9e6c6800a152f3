"""Registers on partitions (workload ``register``): the sentences of findings.
wrackline.checkers.exact.register decides, in pieces (wrackline.checkers.engine.object_values,
wrackline.checkers.engine.object_times)."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import findings, place, say, seconds
from wrackline.checkers.anomalies.object_evidence import around, contradictions, every_call, indexes, moment
from wrackline.checkers.anomalies.registry import Evidence, Family, check, mark
from wrackline.checkers.engine.object_values import REGISTER
from wrackline.checkers.exact.operations import NOTHING
from wrackline.checkers.exact.register import Rule

mark(REGISTER)  # set where they are found (wrackline.checkers.engine.object_values.put_contradictions)


def value_text(column: str) -> Column:
    return F.when(F.col(column) == NOTHING, "nothing").otherwise(say("value %d", column))


@check(
    "register-not-linearizable",
    Family.REGISTERS,
    "Knossos: register",
    "what clients wrote to and read from a partition as a register has no valid order",
    marks=[REGISTER],
)
def register_not_linearizable(evidence: Evidence) -> DataFrame:
    """One per culprit: a value that was read and should not have been, or was held when another must have
    been."""
    # Slots: write, first to return and last to start of one zone, and those of another.
    a, b = (
        F.struct(F.col(first).alias("first"), F.col(last).alias("last"))
        for first, last in (("c1", "c2"), ("c4", "c5"))
    )
    found = (
        contradictions(evidence, REGISTER)
        .withColumn("calls", every_call())
        .withColumn("a", a)
        .withColumn("b", b)
    )
    one, other = value_text("value"), value_text("other")
    read = say("%s was read at %s by process %d", one, moment("a.first", "ret"), "a.first.process")
    sentences = {
        Rule.GARBAGE: F.concat(read, F.lit(", and nobody wrote it")),
        Rule.ABORTED: F.concat(read, say(", though its write by process %d had failed", "b.first.process")),
        Rule.FUTURE: F.concat(read, say(", before its write was invoked at %s", moment("b.first", "inv"))),
        Rule.TWO_AT_ONCE: _held(one, other, "must have been held from %s to %s as well"),
        Rule.INSIDE: _held(one, other, "came and went between %s and %s"),
    }
    sentence = reduce(
        lambda text, rule: F.when(F.col("rule") == str(rule), sentences[rule]).otherwise(text),
        sentences,
        F.lit(""),
    )
    more = F.when(F.col("contradicted") > 1, say(" (and %d other values like it)", F.col("contradicted") - 1))
    return findings(
        found,
        "register-not-linearizable",
        operations=indexes(F.col("calls")),
        sentence=F.concat(
            place(), F.lit(" is no linearizable register: "), sentence, F.coalesce(more, F.lit(""))
        ),
        around=around(F.col("calls")),
        where=F.col("rule"),
    )


def _held(one: Column, other: Column, how: str) -> Column:
    text = "it held %s from %s until %s at least, yet %s " + how
    other_ends = [F.col("b.first.ret_ns"), F.col("b.last.inv_ns")]
    between = [seconds(F.least(*other_ends)), seconds(F.greatest(*other_ends))]
    return say(text, one, moment("a.first", "ret"), moment("a.last", "inv"), other, *between)
