"""What must hold of a run besides its findings, so that it can pass (anomalies.md section 9): a function each."""

from __future__ import annotations

from dataclasses import dataclass

from checkers import metrics
from checkers.load import LEFT_OUT_LIMIT, load_during_faults
from checkers.metrics import Figures
from checkers.runs import Fault, Place, Run

RATE_TOLERANCE = 0.95
"""The asked rate is paced by a clock: so much of it counts as reached."""


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    ok: bool
    detail: str


def conditions(run: Run, figures: Figures) -> list[Condition]:
    return [
        _faults_proved(run),
        _final_read(run),
        _replicas_read(run),
        _kinds_succeeded(run, figures),
        _rate_reached(run, figures),
        _load_kept_up(run, figures),
    ]


def _faults_proved(run: Run) -> Condition:
    missing = [
        f"{fault.id} ({fault.title}): {_why_unproved(fault)}" for fault in run.faults if not fault.proved
    ]
    if missing:
        return Condition("every fault proved", False, "not proved: " + "; ".join(missing))
    detail = f"{len(run.faults)} of {len(run.faults)}" if run.faults else "no fault was injected"
    return Condition("every fault proved", True, detail)


def _why_unproved(fault: Fault) -> str:
    if fault.ended_ns is None:
        return "its end is not on record"
    return fault.error or fault.proof or "no proof given"


def _final_read(run: Run) -> Condition:
    short = []
    for place in run.places:
        final = run.final.get(place)
        if final is None:
            short.append(f"{_name(place)} was not read")
        elif not final.complete:
            short.append(f"{_name(place)} was not read to its end offset {final.end}")
    if not run.places:
        short = ["no topic is on record"]
    detail = (
        "; ".join(short)
        if short
        else f"{len(run.places)} of {len(run.places)} partitions to their end offsets"
    )
    return Condition("final read complete", not short, detail)


def _replicas_read(run: Run) -> Condition:
    short, whole = [], 0
    for place in run.places:
        assigned = {run.host(node) for node in run.assignment.get(place, ())}
        there = run.replicas.get(place, {})
        if not (assigned or there):
            short.append(f"no replica of {_name(place)} was read")
        for host in sorted(assigned | set(there)):
            replica = there.get(host)
            if replica is None:
                short.append(f"the replica of {_name(place)} on {host} was not read")
            elif not replica.complete:
                why = f": {replica.problem}" if replica.problem else ""
                short.append(f"the replica of {_name(place)} on {host} was not read whole{why}")
            else:
                whole += 1
    return Condition("every replica's log read", not short, _first(short) or f"{whole} replicas, each whole")


def _kinds_succeeded(run: Run, figures: Figures) -> Condition:
    wrong = []
    stretches = metrics.healthy(run)
    if not stretches:
        wrong.append("there was no healthy phase")
    kinds = {f for _, f in figures.segments if f != "assign"}
    ever: set[str] = set()
    for stretch in stretches:
        outcomes = metrics.counted(run, figures, stretch.begin_ns, stretch.end_ns)
        when = f"{stretch.name} from {stretch.begin_ns / 1e9:.1f} to {stretch.end_ns / 1e9:.1f} s"
        if not outcomes and stretch.end_ns - stretch.begin_ns >= metrics.HEALTHY_NS:
            wrong.append(f"no operation was invoked in {when}")
        wrong += [
            f"no {f} succeeded in {when} ({one.all} tried)"
            for f, one in sorted(outcomes.items())
            if not one.ok
        ]
        ever |= {f for f, one in outcomes.items() if one.ok}
    wrong += [f"no {f} succeeded in any healthy phase" for f in sorted(kinds - ever)] if not wrong else []
    if not kinds:
        wrong.append("no operation is on record")
    detail = _first(wrong) or f"{', '.join(sorted(kinds))} in {len(stretches)} healthy phases"
    return Condition("every operation kind succeeded in every healthy phase", not wrong, detail)


def _rate_reached(run: Run, figures: Figures) -> Condition:
    name, asked = "asked rate reached before the first fault", run.info.rate
    reached = metrics.rate_before_first_fault(run, figures)
    if asked <= 0:
        told = "" if reached is None else f"; {reached:.0f} a second succeeded"
        return Condition(name, True, f"no rate was asked for{told}")
    if reached is None:
        return Condition(
            name, False, f"{asked:g} a second were asked for, but a fault struck before any were counted"
        )
    detail = f"{reached:.1f} of {asked:g} operations a second succeeded before the first fault"
    return Condition(name, reached >= asked * RATE_TOLERANCE, detail)


def _load_kept_up(run: Run, figures: Figures) -> Condition:
    """Clients that wait for dead partitions must not make the test weakest where it should be strongest."""
    name = "asked load kept up during faults"
    load = load_during_faults(run, figures)
    if load is None:
        return Condition(
            name, True, "no rate was asked for" if run.info.rate <= 0 else "no fault was injected"
        )
    limit = run.info.thresholds.get("left_out", LEFT_OUT_LIMIT)
    detail = (
        f"of {load.asked:g} operations a second asked for {load.begun:.0f} were begun and {load.succeeded:.0f} "
        f"succeeded: {load.left_out:.0%} were left out, {limit:.0%} may be"
    )
    return Condition(name, load.left_out <= limit, detail)


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def _first(texts: list[str], most: int = 5) -> str:
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more
