"""The times of a run that its verdict asks about: when clients were driven, when it was healthy, and when
faults were in force. Operations are counted by *segment*: the time between two of their boundaries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from wrackline.checkers.inputs.runs import Fault, Phase, Run

RECOVERY_NS = 10_000_000_000
"""A gap in acks that begins so long after a fault has ended is not that fault's."""
QUIET_NS = 1_000_000_000
"""The period before anything goes wrong that the asked rate is measured in is so long at least."""
HEALTHY_NS = 5_000_000_000
"""A period without faults, between or after faults, counts as a healthy phase from this length on."""


@dataclass(frozen=True, slots=True)
class HealthyPeriod:
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
    """Returns the time in which clients work, as (begin, end) in ns: from the first operation until they
    are stopped, for they go on while the system is healed."""
    phases = [phase for phase in run.phases if phase.name in ("warm", "main", "heal")]
    return (phases[0].begin_ns, phases[-1].end_ns) if phases else (0, run.end_ns)


def first_fault_ns(run: Run) -> int | None:
    return min((fault.begin_ns for fault in run.faults if fault.begin_ns is not None), default=None)


def healthy(run: Run) -> list[HealthyPeriod]:
    """The periods of the driven phases without any fault: all before the first, and long ones after it."""
    first = first_fault_ns(run)
    troubles = sorted(
        (fault.begin_ns if fault.begin_ns is not None else fault.struck_ns, fault.ended_ns or run.end_ns)
        for fault in run.faults
    )
    result = []
    for phase in driven(run):
        at = phase.begin_ns
        for begin, end in [*troubles, (phase.end_ns, phase.end_ns)]:
            if begin > at:
                result.append((phase.name, at, min(begin, phase.end_ns)))
            at = max(at, end)
    return [
        HealthyPeriod(name, begin, end)
        for name, begin, end in result
        if end > begin and (end - begin >= HEALTHY_NS or first is None or end <= first)
    ]


def boundaries(run: Run) -> list[int]:
    """Returns the times, in ns, at which segments begin: at each begin and end of a healthy period or a
    phase. Operations are counted by the segment they were invoked in."""
    times = {time for period in healthy(run) for time in (period.begin_ns, period.end_ns)}
    times |= {time for phase in run.phases for time in (phase.begin_ns, phase.end_ns)}
    times |= {time for fault in run.faults for time in in_force(run, fault)}
    times |= {time for time in trouble(run) if time is not None}
    quiet = quiet_start(run)
    return sorted(times | ({quiet.end_ns} if quiet else set()))


def in_force(run: Run, fault: Fault) -> tuple[int, int]:
    """Returns the time in which the fault was in force, as (begin, end) in ns: from its begin to its end,
    or to that of the run."""
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
    """Segments of the main phase's healthy periods; without phases on record, of all of them."""
    periods = [period for period in healthy(run) if period.name != "warm"]
    return set().union(*(segments_between(run, one.begin_ns, one.end_ns) for one in periods))


def trouble(run: Run) -> tuple[int | None, int | None]:
    """Returns the time from the first fault's begin to the last one's end, in ns; None for each that is
    not known."""
    ends = [fault.ended_ns or run.end_ns for fault in run.faults]
    return first_fault_ns(run), max(ends, default=None)


def quiet_start(run: Run) -> HealthyPeriod | None:
    """A second of it at least; a member that crashes ends it, as a fault does."""
    first = first_fault_ns(run)
    quiet = [period for period in healthy(run) if first is None or period.end_ns <= first]
    whole = next((period for period in quiet if period.name != "warm"), quiet[0] if quiet else None)
    if whole is None:
        return None
    crash = next((at for at in run.crashes if whole.begin_ns + QUIET_NS <= at < whole.end_ns), whole.end_ns)
    return replace(whole, end_ns=crash)
