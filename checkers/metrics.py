"""Availability (anomalies.md section 6): throughput and latency by the second, and what each fault cost.

Spark counts (``figures``); what is left is a few numbers per run, put together here in plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as SqlWindow
from pyspark.sql import functions as F

from checkers.runs import Fault, Phase, Place, Run
from checkers.tables import ACKED, Tables

RECOVERY_NS = 10_000_000_000
"""A gap in acks that begins so long after a fault has ended is not that fault's."""
HEALTHY_NS = 5_000_000_000
"""A stretch without faults, between or after faults, counts as a healthy phase from this length on."""
_ACCURACY = 2_000


@dataclass
class Outcomes:
    ok: int = 0
    fail: int = 0
    info: int = 0

    @property
    def all(self) -> int:
        return self.ok + self.fail + self.info


@dataclass
class Figures:
    """What Spark counted in one run."""

    seconds: list[dict[str, Any]] = field(default_factory=list)
    segments: dict[tuple[int, str], Outcomes] = field(default_factory=dict)
    """(number of the segment, kind of operation): see ``boundaries``."""
    latency: dict[str, dict[str, float]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    acked_records: int = 0
    read_records: int = 0
    gaps: dict[tuple[str, Place], tuple[int | None, int | None, int]] = field(default_factory=dict)
    """(fault id, partition) -> (last ack before, first ack after, nanoseconds between)."""
    longest_gap_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A healthy phase: no fault was in force."""

    name: str
    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


def driven(run: Run) -> list[Phase]:
    """The phases in which clients are driven; without phases on record, the whole run."""
    phases = [phase for phase in run.phases if phase.name in ("warm", "main")]
    return phases or [Phase("run", 0, run.end_ns)]


def first_fault_ns(run: Run) -> int | None:
    return min((fault.begin_ns for fault in run.faults if fault.begin_ns is not None), default=None)


def healthy(run: Run) -> list[Stretch]:
    """The stretches of the driven phases without any fault: all before the first, and long ones after it."""
    first = first_fault_ns(run)
    troubles = sorted(
        (fault.begin_ns if fault.begin_ns is not None else fault.struck_ns, fault.ended_ns or run.end_ns)
        for fault in run.faults
    )
    found = []
    for phase in driven(run):
        at = phase.begin_ns
        for begin, end in [*troubles, (phase.end_ns, phase.end_ns)]:
            if begin > at:
                found.append((phase.name, at, min(begin, phase.end_ns)))
            at = max(at, end)
    return [
        Stretch(name, begin, end)
        for name, begin, end in found
        if end > begin and (end - begin >= HEALTHY_NS or first is None or end <= first)
    ]


def boundaries(run: Run) -> list[int]:
    """Where segments begin: at each begin and end of a healthy stretch or a phase. Operations are counted by
    the segment they were invoked in."""
    times = {time for stretch in healthy(run) for time in (stretch.begin_ns, stretch.end_ns)}
    times |= {time for phase in run.phases for time in (phase.begin_ns, phase.end_ns)}
    return sorted(times)


def counted(run: Run, figures: Figures, begin_ns: int, end_ns: int) -> dict[str, Outcomes]:
    """Operations invoked between two boundaries, by kind."""
    edges = boundaries(run)
    wanted = {
        number
        for number in range(1, len(edges) + 1)
        if edges[number - 1] >= begin_ns and edges[number - 1] < end_ns
    }
    sums: dict[str, Outcomes] = {}
    for (segment, f), outcomes in figures.segments.items():
        if segment in wanted:
            total = sums.setdefault(f, Outcomes())
            total.ok += outcomes.ok
            total.fail += outcomes.fail
            total.info += outcomes.info
    return sums


def figures(tables: Tables) -> list[Figures]:
    """Count everything, for all runs at once."""
    result = [Figures() for _ in tables.runs]
    for row in reduce(DataFrame.union, _counts(tables)).collect():
        _take_count(result[row["run"]], row.asDict())
    for row in reduce(DataFrame.union, _gaps(tables)).collect():
        _take_gap(result[row["run"]], row.asDict())
    for one in result:
        one.seconds.sort(key=lambda second: (second["t"], second["f"]))
    return result


def _number(condition: Column | str) -> Column:
    return F.count_if(F.expr(condition) if isinstance(condition, str) else condition)


_COUNT = ("run", "what", "at", "name", "n1", "n2", "n3", "x1", "x2", "x3")


def _counts(tables: Tables) -> list[DataFrame]:
    """Counts of several kinds in one shape: run, what, at, name, n1..n3, x1..x3."""
    latency = F.when((F.col("type") == "ok"), (F.col("complete_ns") - F.col("invoke_ns")) / 1e6)
    outcomes = (_number("type = 'ok'"), _number("type = 'fail'"), _number("type = 'info'"))
    quantiles = (
        F.percentile_approx(latency, 0.5, _ACCURACY),
        F.percentile_approx(latency, 0.99, _ACCURACY),
        F.max(latency),
    )
    clients = tables.operations.filter("f != 'drain'")
    second = F.floor(F.coalesce("complete_ns", "invoke_ns") / 1_000_000_000)
    by_second = clients.groupBy("run", second.alias("at"), F.col("f").alias("name")).agg(
        *_named(outcomes, quantiles)
    )

    edges = tables.small(
        [(n, boundaries(run)) for n, run in enumerate(tables.runs)], "run int, edges array<bigint>"
    )
    segment = F.size(F.filter("edges", lambda edge: edge <= F.col("invoke_ns")))
    by_segment = (
        clients.join(F.broadcast(edges), "run")
        .groupBy("run", segment.cast("bigint").alias("at"), F.col("f").alias("name"))
        .agg(*_named(outcomes))
    )

    spans = tables.small(
        [(n, *_trouble(run)) for n, run in enumerate(tables.runs)], "run int, first_ns bigint, last_ns bigint"
    )
    period = (
        F.when(F.col("first_ns").isNull() | (F.col("complete_ns") < F.col("first_ns")), "before")
        .when(F.col("invoke_ns") > F.col("last_ns"), "after")
        .otherwise("during")
    )
    by_period = (
        clients.filter("f = 'send' and type = 'ok'")
        .join(F.broadcast(spans), "run")
        .groupBy("run", F.lit(0).cast("bigint").alias("at"), period.alias("name"))
        .agg(*_named(outcomes, quantiles))
    )

    zero, name = F.lit(0).cast("bigint").alias("at"), F.coalesce("error", "outcome").alias("name")
    by_error = tables.sends.groupBy(
        "run", zero, F.when(F.col("outcome") == ACKED, ACKED).otherwise(name).alias("name")
    )
    errors = by_error.agg(*_named((F.count("*"), F.lit(0), F.lit(0))))
    read = (
        tables.history.filter("f = 'poll' and type = 'ok'")
        .groupBy("run", zero, F.lit("").alias("name"))
        .agg(*_named((F.sum(F.coalesce(F.size("records"), F.lit(0))), F.lit(0), F.lit(0))))
    )
    kinds = {"second": by_second, "segment": by_segment, "period": by_period, "error": errors, "read": read}
    return [rows.withColumn("what", F.lit(what)).select(*_COUNT) for what, rows in kinds.items()]


def _named(counts: Sequence[Column], measures: Sequence[Column] = ()) -> list[Column]:
    measures = measures or [F.lit(None)] * 3
    return [column.cast("bigint").alias(f"n{n}") for n, column in enumerate(counts, 1)] + [
        column.cast("double").alias(f"x{n}") for n, column in enumerate(measures, 1)
    ]


def _trouble(run: Run) -> tuple[int | None, int | None]:
    """From the first fault's begin to the last one's end."""
    ends = [fault.ended_ns or run.end_ns for fault in run.faults]
    return first_fault_ns(run), max(ends, default=None)


def _take_count(figures: Figures, row: Mapping[str, Any]) -> None:
    n1, n2, n3 = row["n1"], row["n2"], row["n3"]
    match row["what"]:
        case "second":
            second = {"t": int(row["at"]), "f": row["name"], "ok": n1, "fail": n2, "info": n3}
            figures.seconds.append(second | _measures(row, maximum=True))
        case "segment":
            figures.segments[row["at"], row["name"]] = Outcomes(n1, n2, n3)
        case "period":
            figures.latency[row["name"]] = _measures(row)
        case "error" if row["name"] == ACKED:
            figures.acked_records = n1
        case "error":
            figures.errors[row["name"]] = n1
        case "read":
            figures.read_records = n1


def _measures(row: Mapping[str, Any], *, maximum: bool = False) -> dict[str, Any]:
    names = {"x1": "p50_ms", "x2": "p99_ms"} | ({"x3": "max_ms"} if maximum else {})
    return {name: None if row[key] is None else round(row[key], 3) for key, name in names.items()}


def _gaps(tables: Tables) -> list[DataFrame]:
    """Per fault and partition the longest stretch without an ack that it touches, and per run the longest of all:
    run, fault, topic, partition, last_ns, first_ns, gap_ns, real (both ends are acks)."""
    edges = [
        (number, topic, partition, time)
        for number, run in enumerate(tables.runs)
        for topic, partition in run.places
        for time in (driven(run)[0].begin_ns, driven(run)[-1].end_ns)
    ]
    bounds = tables.small(edges, "run int, topic string, partition int, at_ns bigint").withColumn(
        "ack", F.lit(False)
    )
    acks = tables.sends.filter(F.col("outcome") == ACKED).select(
        "run", "topic", "partition", F.col("complete_ns").alias("at_ns"), F.lit(True).alias("ack")
    )
    by_time = SqlWindow.partitionBy("run", "topic", "partition").orderBy("at_ns", "ack")
    gaps = (
        acks.union(bounds)
        .withColumn("before_ns", F.lag("at_ns").over(by_time))
        .withColumn("before_ack", F.lag("ack").over(by_time))
        .filter("before_ns is not null and at_ns > before_ns")
        .withColumn("gap_ns", F.col("at_ns") - F.col("before_ns"))
    )
    faults = tables.small(
        [
            (number, fault.id, fault.struck_ns, (fault.ended_ns or run.end_ns) + RECOVERY_NS)
            for number, run in enumerate(tables.runs)
            for fault in run.faults
        ],
        "run int, fault string, struck_ns bigint, until_ns bigint",
    )
    last = F.when(F.col("before_ack"), F.col("before_ns")).alias("last_ns")
    first = F.when(F.col("ack"), F.col("at_ns")).alias("first_ns")
    longest = F.max_by(F.struct(last, first, "gap_ns"), "gap_ns").alias("gap")
    touched = (
        gaps.join(F.broadcast(faults), "run")
        .filter("at_ns > struck_ns and before_ns < until_ns")
        .groupBy("run", "fault", "topic", "partition")
        .agg(longest)
    )
    of_all = (
        gaps.filter("ack and before_ack")
        .groupBy("run")
        .agg(longest)
        .select(
            "run",
            F.lit(None).cast("string").alias("fault"),
            F.lit(None).cast("string").alias("topic"),
            F.lit(None).cast("int").alias("partition"),
            "gap",
        )
    )
    return [touched, of_all]


def _take_gap(figures: Figures, row: Mapping[str, Any]) -> None:
    gap = row["gap"]
    if row["fault"] is None:
        figures.longest_gap_ns = gap["gap_ns"]
    else:
        key = (row["fault"], (row["topic"], row["partition"]))
        figures.gaps[key] = (gap["last_ns"], gap["first_ns"], gap["gap_ns"])


def metrics(run: Run, figures: Figures) -> dict[str, Any]:
    """The content of metrics.json."""
    return {
        "seconds": figures.seconds,
        "availability": _availability(run, figures),
        "latency": {
            period: figures.latency.get(period, {"p50_ms": None, "p99_ms": None})
            for period in ("before", "during", "after")
        },
        "longest_gap_ms": _ms(figures.longest_gap_ns),
        "rate_before_first_fault": rate_before_first_fault(run, figures),
        "phases": [{"phase": p.name, "begin_ns": p.begin_ns, "end_ns": p.end_ns} for p in run.phases],
        "no_progress": no_progress(run, figures),
    }


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _availability(run: Run, figures: Figures) -> list[dict[str, Any]]:
    rows = []
    for fault in run.faults:
        for place in run.places:
            last, first, gap = figures.gaps.get((fault.id, place), (None, None, None))
            rows.append(
                {
                    "fault_id": fault.id,
                    "topic": place[0],
                    "partition": place[1],
                    "last_ack_ns": last,
                    "first_ack_ns": first,
                    "gap_ms": _ms(gap),
                    "full_isr_ns": full_isr_ns(run, fault, place),
                }
            )
    return rows


def full_isr_ns(run: Run, fault: Fault, place: Place) -> int | None:
    """When metadata first showed the full ISR again after it had shrunk under a fault (before the next fault
    struck); None when it was not seen to shrink, or not seen to be full again."""
    later = (other.struck_ns for other in run.faults if other.struck_ns > fault.struck_ns)
    until = min(later, default=None)
    shrunk = False
    for sample in run.cluster.get(place, ()):
        if sample.time_ns < fault.struck_ns:
            continue
        if shrunk and sample.full_isr:
            return sample.time_ns
        if not sample.full_isr:
            if until is not None and sample.time_ns >= until and not shrunk:
                return None
            shrunk = True
    return None


def rate_before_first_fault(run: Run, figures: Figures) -> float | None:
    """Operations per second that succeeded in the main phase before anything went wrong; None when there was no
    such time."""
    before = _quiet_start(run)
    if before is None:
        return None
    ok = sum(one.ok for one in counted(run, figures, before.begin_ns, before.end_ns).values())
    return round(ok / before.seconds, 3)


def _quiet_start(run: Run) -> Stretch | None:
    first = first_fault_ns(run)
    quiet = [stretch for stretch in healthy(run) if first is None or stretch.end_ns <= first]
    return next((stretch for stretch in quiet if stretch.name != "warm"), quiet[0] if quiet else None)


def no_progress(run: Run, figures: Figures) -> list[str]:
    """Phases in which clients tried and nothing succeeded."""
    found = []
    for phase in run.phases:
        outcomes = counted(run, figures, phase.begin_ns, phase.end_ns).values()
        if sum(one.all for one in outcomes) and not sum(one.ok for one in outcomes):
            found.append(phase.name)
    return found
