"""Checks that a run's acknowledgements can bear a verdict: there were some before, during and after its
faults.

A promise about acknowledged records is kept by whoever acknowledges nothing. So

- some records must have been acknowledged before the first fault, while faults were in force, and after the
  last one had ended (clients go on while the system is healed);
- each partition must have some at all; and in each of the three times, if it was tried: ``TRIED`` records or
  more.

While faults were in force a partition is excused where it could not be written: at no time did metadata show,
for ``WRITABLE_NS`` on end, a leader that no fault had for a target and (with acks=all, where the leader waits
for the whole ISR) an ISR of MinISR replicas of which no fault had any. Where every partition is excused (the
power of all hosts was cut), so is the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.runs import Place, Run, Sample
from wrackline.checkers.verdict.measures.metrics import Figures, Written

TRIED = 5
"""Fewer records than this may all have had bad luck."""
WRITABLE_NS = 5_000_000_000
"""Clients find a new leader within that time."""


@dataclass(frozen=True, slots=True)
class Period:
    name: str
    segments: frozenset[int]
    under_faults: bool = False


def periods(run: Run) -> list[Period]:
    """Returns the periods before, during and after the faults; the whole run where there were none."""
    begin, end = phases.clients_at_work(run)
    first, last = phases.trouble(run)
    if first is None or last is None:
        return [Period("in the run", frozenset(phases.segments_between(run, begin, end)))]
    return [
        Period("before the first fault", frozenset(phases.segments_between(run, begin, first))),
        Period("while faults were in force", frozenset(phases.faulty_segments(run)), under_faults=True),
        Period("after the last fault", frozenset(phases.segments_between(run, last, end))),
    ]


def acknowledged(run: Run, figures: Figures) -> tuple[list[str], str]:
    """Returns (what is missing, what there was)."""
    missing, counts = [], []
    for period in periods(run):
        total = _total(figures, period, None).acked
        counts.append(f"{total:,} {period.name}")
        lacking = [place for place in run.places if _lacks(run, figures, period, place)]
        if not total and not (period.under_faults and not any(is_writable(run, one) for one in run.places)):
            missing.append(f"nothing was acknowledged {period.name}")
        elif lacking:
            named = ", ".join(f"{topic}-{partition}" for topic, partition in lacking[:5])
            more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
            missing.append(f"nothing was acknowledged in {named}{more} {period.name}")
    ever = {place for (place, _), one in figures.written.items() if one.acked}
    never = [f"{topic}-{partition}" for topic, partition in run.places if (topic, partition) not in ever]
    if never and not missing:
        missing.append(
            f"nothing was ever acknowledged in {', '.join(never[:5])}{', ...' if never[5:] else ''}"
        )
    return missing, ", ".join(counts)


def _total(figures: Figures, period: Period, place: Place | None) -> Written:
    chosen = [
        one
        for (of, segment), one in figures.written.items()
        if segment in period.segments and place in (None, of)
    ]
    return Written(sum(one.tried for one in chosen), sum(one.acked for one in chosen))


def _lacks(run: Run, figures: Figures, period: Period, place: Place) -> bool:
    total = _total(figures, period, place)
    if total.acked or total.tried < TRIED:
        return False
    return not period.under_faults or is_writable(run, place)


def is_writable(run: Run, place: Place) -> bool:
    """Tells whether metadata showed the partition able to acknowledge, for long enough, while faults were
    in force."""
    since: int | None = None
    for sample in run.cluster.get(place, ()):
        hit = _hit(run, sample.time_ns)
        if hit is None or not _can_acknowledge(run, place, sample, hit):
            since = None
        elif since is None:
            since = sample.time_ns
        elif sample.time_ns - since >= WRITABLE_NS:
            return True
    return False


def _hit(run: Run, time_ns: int) -> set[str] | None:
    """Targets of the faults in force then; None when none was."""
    spans = [(phases.in_force(run, fault), fault.targets) for fault in run.faults]
    now = [targets for (begin, end), targets in spans if begin <= time_ns <= end]
    return {host for targets in now for host in targets} if now else None


def _can_acknowledge(run: Run, place: Place, sample: Sample, hit: set[str]) -> bool:
    least = [topic.min_insync_replicas for topic in run.info.topics if topic.name == place[0]]
    if run.host(sample.leader) in hit or sample.leader < 0:
        return False
    return run.info.acks == "1" or (
        len(sample.isr) >= min(least, default=1) and not any(run.host(node) in hit for node in sample.isr)
    )
