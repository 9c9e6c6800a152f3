"""Verdicts (anomalies.md section 9): findings under a contract, and the conditions without which nothing is proved.

Precedence: violation > infrastructure > inconclusive > pass. A run with expected anomalies is judged the other way
round: reproduced or not reproduced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from checkers.conditions import Condition, conditions
from checkers.contracts import Contract, Ruling
from checkers.findings import EXIT_CODES, Meaning, Verdict
from checkers.load import load_during_faults, load_of_main
from checkers.metrics import Figures, Outcomes
from checkers.runs import Fault, Place, Run

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
class Judged:
    """An anomaly and what it means here; an anomaly has two rows where partitions differ."""

    anomaly: str
    meaning: Meaning
    count: int
    why: str


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
