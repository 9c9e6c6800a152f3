"""Queues on partitions: the rules of checkers.exact_queue in Spark. See there for why they are enough."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.calls import CALL, QUEUE, around, indexes, moment, named, object_calls
from checkers.columns import NEVER, NOTHING
from checkers.evidence import findings, place, say
from checkers.exact_queue import Rule
from checkers.registry import Evidence, Family, check

_SHAPE = ("run", "log", "rule", "value", "other", "contradicted", "calls")


def queue_breaches(calls: DataFrame) -> DataFrame:
    """What is wrong with each queue, a row per culprit: run, log, rule, value, other, contradicted, calls (array of
    CALL). Of an empty answer that several values together contradict, the witness names the first of them."""
    known = calls.filter(~F.col("failed") & (F.col("puts") | F.col("ok")))
    values = _values(calls.filter((F.col("value") != NOTHING) & (F.col("puts") | F.col("ok"))))
    unsure = calls.filter(~F.col("puts") & ~F.col("ok") & ~F.col("failed"))
    lives = _lives(values, unsure)
    empty = known.filter(~F.col("puts") & (F.col("value") == NOTHING))
    return reduce(DataFrame.union, [_one_value(values), _order(lives), _empty(lives, empty)])


def _values(calls: DataFrame) -> DataFrame:
    """One row per value: run, log, value, put, aborted, got, again (the first two dequeues)."""
    puts, failed, call = F.col("puts"), F.col("failed"), F.col("call")
    gets = F.array_sort(F.collect_list(F.when(~puts, call)))
    return (
        calls.groupBy("run", "log", "value")
        .agg(
            F.max(F.when(puts & ~failed, call)).alias("put"),
            F.max(F.when(puts & failed, call)).alias("aborted"),
            gets.alias("gets"),
        )
        .withColumn("got", F.get("gets", F.lit(0)))
        .withColumn("again", F.get("gets", F.lit(1)))
        .drop("gets")
    )


def _early() -> Column:
    return F.coalesce(F.col("got.ret") < F.col("put.inv"), F.lit(False))


def _one_value(values: DataFrame) -> DataFrame:
    garbage = F.col("put").isNull() & F.col("got").isNotNull()
    rules = F.array_compact(
        F.array(
            F.when(garbage & F.col("aborted").isNull(), str(Rule.GARBAGE)),
            F.when(garbage & F.col("aborted").isNotNull(), str(Rule.ABORTED)),
            F.when(F.col("put").isNotNull() & _early(), str(Rule.FUTURE)),
            F.when(F.col("again").isNotNull(), str(Rule.TWICE)),
        )
    )
    twice = F.col("rule") == str(Rule.TWICE)
    told = F.when(twice, F.array("got", "again")).otherwise(F.array("aborted", "put", "got"))
    return (
        values.withColumn("rule", F.explode(rules))
        .withColumn("calls", F.array_compact(told))
        .withColumn("other", F.lit(None).cast("bigint"))
        .withColumn("contradicted", F.lit(0).cast("bigint"))
        .select(*_SHAPE)
    )


def _lives(values: DataFrame, unsure: DataFrame) -> DataFrame:
    """One row per value that was surely in the queue: run, log, value, put, got, di (when its dequeue began at the
    earliest), dr. The i-th value that nobody got is given to the i-th dequeue of unknown outcome."""
    there = values.filter(
        F.col("put").isNotNull() & ~_early() & (F.col("got").isNotNull() | (F.col("put.ret") != NEVER))
    ).select("run", "log", "value", "put", "got")
    by_ret = SqlWindow.partitionBy("log").orderBy("put.ret")
    by_inv = SqlWindow.partitionBy("log").orderBy("call.inv")
    taken = unsure.select("log", F.col("call.inv").alias("taken"), F.row_number().over(by_inv).alias("rank"))
    left = there.filter("got is null").withColumn("rank", F.row_number().over(by_ret))
    return (
        there.filter("got is not null")
        .withColumn("taken", F.lit(None).cast("bigint"))
        .unionByName(left.join(F.broadcast(taken), ["log", "rank"], "left").drop("rank"))
        .select(
            *("run", "log", "value", "put", "got"),
            F.coalesce("got.inv", "taken", F.lit(NEVER)).alias("di"),
            F.coalesce("got.ret", F.lit(NEVER)).alias("dr"),
        )
    )


def _order(lives: DataFrame) -> DataFrame:
    """Going back in time, the soonest return among the dequeues of values that went in later."""
    entries = lives.select(
        "*", F.col("put.inv").alias("at"), F.struct("dr", "value", "put", "got").alias("later")
    )
    nobody = F.lit(None).cast(f"struct<dr:bigint,value:bigint,put:{CALL},got:{CALL}>")
    asked = lives.select("*", F.col("put.ret").alias("at"), nobody.alias("later"))
    back = (
        SqlWindow.partitionBy("log")
        .orderBy(F.desc("at"), F.col("later").isNotNull())
        .rowsBetween(SqlWindow.unboundedPreceding, -1)
    )
    bad = (
        entries.union(asked)
        .withColumn("by", F.min("later").over(back))
        .filter(F.col("later").isNull() & (F.col("di") > F.col("by.dr")))
    )
    lost = bad.filter("got is null").select(
        *("run", "log", F.lit(str(Rule.LOST)).alias("rule"), "value", F.col("by.value").alias("other")),
        F.lit(1).cast("bigint").alias("contradicted"),
        F.array("put", "by.put", "by.got").alias("calls"),
    )
    first = F.min_by(F.struct("value", "put", "got"), F.col("put.inv")).alias("one")
    overtaken = (
        bad.filter("got is not null")
        .groupBy("run", "log", "by")
        .agg(F.count("*").alias("contradicted"), first)
        .select(
            *("run", "log", F.lit(str(Rule.OVERTAKEN)).alias("rule"), F.col("by.value").alias("value")),
            *(F.col("one.value").alias("other"), "contradicted"),
            F.array("one.put", "one.got", "by.put", "by.got").alias("calls"),
        )
    )
    return lost.union(overtaken)


def _empty(lives: DataFrame, empty: DataFrame) -> DataFrame:
    """The times in which values were surely inside, joined where they overlap; an answer must not lie in one."""
    inside = lives.filter(F.col("put.ret") < F.col("di")).select(
        *("run", "log", F.col("put.ret").alias("start"), F.col("di").alias("end")),
        *("value", "put", "got", F.lit(None).cast(CALL).alias("answer")),
    )
    answers = empty.select(
        *("run", "log", F.col("call.inv").alias("start"), F.lit(None).cast("bigint").alias("end")),
        *("value", F.lit(None).cast(CALL).alias("put"), F.lit(None).cast(CALL).alias("got")),
        F.col("call").alias("answer"),
    )
    order = SqlWindow.partitionBy("log").orderBy("start", F.col("answer").isNull())
    before = order.rowsBetween(SqlWindow.unboundedPreceding, -1)
    begins = F.col("answer").isNull() & (F.coalesce("reach.end", F.lit(-1)) <= F.col("start"))
    held = F.struct("end", "value", "put", "got")
    bad = (
        inside.union(answers)
        .withColumn("reach", F.max(F.when(F.col("end").isNotNull(), held)).over(before))
        .withColumn(
            "block",
            F.count_if(begins).over(order.rowsBetween(SqlWindow.unboundedPreceding, SqlWindow.currentRow)),
        )
        .withColumn("until", F.max("end").over(SqlWindow.partitionBy("log", "block")))
        .filter(F.col("answer").isNotNull() & (F.col("until") > F.col("answer.ret")))
    )
    return bad.select(
        *("run", "log", F.lit(str(Rule.NOT_EMPTY)).alias("rule"), "value"),
        F.col("reach.value").alias("other"),
        F.when(F.col("reach.end") > F.col("answer.ret"), 1).otherwise(2).cast("bigint").alias("contradicted"),
        F.array_compact(F.array("answer", "reach.put", "reach.got")).alias("calls"),
    )


@check(
    "queue-not-linearizable",
    Family.QUEUES,
    "Knossos: fifo-queue",
    "what clients enqueued in and dequeued from a partition as a FIFO queue has no valid order",
    needs=["dequeue"],
)
def queue_not_linearizable(evidence: Evidence) -> DataFrame:
    """One per culprit: a value that came out wrongly or never, or an empty answer that was not true."""
    tables = evidence.tables
    found = queue_breaches(object_calls(tables, QUEUE))
    call = [F.get("calls", F.lit(n)) for n in range(4)]
    rows = found.select("*", *(one.alias(f"c{n}") for n, one in enumerate(call)))

    def did(what: str, call: str, when: str) -> Column:
        return say(f"{what} by process %d at %s", f"{call}.process", moment(call, when))

    got = say("value %d was dequeued", "value")
    sentences = {
        Rule.GARBAGE: F.concat(got, did("", "c0", "ret"), F.lit(", and nobody enqueued it")),
        Rule.TWICE: F.concat(got, did(" twice:", "c0", "ret"), did(" and", "c1", "ret")),
        Rule.ABORTED: F.concat(got, did("", "c1", "ret"), F.lit(", though its enqueue had failed")),
        Rule.FUTURE: F.concat(
            got, did("", "c1", "ret"), say(", before its enqueue was invoked at %s", moment("c0", "inv"))
        ),
        Rule.LOST: F.concat(
            say("value %d was in at %s and never came out", "value", moment("c0", "ret")),
            say(", though value %d, enqueued later, came out at %s", "other", moment("c2", "ret")),
        ),
        Rule.OVERTAKEN: F.concat(
            say("value %d came out at %s", "value", moment("c3", "ret")),
            say(", before the dequeue of value %d began at %s", "other", moment("c1", "inv")),
            say(
                ", which was in (%s) before the enqueue of the first began (%s)",
                moment("c0", "ret"),
                moment("c2", "inv"),
            ),
        ),
        Rule.NOT_EMPTY: F.concat(
            say("process %d was told at %s that it is empty", "c0.process", moment("c0", "ret")),
            say(", though value %d had been in since %s", "other", moment("c1", "ret")),
            F.when(F.col("contradicted") > 1, ", and before it came out others were in").otherwise(""),
        ),
    }
    sentence = reduce(
        lambda text, rule: F.when(F.col("rule") == str(rule), sentences[rule]).otherwise(text),
        sentences,
        F.lit(""),
    )
    more = F.when(
        (F.col("rule") == str(Rule.OVERTAKEN)) & (F.col("contradicted") > 1),
        say(" (and of %d others)", F.col("contradicted") - 1),
    )
    return findings(
        named(rows, tables),
        "queue-not-linearizable",
        operations=indexes(F.col("calls")),
        sentence=F.concat(
            place(), F.lit(" is no linearizable queue: "), sentence, F.coalesce(more, F.lit(""))
        ),
        around=around(F.col("calls")),
        where=F.col("rule"),
    )
