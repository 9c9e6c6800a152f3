"""Availability (docs/anomalies.md section 6): throughput and latency by the second, and what each fault cost.

The splits count (wrackline.checkers.engine.ingest.counts); what is left is a few numbers per run, put
together here in plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from wrackline.checkers.inputs.phases import quiet_start, segments_between
from wrackline.checkers.inputs.runs import Fault, Place, Run


@dataclass
class Outcomes:
    ok: int = 0
    fail: int = 0
    info: int = 0
    begun: int = 0
    """Among all: those that the asked rate is about (wrackline.history.model.UNASKED says which are not)."""
    done: int = 0
    """Among ``begun``: those that had the outcome they were meant to have. A transaction that was to be
    aborted, and was, is done and ``fail``."""

    @property
    def all(self) -> int:
        return self.ok + self.fail + self.info

    def __add__(self, other: Outcomes) -> Outcomes:
        return Outcomes(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))


@dataclass
class Written:
    """Records sent, those of unknown outcome and refused ones among ``tried``."""

    tried: int = 0
    acked: int = 0


@dataclass(frozen=True, slots=True)
class TransactionEnds:
    """The ends of the transactions of one transactional id. ``ends_asked``: how many transactions the
    application asked to end; what the coordinator's log has more than that, nobody asked for (unless a
    producer was made anew, or a transaction timed out)."""

    transactions: int
    ends_asked: int
    committed: int
    aborted: int
    unknown: int


@dataclass
class Figures:
    """The counts of one run."""

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
    written: dict[tuple[Place, int], Written] = field(default_factory=dict)
    """(partition, number of the segment) -> records sent whose outcome came in it."""
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Group -> (deliveries to its members, different records among them)."""
    transactions: dict[str, TransactionEnds] = field(default_factory=dict)
    """By transactional id; empty: transactions whose id is not on record."""


def counted(run: Run, figures: Figures, begin_ns: int, end_ns: int) -> dict[str, Outcomes]:
    """Operations invoked between two boundaries, by kind."""
    expected = segments_between(run, begin_ns, end_ns)
    sums: dict[str, Outcomes] = {}
    for (segment, f), outcomes in figures.segments.items():
        if segment in expected:
            sums[f] = sums.get(f, Outcomes()) + outcomes
    return sums


def take_counts(figures: Figures, said: Mapping[str, Any]) -> None:
    """Takes up what wrackline.checkers.engine.ingest.counts says of a run: some keys at a time, in any
    order."""
    for one in said.get("seconds", ()):
        figures.seconds.append(one)
    for one in said.get("segments", ()):
        figures.segments[one["segment"], one["f"]] = Outcomes(
            *(one[name] for name in ("ok", "fail", "info", "begun", "done"))
        )
    figures.latency |= said.get("latency", {})
    figures.acked_records += said.get("acked", 0)
    figures.read_records += said.get("read", 0)
    for error, count in said.get("errors", {}).items():
        figures.errors[error] = figures.errors.get(error, 0) + count


def take_written(
    figures: Figures, said: Sequence[tuple[int, int, bool, int]], places: Mapping[int, Place]
) -> None:
    """``said``: (log, segment, acknowledged, count)."""
    for log, segment, acked, count in said:
        place = places.get(log)
        if place is not None:
            result = figures.written.setdefault((place, segment), Written())
            result.tried += count
            result.acked += count if acked else 0


def take_gaps(
    run: Run, figures: Figures, gaps: Sequence[Mapping[str, Any]], places: Mapping[int, Place]
) -> None:
    for gap in gaps:
        place = places.get(gap["log"])
        if gap["fault"] < 0:
            figures.longest_gap_ns = max(figures.longest_gap_ns or 0, gap["gap_ns"])
        elif place is not None:
            told = (gap["last_ns"], gap["first_ns"], gap["gap_ns"])
            figures.gaps[run.faults[gap["fault"]].id, place] = told


def metrics(run: Run, figures: Figures) -> dict[str, Any]:
    """The content of metrics.json."""
    return {
        "seconds": figures.seconds,
        "availability": _availability(run, figures),
        "latency": {
            period: figures.latency.get(period, {"p50_ms": None, "p95_ms": None, "p99_ms": None})
            for period in ("before", "during", "after", "healthy", "faults")
        },
        "longest_gap_ms": _ms(figures.longest_gap_ns),
        "rate_before_first_fault": rate_before_first_fault(run, figures),
        "phases": [{"phase": p.name, "begin_ns": p.begin_ns, "end_ns": p.end_ns} for p in run.phases],
        "no_progress": no_progress(run, figures),
        "group_duplicates": {
            group: {
                "deliveries": deliveries,
                "records": records,
                "per_record": round(deliveries / records, 3),
            }
            for group, (deliveries, records) in sorted(figures.groups.items())
            if records
        },
        "transaction_ends": {
            transactional_id: asdict(ends) for transactional_id, ends in sorted(figures.transactions.items())
        },
    }


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _availability(run: Run, figures: Figures) -> list[dict[str, Any]]:
    rows = []
    for fault in run.faults:
        for place in run.places:
            last, first, gap = figures.gaps.get((fault.id, place), (None, None, None))
            shrank, full_again_ns = isr_under(run, fault, place)
            rows.append(
                {
                    "fault_id": fault.id,
                    "topic": place[0],
                    "partition": place[1],
                    "last_ack_ns": last,
                    "first_ack_ns": first,
                    "gap_ms": _ms(gap),
                    "isr_shrank": shrank,
                    "full_isr_ns": full_again_ns,
                }
            )
    return rows


def isr_under(run: Run, fault: Fault, place: Place) -> tuple[bool | None, int | None]:
    """Returns (whether metadata showed the ISR shrunk under a fault before the next one struck, when it
    first showed the full ISR after that). None instead of the first where metadata said nothing in that
    time; None instead of the second where it did not shrink, or was not seen to be full again."""
    later = (other.struck_ns for other in run.faults if other.struck_ns > fault.struck_ns)
    until = min(later, default=None)
    shrank: bool | None = None
    for sample in run.cluster.get(place, ()):
        if sample.time_ns < fault.struck_ns:
            continue
        if shrank and sample.full_isr:
            return True, sample.time_ns
        if not shrank and until is not None and sample.time_ns >= until:
            break  # what the ISR does from here on is another fault's doing
        shrank = bool(shrank) or not sample.full_isr
    return shrank, None


def rate_before_first_fault(run: Run, figures: Figures) -> float | None:
    """Operations per second, of those that a rate asks for, that were done, as they were meant to be, in the
    main phase before anything went wrong; None when there was no such time."""
    before = quiet_start(run)
    if before is None:
        return None
    counts = counted(run, figures, before.begin_ns, before.end_ns)
    return round(sum(one.done for one in counts.values()) / before.seconds, 3)


def no_progress(run: Run, figures: Figures) -> list[str]:
    """Phases in which clients tried and nothing succeeded."""
    result = []
    for phase in run.phases:
        outcomes = counted(run, figures, phase.begin_ns, phase.end_ns).values()
        if sum(one.all for one in outcomes) and not sum(one.ok for one in outcomes):
            result.append(phase.name)
    return result
