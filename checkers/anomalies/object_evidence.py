"""What is wrong with registers and queues as rows that Spark can read, and what findings tell of them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import MAX_OPERATIONS, Window, seconds
from wrackline.checkers.anomalies.registry import Evidence
from wrackline.checkers.engine import tasks
from wrackline.checkers.engine.object_facts import SLOTS, Call, Contradiction
from wrackline.checkers.engine.object_values import REGISTER, RULES
from wrackline.checkers.exact.register import Rule

_TWO_VALUES = RULES.index((REGISTER, Rule.TWO_AT_ONCE)), RULES.index((REGISTER, Rule.INSIDE))
_CALL = "struct<inv:bigint,ret:bigint,inv_ns:bigint,ret_ns:bigint,process:bigint>"


def contradictions(evidence: Evidence, workload: str) -> DataFrame:
    """A row per culprit: run, log, topic, partition, offset (none), rule, value, other, contradicted and its
    operations ``c0`` to ``c7`` (null where there is none; ``ret`` and ``ret_ns`` are null where one did not
    return)."""
    assert evidence.contradictions is not None
    numbers = [number for number, (of, _) in enumerate(RULES) if of == workload]
    rows = evidence.contradictions.mapInArrow(tasks.contradictions, tasks.schema_of(Contradiction))
    rows = rows.filter(F.col("rule").isin(numbers))
    told = ["value", "other", *(_call(slot).alias(f"c{slot}") for slot in range(SLOTS))]
    first, second = _TWO_VALUES
    # What intervals of time know of one culprit, together; which of the two rules it is called by says the
    # first.
    family = F.when(F.col("rule") == second, first).otherwise(F.col("rule"))
    names = F.array(*(F.lit(str(rule)) for _, rule in RULES))
    whole = (
        rows.groupBy(F.col("run").cast("int").alias("run"), "log", family.alias("family"), "key")
        .agg(
            F.sum("contradicted").alias("contradicted"),
            F.min_by(F.struct("rule", *told), "order").alias("told"),
            F.count("*").alias("there"),
            F.max("pieces").alias("pieces"),
        )
        .filter(F.col("there") >= F.col("pieces"))
        .select("run", "log", "contradicted", "told.*")
        .withColumn("rule", F.get(names, F.col("rule").cast("int")))
    )
    logs = evidence.tables.logs.select("log", "topic", "partition")
    return whole.join(F.broadcast(logs), "log").withColumn("offset", F.lit(None))


def _call(slot: int) -> Column:
    told = F.struct(*(F.col(f"c{slot}_{part}").alias(part) for part in Call.names())).cast(_CALL)
    return F.when(F.col(f"c{slot}_inv").isNotNull(), told)


def every_call() -> Column:
    """All operations of a contradiction, as an array."""
    return F.array_distinct(F.array_compact(F.array(*(F.col(f"c{slot}") for slot in range(SLOTS)))))


def indexes(calls: Column) -> list[Column]:
    """The events of a witness: of each operation its completion, or its invocation where there is none."""
    told = F.transform(calls, lambda call: F.coalesce(call["ret"], call["inv"]))
    return [F.get(told, F.lit(n)) for n in range(MAX_OPERATIONS)]


def moment(call: str, which: str) -> Column:
    """``12.318 s``; ``the beginning`` for what was there before anything."""
    ns = F.col(f"{call}.{which}_ns")
    return F.when(ns.isNull(), "the beginning").otherwise(seconds(ns))


def around(calls: Column) -> Window:
    """The faults between a witness's first event and its last."""
    begins = F.array_min(F.transform(calls, lambda call: call["inv_ns"]))
    ends = F.array_max(F.transform(calls, lambda call: F.coalesce(call["ret_ns"], call["inv_ns"])))
    return Window(F.coalesce(begins, F.lit(0)), F.coalesce(ends, F.lit(0)))
