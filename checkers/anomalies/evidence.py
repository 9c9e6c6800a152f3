"""Findings with their evidence: the operations that prove them and one plain sentence
(docs/anomalies.md section 10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.registry import Evidence, bit_of
from wrackline.checkers.engine.tables import Tables, few
from wrackline.checkers.findings import FINDINGS

MAX_OPERATIONS = 8
MAX_FAULTS = 4
LEADER = "{leader}"
"""In a sentence: where it is said who led the partition then, as far as metadata told."""
MARGIN_NS = 1_000_000_000
"""A fault that ended within a second before a finding is still told with it."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which faults a finding is told with: those in force from ``since`` (to ``until``; None: to the end)."""

    since: Column
    until: Column | None = None


def findings(
    rows: DataFrame,
    anomaly: str,
    *,
    operations: Sequence[Column | str],
    sentence: Column,
    around: Window,
    where: Column | None = None,
    offset: Column | None = None,
    leader_at: Column | None = None,
) -> DataFrame:
    """Rows (with run, log, topic, partition, offset, value) as findings still to be ``finished``."""
    told = [F.col(one) if isinstance(one, str) else one for one in operations]
    indexes = F.array(*(one.cast("bigint") for one in told))
    value = F.when(F.col("value") >= 0, F.col("value")) if "value" in rows.columns else F.lit(None)
    return rows.select(
        "run",
        "log",
        F.lit(anomaly).alias("anomaly"),
        "topic",
        F.col("partition").cast("int").alias("partition"),
        (F.col("offset") if offset is None else offset).cast("bigint").alias("offset"),
        value.cast("bigint").alias("value"),
        F.slice(F.array_sort(F.array_distinct(F.array_compact(indexes))), 1, MAX_OPERATIONS).alias(
            "operations"
        ),
        (F.lit(None) if where is None else where).cast("string").alias("where"),
        sentence.alias("sentence"),
        around.since.cast("bigint").alias("since_ns"),
        (F.lit(None) if around.until is None else around.until).cast("bigint").alias("until_ns"),
        (F.lit(None) if leader_at is None else leader_at).cast("bigint").alias("leader_ns"),
    )


def finished(found: DataFrame, tables: Tables) -> DataFrame:
    """Findings in the common schema, plus ``run``: sentences get the leader of the time and the faults."""
    named = tables.small(
        [(number, run.info.test_id) for number, run in enumerate(tables.runs)], "run int, test_id string"
    )
    told = (
        found.join(F.broadcast(tables.faults), "run", "left")
        .join(F.broadcast(tables.cluster), "log", "left")
        .join(F.broadcast(named), "run")
        .withColumn("told_leader", _leader())
        .withColumn("told_faults", _faults())
    )
    sentence = F.concat(
        F.replace("sentence", F.lit(LEADER), F.coalesce("told_leader", F.lit(""))), F.lit("."), "told_faults"
    )
    columns = [name for name in FINDINGS.names if name != "explanation"]
    return told.select("run", *columns, sentence.alias("explanation"))


def _leader() -> Column:
    then = F.filter("leaders", lambda change: change["time_ns"] <= F.col("leader_ns"))
    last = F.try_element_at(then, F.lit(-1))
    told = F.format_string(" while %s led (leader epoch %d)", last["node"], last["epoch"])
    return F.when(last.isNotNull(), told)


def _faults() -> Column:
    until = F.col("until_ns")
    active = F.filter(
        "faults",
        lambda fault: (
            (until.isNull() | (fault["begin_ns"] <= until))
            & (fault["ended_ns"].isNull() | (fault["ended_ns"] + MARGIN_NS >= F.col("since_ns")))
        ),
    )
    texts = F.transform(active, lambda fault: fault["text"])
    first = F.array_join(F.slice(texts, 1, MAX_FAULTS), ", ")
    more = F.size(texts) - MAX_FAULTS
    label = F.when(until.isNull(), " Faults since: ").otherwise(" Faults around it: ")
    rest = F.when(more > 0, F.format_string(" and %d more", more)).otherwise("")
    some = F.concat(label, first, rest, F.lit("."))
    none = F.when(until.isNull(), " No fault since.").otherwise(" No fault around it.")
    return F.when(F.coalesce(F.size(texts), F.lit(0)) > 0, some).otherwise(none)


def having(evidence: Evidence, mark: str) -> DataFrame:
    """The candidates that have a mark."""
    return evidence.candidates.filter(F.col("marks").bitwiseAND(F.lit(bit_of(mark))) != 0)


def shown(rows: DataFrame, *proofs: str) -> DataFrame:
    """Rows beside the earliest of these proofs: ``shown`` (the event's index), shown_ns, shown_offset (the
    largest it told of the log), shown_value (null for ends), shown_f (``end`` or empty)."""
    names = ("index", "ns", "offset", "value")
    told = [
        F.when(
            F.col(proof).isNotNull(),
            F.struct(
                F.col(proof).alias("index"),
                *(F.col(f"{proof}_{name}").alias(name) for name in names[1:]),
                F.lit("end" if proof == "by_end" else "").alias("f"),
            ),
        )
        for proof in proofs
    ]
    first = F.least(*told) if len(told) > 1 else told[0]
    return rows.withColumn("first_shown", first).select(
        *rows.columns,
        F.col("first_shown.index").alias("shown"),
        *(F.col(f"first_shown.{name}").alias(f"shown_{name}") for name in (*names[1:], "f")),
    )


def events_of(rows: DataFrame, index: str, tables: Tables) -> DataFrame:
    """Rows beside what the event with this index says besides numbers: node, error, extra. Read anew: only
    findings need it, and there are few."""
    wanted = rows.select("run", F.col(index).alias("event")).distinct()
    if few(tables.runs):
        wanted = F.broadcast(wanted)  # else every query would shuffle the history
    events = tables.history.select("run", F.col("index").alias("event"), "node", "error", "extra")
    return (
        rows.withColumn("event", F.col(index))
        .join(events.join(wanted, ["run", "event"]), ["run", "event"], "left")
        .drop("event")
    )


def seconds(ns: Column | str) -> Column:
    """``12.318 s``."""
    column = F.col(ns) if isinstance(ns, str) else ns
    return F.format_string("%.3f s", column / 1e9)


def apart(earlier: Column | str, later: Column | str) -> tuple[Column, Column]:
    """Two times, as ``seconds`` has them; in nanoseconds where the milliseconds are the same."""
    columns = [F.col(ns) if isinstance(ns, str) else ns for ns in (earlier, later)]
    short = [seconds(ns) for ns in columns]
    long = [F.format_string("%.9f s", ns / 1e9) for ns in columns]
    alike = short[0] == short[1]
    return F.when(alike, long[0]).otherwise(short[0]), F.when(alike, long[1]).otherwise(short[1])


def place(topic: Column | str = "topic", partition: Column | str = "partition") -> Column:
    """``log-0``."""
    return F.format_string("%s-%d", topic, partition)


def say(template: str, *parts: Column | str) -> Column:
    """``format_string``, for sentences."""
    return F.format_string(template, *(F.col(one) if isinstance(one, str) else one for one in parts))
