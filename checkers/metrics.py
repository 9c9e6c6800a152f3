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
from checkers.tables import ACKED, Tables, keep

RECOVERY_NS = 10_000_000_000
"""A gap in acks that begins so long after a fault has ended is not that fault's."""
HEALTHY_NS = 5_000_000_000
"""A stretch without faults, between or after faults, counts as a healthy phase from this length on."""
_BUCKETS = 50.0
"""Latencies are counted in buckets of this many to a factor of e: quantiles are right to 1 %."""
_COLUMNS = ("at", "name", "n1", "n2", "n3", "x1", "x2", "x3")


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
    times |= {time for time in _trouble(run) if time is not None}
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
    tallies = keep(_tallies(tables))
    counts = [
        _by_second(tallies),
        _by_segment(tallies),
        _by_period(tallies, tables),
        _by_outcome(tables),
        _read(tables),
    ]
    for row in reduce(DataFrame.union, counts).collect():
        _take_count(result[row["run"]], row.asDict())
    for row in _gaps(tables).collect():
        _take_gap(result[row["run"]], row.asDict(), tables)
    for one in result:
        one.seconds.sort(key=lambda second: (second["t"], second["f"]))
    return result


def _tallies(tables: Tables) -> DataFrame:
    """Operations counted finely enough for all that is said of them: run, f, type, second (of the completion),
    segment (of the invocation), spans (it completed in another), bucket (of the latency), n, slowest (ms)."""
    edges = tables.small(
        [(n, boundaries(run)) for n, run in enumerate(tables.runs)], "run int, edges array<bigint>"
    )

    def segment(ns: Column) -> Column:
        return F.size(F.filter("edges", lambda edge: edge <= ns))

    done = F.coalesce("complete_ns", "invoke_ns")
    latency = F.when(F.col("type") == "ok", (F.col("complete_ns") - F.col("invoke_ns")) / 1e6)
    bucket = F.when(
        latency.isNotNull(), F.round(F.log(F.greatest(latency, F.lit(1e-3))) * _BUCKETS).cast("int")
    )
    return (
        tables.operations.filter("f != 'drain'")
        .join(F.broadcast(edges), "run")
        .groupBy(
            *("run", "f", "type"),
            F.floor(done / 1_000_000_000).alias("second"),
            segment(F.col("invoke_ns")).alias("segment"),
            (segment(F.col("invoke_ns")) != segment(done)).alias("spans"),
            bucket.alias("bucket"),
        )
        .agg(F.count("*").alias("n"), F.max(latency).alias("slowest"))
    )


def _counted(rows: DataFrame, what: str, *keys: Column) -> DataFrame:
    """Tallies summed, in one shape for all: run, what, at, name, n1..n3 (ok, fail, info), x1..x3 (median, 99th
    percentile and maximum of the latencies, ms)."""
    outcomes = [
        F.sum(F.when(F.col("type") == kind, F.col("n")).otherwise(0)) for kind in ("ok", "fail", "info")
    ]
    latency = F.exp(F.col("bucket") / _BUCKETS)
    frequency = F.when(F.col("bucket").isNull(), 0).otherwise(F.col("n"))
    measures = [F.percentile(latency, q, frequency) for q in (0.5, 0.99)] + [F.max("slowest")]
    return _shaped(rows.groupBy("run", *keys).agg(*_named(outcomes, measures)), what)


def _shaped(rows: DataFrame, what: str) -> DataFrame:
    return rows.select("run", F.lit(what).alias("what"), *_COLUMNS)


def _by_second(tallies: DataFrame) -> DataFrame:
    return _counted(tallies, "second", F.col("second").alias("at"), F.col("f").alias("name"))


def _by_segment(tallies: DataFrame) -> DataFrame:
    return _counted(tallies, "segment", F.col("segment").cast("bigint").alias("at"), F.col("f").alias("name"))


def _by_period(tallies: DataFrame, tables: Tables) -> DataFrame:
    """Sends before, during and after the faults: ``during`` from the first one's begin to the last one's end."""
    rows = []
    for number, run in enumerate(tables.runs):
        first, last = _trouble(run)
        edges = boundaries(run)
        if first is not None and last is not None:
            rows.append((number, edges.index(first), edges.index(last)))
    spans = tables.small(rows, "run int, first int, last int")
    period = (
        F.when(F.col("first").isNull() | ((F.col("segment") <= F.col("first")) & ~F.col("spans")), "before")
        .when(F.col("segment") > F.col("last"), "after")
        .otherwise("during")
    )
    sent = tallies.filter("f = 'send' and type = 'ok'").join(F.broadcast(spans), "run", "left")
    return _counted(sent, "period", F.lit(0).cast("bigint").alias("at"), period.alias("name"))


def _by_outcome(tables: Tables) -> DataFrame:
    """Records sent: acked ones under that name, the others by error."""
    name = F.when(F.col("outcome") == ACKED, ACKED).otherwise(F.coalesce("error", "outcome")).alias("name")
    counts = tables.sends.groupBy("run", F.lit(0).cast("bigint").alias("at"), name)
    return _shaped(counts.agg(*_named([F.count("*"), F.lit(0), F.lit(0)])), "error")


def _read(tables: Tables) -> DataFrame:
    nothing = (F.lit(0).cast("bigint").alias("at"), F.lit("").alias("name"))
    counts = tables.operations.filter("f = 'poll' and type = 'ok'").groupBy("run", *nothing)
    return _shaped(counts.agg(*_named([F.sum("given"), F.lit(0), F.lit(0)])), "read")


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


def _gaps(tables: Tables) -> DataFrame:
    """Per fault and partition the longest stretch without an ack that it touches (fault null: of all):
    run, fault, log, gap struct<last_ns, first_ns, gap_ns>; an end that is no ack is null."""
    edges = [
        (number, tables.log(number, place), time)
        for number, run in enumerate(tables.runs)
        for place in run.places
        for time in (driven(run)[0].begin_ns, driven(run)[-1].end_ns)
    ]
    bounds = tables.small(edges, "run int, log bigint, at_ns bigint").withColumn("ack", F.lit(False))
    acks = tables.sends.filter(F.col("outcome") == ACKED).select(
        "run", "log", F.col("complete_ns").alias("at_ns"), F.lit(True).alias("ack")
    )
    by_time = SqlWindow.partitionBy("log").orderBy("at_ns", "ack")
    gaps = (
        acks.union(bounds)
        .withColumn("before_ns", F.lag("at_ns").over(by_time))
        .withColumn("before_ack", F.lag("ack").over(by_time))
        .filter("at_ns > before_ns")
        .withColumn("gap_ns", F.col("at_ns") - F.col("before_ns"))
    )
    faults = [
        (number, fault.id, fault.struck_ns, (fault.ended_ns or run.end_ns) + RECOVERY_NS)
        for number, run in enumerate(tables.runs)
        for fault in run.faults
    ]
    whole = [(number, None, None, None) for number in range(len(tables.runs))]
    spans = tables.small([*faults, *whole], "run int, fault string, struck_ns bigint, until_ns bigint")
    touched = (F.col("at_ns") > F.col("struck_ns")) & (F.col("before_ns") < F.col("until_ns"))
    any_gap = F.col("struck_ns").isNull() & F.col("ack") & F.col("before_ack")
    last = F.when(F.col("before_ack"), F.col("before_ns")).alias("last_ns")
    first = F.when(F.col("ack"), F.col("at_ns")).alias("first_ns")
    longest = F.max(F.struct("gap_ns", last, first)).alias("gap")
    return (
        gaps.join(F.broadcast(spans), "run")
        .filter(touched | any_gap)
        .groupBy("run", "fault", "log")
        .agg(longest)
    )


def _take_gap(figures: Figures, row: Mapping[str, Any], tables: Tables) -> None:
    gap = row["gap"]
    if row["fault"] is None:
        figures.longest_gap_ns = max(figures.longest_gap_ns or 0, gap["gap_ns"])
        return
    place = next((p for p in tables.runs[row["run"]].places if tables.log(row["run"], p) == row["log"]), None)
    if place is not None:
        figures.gaps[row["fault"], place] = (gap["last_ns"], gap["first_ns"], gap["gap_ns"])


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
    counts = counted(run, figures, before.begin_ns, before.end_ns)
    ok = sum(one.ok for f, one in counts.items() if f != "assign")  # nobody asks for those at a rate
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
