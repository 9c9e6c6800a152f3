"""Verdicts (anomalies.md section 9): findings under a contract, and the conditions without which nothing is proved.

Precedence: violation > infrastructure > inconclusive > pass. A run with expected anomalies is judged the other way
round: reproduced or not reproduced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from checkers import metrics
from checkers.contracts import Contract, Ruling
from checkers.findings import EXIT_CODES, Meaning, Verdict
from checkers.load import LEFT_OUT_LIMIT, load_during_faults, load_of_main
from checkers.metrics import Figures, Outcomes
from checkers.runs import Fault, Place, Run

RATE_TOLERANCE = 0.95
"""The asked rate is paced by a clock: so much of it counts as reached."""
UNPROVEN = "unproven-write"


@dataclass
class Found:
    """What the checks found in one run, counted."""

    counts: dict[str, dict[Place | None, int]] = field(default_factory=dict)
    """Every anomaly that was looked for -> partition -> findings."""
    unproven_read: int = 0
    unproven_unseen: int = 0

    def total(self, anomaly: str) -> int:
        return sum(self.counts.get(anomaly, {}).values())


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Judged:
    """An anomaly and what it means here; an anomaly has two rows where partitions differ."""

    anomaly: str
    meaning: Meaning
    count: int
    why: str


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


def rulings(contract: Contract, found: Found) -> list[Judged]:
    """Every anomaly that was looked for, with what it means under the contract."""
    expected = set(contract.run.info.expected) if not contract.forced else set()
    rows = []
    for anomaly, by_place in found.counts.items():
        by_ruling: dict[Ruling, int] = {}
        for place, count in by_place.items():
            ruling = contract.ruling(anomaly, place)
            if anomaly in expected:
                ruling = Ruling(Meaning.EXPECTED, "this run must show it")
            by_ruling[ruling] = by_ruling.get(ruling, 0) + count
        if not by_ruling:
            ruling = contract.ruling(anomaly, None)
            by_ruling[
                Ruling(Meaning.EXPECTED, "this run must show it") if anomaly in expected else ruling
            ] = 0
        by_meaning: dict[Meaning, Judged] = {}
        for ruling, count in by_ruling.items():
            before = by_meaning.get(ruling.meaning)
            total = count + (before.count if before else 0)
            why = before.why if before else ruling.why
            by_meaning[ruling.meaning] = Judged(anomaly, ruling.meaning, total, why)
        order = list(Meaning)
        rows += sorted(by_meaning.values(), key=lambda one: order.index(one.meaning))
    return [*rows, _unproven(found)]


def _unproven(found: Found) -> Judged:
    count = found.unproven_read + found.unproven_unseen
    why = f"sends of unknown outcome, counted: {found.unproven_read} were read, {found.unproven_unseen} were never seen"
    return Judged(UNPROVEN, Meaning.ALLOWED, count, why)


def decide(
    contract: Contract, anomalies: list[Judged], found: Found, met: list[Condition]
) -> tuple[Verdict, list[str]]:
    """(verdict, its reasons)."""
    run = contract.run
    missing = [f"{one.name}: no ({one.detail})" for one in met if not one.ok]
    if run.info.expected and not contract.forced:
        return _decide_expected(run, found, missing)
    forbidden = [one for one in anomalies if one.meaning is Meaning.VIOLATION and one.count]
    if forbidden:
        return Verdict.VIOLATION, [f"{one.count} {one.anomaly}: {one.why}" for one in forbidden] + missing
    if run.infrastructure is not None:
        return Verdict.INFRASTRUCTURE, [run.infrastructure]
    if missing:
        return Verdict.INCONCLUSIVE, missing
    allowed = [f"{one.count} {one.anomaly}, allowed: {one.why}" for one in anomalies if one.count]
    return Verdict.PASS, ["nothing that the contract forbids was found", *allowed]


def _decide_expected(run: Run, found: Found, missing: list[str]) -> tuple[Verdict, list[str]]:
    shown = [
        f"{found.total(name)} {name} found, as expected" for name in run.info.expected if found.total(name)
    ]
    absent = [f"{name} was expected and not found" for name in run.info.expected if not found.total(name)]
    if not absent:
        return Verdict.REPRODUCED, shown
    if run.infrastructure is not None:
        return Verdict.INFRASTRUCTURE, [run.infrastructure]
    if missing:
        return Verdict.INCONCLUSIVE, absent + missing
    return Verdict.NOT_REPRODUCED, absent + shown


def verdict(contract: Contract, found: Found, figures: Figures, engine: Mapping[str, Any]) -> dict[str, Any]:
    """The content of verdict.json."""
    run = contract.run
    anomalies = rulings(contract, found)
    met = conditions(run, figures)
    decided, reasons = decide(contract, anomalies, found, met)
    return {
        "test_id": run.info.test_id,
        "name": run.info.name,
        "verdict": str(decided),
        "exit_code": EXIT_CODES[decided],
        "headline": _headline(decided, contract, anomalies, figures, reasons),
        "reasons": reasons,
        "contract": {
            "name": contract.name,
            "row": _row(contract),
            "promise": contract.terms.promise,
            "because": list(contract.because),
        },
        "anomalies": [
            {"anomaly": one.anomaly, "meaning": str(one.meaning), "count": one.count, "why": one.why}
            for one in anomalies
        ],
        "conditions": [{"name": one.name, "ok": one.ok, "detail": one.detail} for one in met],
        "faults": [_fault(fault) for fault in run.faults],
        "counts": _counts(figures, found),
        "engine": dict(engine),
    }


def _row(contract: Contract) -> str:
    topics = contract.run.info.topics
    least = f", MinISR={min(t.min_insync_replicas for t in topics)}" if topics else ""
    head, comma, tail = contract.terms.row.partition(",")
    modifiers = ", idempotence on" if contract.terms.idempotence else ""
    return f"{head}{least}{comma}{tail}{modifiers}"


def _headline(
    decided: Verdict, contract: Contract, anomalies: list[Judged], figures: Figures, reasons: list[str]
) -> str:
    acked = f"{figures.acked_records:,} acknowledged records"
    faults = len(contract.run.faults)
    under = f"under {faults} fault{'s' * (faults != 1)}{_left_out(contract.run, figures)}"
    match decided:
        case Verdict.VIOLATION:
            forbidden = [one for one in anomalies if one.meaning is Meaning.VIOLATION and one.count]
            what = ", ".join(f"{one.count:,} {one.anomaly}" for one in forbidden)
            return f"{contract.name} was broken: {what} among {acked} {under}"
        case Verdict.PASS:
            allowed = [
                f"{one.count:,} {one.anomaly}" for one in anomalies if one.count and one.anomaly != UNPROVEN
            ]
            also = f" (allowed and found: {', '.join(allowed)})" if allowed else ""
            return f"{contract.name} was kept: {acked} {under}{also}"
        case Verdict.INCONCLUSIVE:
            return f"Nothing forbidden was found, but nothing is proved either: {reasons[0]}"
        case Verdict.INFRASTRUCTURE:
            return f"The run broke down, not the system: {reasons[0]}"
        case _:
            return f"{str(decided).capitalize()}: {'; '.join(reasons)}"


def _left_out(run: Run, figures: Figures) -> str:
    load = load_of_main(run, figures)
    if load is None or load.left_out < 0.005:
        return ""
    during = load_during_faults(run, figures)
    faults = f", {during.left_out:.0%} during faults" if during else ""
    return f", with {load.left_out:.0%} of the asked operations left out{faults}"


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "id": fault.id,
        "fault": fault.name,
        "targets": list(fault.targets),
        "role": fault.role,
        "begin_ns": fault.begin_ns,
        "active_ns": fault.active_ns,
        "undo_ns": fault.undo_ns,
        "ended_ns": fault.ended_ns,
        "proved": fault.proved,
        "proof": fault.proof or fault.error,
        "lossy": list(fault.lossy),
        "lost": {host: dict(files) for host, files in fault.lost.items()},
    }


def _counts(figures: Figures, found: Found) -> dict[str, Any]:
    total = Outcomes()
    for outcomes in figures.segments.values():
        total.ok += outcomes.ok
        total.fail += outcomes.fail
        total.info += outcomes.info
    return {
        "operations": total.all,
        "ok": total.ok,
        "fail": total.fail,
        "info": total.info,
        "acked_records": figures.acked_records,
        "read_records": figures.read_records,
        "sends_by_error": dict(sorted(figures.errors.items(), key=lambda one: -one[1])),
        "unproven_read": found.unproven_read,
        "unproven_unseen": found.unproven_unseen,
    }
