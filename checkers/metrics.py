"""Availability (docs/anomalies.md section 6): throughput and latency by the second, and what each fault cost.

The splits count (wrackline.checkers.tallies); what is left is a few numbers per run, put together here in
plain Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wrackline.checkers.runs import Fault, Phase, Place, Run

RECOVERY_NS = 10_000_000_000
"""A gap in acks that begins so long after a fault has ended is not that fault's."""
QUIET_NS = 1_000_000_000
"""The stretch before anything goes wrong that the asked rate is measured in is so long at least."""
HEALTHY_NS = 5_000_000_000
"""A stretch without faults, between or after faults, counts as a healthy phase from this length on."""


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

    def add(self, other: Outcomes) -> None:
        self.ok += other.ok
        self.fail += other.fail
        self.info += other.info
        self.begun += other.begun
        self.done += other.done


@dataclass
class Written:
    """Records sent, those of unknown outcome and refused ones among ``tried``."""

    tried: int = 0
    acked: int = 0


@dataclass(frozen=True, slots=True)
class TransactionEnds:
    """Of one transactional id. ``ends_asked``: how many transactions the application asked to end; what the
    coordinator's log has more than that, nobody asked for (unless a producer was made anew, or a transaction
    timed out)."""

    transactions: int
    ends_asked: int
    committed: int
    aborted: int
    unknown: int


@dataclass
class Figures:
    """What was counted in one run."""

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


def clients_at_work(run: Run) -> tuple[int, int]:
    """From the first operation until they are stopped: they go on while the system is healed."""
    phases = [phase for phase in run.phases if phase.name in ("warm", "main", "heal")]
    return (phases[0].begin_ns, phases[-1].end_ns) if phases else (0, run.end_ns)


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
    times |= {time for fault in run.faults for time in in_force(run, fault)}
    times |= {time for time in trouble(run) if time is not None}
    quiet = _quiet_start(run)
    return sorted(times | ({quiet.end_ns} if quiet else set()))


def in_force(run: Run, fault: Fault) -> tuple[int, int]:
    """From its begin to its end, or to that of the run."""
    begin = fault.begin_ns if fault.begin_ns is not None else fault.struck_ns
    return begin, max(begin, fault.ended_ns if fault.ended_ns is not None else run.end_ns)


def segments_between(run: Run, begin_ns: int, end_ns: int) -> set[int]:
    """Numbers of the segments that begin in this time."""
    edges = enumerate(boundaries(run), 1)
    return {number for number, edge in edges if begin_ns <= edge < end_ns}


def faulty_segments(run: Run, faults: Iterable[Fault] | None = None) -> set[int]:
    """Segments in which one of these faults (any, by default) was in force."""
    chosen = run.faults if faults is None else faults
    return set().union(*(segments_between(run, *in_force(run, fault)) for fault in chosen))


def healthy_segments(run: Run) -> set[int]:
    """Segments of the main phase's healthy stretches; without phases on record, of all of them."""
    stretches = [stretch for stretch in healthy(run) if stretch.name != "warm"]
    return set().union(*(segments_between(run, one.begin_ns, one.end_ns) for one in stretches))


def counted(run: Run, figures: Figures, begin_ns: int, end_ns: int) -> dict[str, Outcomes]:
    """Operations invoked between two boundaries, by kind."""
    wanted = segments_between(run, begin_ns, end_ns)
    sums: dict[str, Outcomes] = {}
    for (segment, f), outcomes in figures.segments.items():
        if segment in wanted:
            sums.setdefault(f, Outcomes()).add(outcomes)
    return sums


def trouble(run: Run) -> tuple[int | None, int | None]:
    """From the first fault's begin to the last one's end."""
    ends = [fault.ended_ns or run.end_ns for fault in run.faults]
    return first_fault_ns(run), max(ends, default=None)


def take_counts(figures: Figures, said: Mapping[str, Any]) -> None:
    """Takes up what wrackline.checkers.tallies says of a run: some keys at a time, in any order."""
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
            found = figures.written.setdefault((place, segment), Written())
            found.tried += count
            found.acked += count if acked else 0


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
    """(whether metadata showed the ISR shrunk under a fault before the next one struck, when it first showed
    the full ISR after that). None instead of the first where metadata said nothing in that time; None instead
    of the second where it did not shrink, or was not seen to be full again."""
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
    before = _quiet_start(run)
    if before is None:
        return None
    counts = counted(run, figures, before.begin_ns, before.end_ns)
    return round(sum(one.done for one in counts.values()) / before.seconds, 3)


def _quiet_start(run: Run) -> Stretch | None:
    """A second of it at least; a member that crashes ends it, as a fault does."""
    first = first_fault_ns(run)
    quiet = [stretch for stretch in healthy(run) if first is None or stretch.end_ns <= first]
    whole = next((stretch for stretch in quiet if stretch.name != "warm"), quiet[0] if quiet else None)
    if whole is None:
        return None
    crash = next((at for at in run.crashes if whole.begin_ns + QUIET_NS <= at < whole.end_ns), whole.end_ns)
    return replace(whole, end_ns=crash)


def no_progress(run: Run, figures: Figures) -> list[str]:
    """Phases in which clients tried and nothing succeeded."""
    found = []
    for phase in run.phases:
        outcomes = counted(run, figures, phase.begin_ns, phase.end_ns).values()
        if sum(one.all for one in outcomes) and not sum(one.ok for one in outcomes):
            found.append(phase.name)
    return found
