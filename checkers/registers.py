"""Registers and queues on partitions (workloads ``register`` and ``queue``): the rules of checkers.exact_register in Spark.

The numpy checks want a partition in memory; these sort it in spilling windows. The tests hold one against the other.
Queues are in checkers.queues.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.calls import REGISTER, around, indexes, moment, named, object_calls
from checkers.columns import NEVER, NOTHING
from checkers.evidence import findings, place, say, seconds
from checkers.exact_register import Rule
from checkers.registry import Evidence, Family, check


def register_breaches(calls: DataFrame) -> DataFrame:
    """What is wrong with each register, a row per culprit: run, log, rule, value, other, contradicted, calls
    (array of CALL: at most six), ``a`` and ``b`` (the zones' ends as calls, for the sentence)."""
    puts, call = F.col("puts"), F.col("call")
    by_value = SqlWindow.partitionBy("log", "value")
    written = F.max(F.when(puts & ~F.col("failed"), call)).over(by_value)
    aborted = F.max(F.when(puts & F.col("failed"), call)).over(by_value)
    early = ~puts & (call["ret"] < F.col("write.inv"))
    clusters = (
        calls.filter(puts | F.col("ok"))
        .withColumn("write", written)
        .withColumn("aborted", aborted)
        .filter(~(puts & F.col("failed")))
        .withColumn("early", F.coalesce(early, F.lit(False)))
        .groupBy("run", "log", "value")
        .agg(
            F.first("write").alias("write"),
            F.first("aborted").alias("aborted"),
            F.count_if(~puts).alias("reads"),
            _soonest(~F.col("early")).alias("first"),
            _soonest(F.col("early") | F.col("write").isNull()).alias("too_soon"),
            F.max(F.when(~F.col("early"), call)).alias("last"),
        )
    )
    nothing = F.col("value") == NOTHING
    return _one_value(clusters.filter(~nothing)).union(_two_values(clusters))


def _soonest(when: Column) -> Column:
    """The call that returned first."""
    return F.min_by("call", F.when(when, F.col("call.ret")))


def _one_value(clusters: DataFrame) -> DataFrame:
    garbage, none = F.col("write").isNull(), F.lit(None)
    rule = (
        F.when(garbage & F.col("aborted").isNull(), str(Rule.GARBAGE))
        .when(garbage, str(Rule.ABORTED))
        .when(F.col("too_soon").isNotNull(), str(Rule.FUTURE))
    )
    return (
        clusters.withColumn("rule", rule)
        .filter("rule is not null")
        .select(
            *("run", "log", "rule", "value"),
            none.cast("bigint").alias("other"),
            F.lit(0).cast("bigint").alias("contradicted"),
            F.array_compact(F.array("aborted", "write", "too_soon")).alias("calls"),
            F.struct(F.col("too_soon").alias("first"), F.col("too_soon").alias("last")).alias("a"),
            F.struct(
                F.coalesce("write", "aborted").alias("first"), F.coalesce("write", "aborted").alias("last")
            ).alias("b"),
        )
    )


def _two_values(clusters: DataFrame) -> DataFrame:
    """Zones in order of their start, each against the forward zone before it that reaches furthest."""
    initial = F.col("value") == NOTHING
    there = F.col("write").isNotNull() & ((F.col("write.ret") != NEVER) | (F.col("reads") > 0))
    f = F.when(initial, F.lit(-1)).otherwise(F.col("first.ret"))
    s = F.col("last.inv")
    zones = (
        clusters.filter((initial | there) & F.col("last").isNotNull())
        .withColumn("forward", f < s)
        .withColumn("start", F.least(f, s))
        .withColumn("end", F.greatest(f, s))
        .withColumn("first", F.when(~initial, F.col("first")))
        .withColumn("zone", F.struct("end", "value", "write", "first", "last"))
    )
    before = (
        SqlWindow.partitionBy("log").orderBy("start", "forward").rowsBetween(SqlWindow.unboundedPreceding, -1)
    )
    limit = F.when(F.col("forward"), F.col("start")).otherwise(F.col("end"))
    bad = zones.withColumn("by", F.max(F.when(F.col("forward"), F.col("zone"))).over(before)).filter(
        F.col("by.end") > limit
    )
    first = F.min_by(F.struct("zone", "forward"), F.col("start")).alias("one")
    rule = F.when(F.col("one.forward"), str(Rule.TWO_AT_ONCE)).otherwise(str(Rule.INSIDE))
    witness = [F.col(f"{zone}.{call}") for zone in ("by", "one.zone") for call in ("write", "first", "last")]
    return (
        bad.groupBy("run", "log", "by")
        .agg(F.count("*").alias("contradicted"), first)
        .select(
            *("run", "log"),
            rule.alias("rule"),
            F.col("by.value").alias("value"),
            F.col("one.zone.value").alias("other"),
            "contradicted",
            # The initial value has no write, and its zone no beginning.
            F.array_distinct(F.filter(F.array(*witness), lambda call: call.isNotNull())).alias("calls"),
            F.struct("by.first", "by.last").alias("a"),
            F.struct("one.zone.first", "one.zone.last").alias("b"),
        )
    )


def value_text(column: str) -> Column:
    return F.when(F.col(column) == NOTHING, "nothing").otherwise(say("value %d", column))


@check(
    "register-not-linearizable",
    Family.REGISTERS,
    "Knossos: register",
    "what clients wrote to and read from a partition as a register has no valid order",
    needs=["read"],
)
def register_not_linearizable(evidence: Evidence) -> DataFrame:
    """One per culprit: a value that was read and should not have been, or was held when another must have been."""
    tables = evidence.tables
    found = register_breaches(object_calls(tables, REGISTER))
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
        named(found, tables),
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
