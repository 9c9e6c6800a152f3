"""Verdicts (docs/anomalies.md section 9): findings under a contract, and the conditions without which nothing
is proved.

Precedence: violation > infrastructure > inconclusive > pass, except that trouble of hosts before the final
read was whole outranks findings that rest on that read alone. A run with expected anomalies is judged the
other way round: reproduced or not reproduced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from wrackline.checkers.findings import EXIT_CODES, Meaning, Verdict
from wrackline.checkers.inputs.runs import Fault, Place, Run
from wrackline.checkers.verdict.anomaly import Anomaly
from wrackline.checkers.verdict.conditions.condition import Condition
from wrackline.checkers.verdict.conditions.conditions import all_looked_for, conditions, planned_faults
from wrackline.checkers.verdict.contracts import OF_TRANSACTIONS, Contract, Rule, Ruling
from wrackline.checkers.verdict.deletions import deletions
from wrackline.checkers.verdict.incidents.incidents import NONE_FOUND, Incidents
from wrackline.checkers.verdict.incidents.sentences import capital, in_full
from wrackline.checkers.verdict.measures.load import load_during_faults, load_of_main
from wrackline.checkers.verdict.measures.metrics import Figures, Outcomes
from wrackline.checkers.verdict.measures.outage import outage
from wrackline.checkers.verdict.readers import SLIPPED, has_slipped, slips, unserved
from wrackline.checkers.verdict.system_words import pair, row
from wrackline.checkers.verdict.wording import listed
from wrackline.history.wording import plural, size

UNPROVEN = "unproven-write"
MOST_REASONS: Final = 3
"""Times that excuse findings of one anomaly, of which its reason tells."""
NOTHING: Final = "nothing was found that the contract forbids"
NO_EVIDENCE = "the final read proves nothing here, since hosts failed before it was complete"


@dataclass
class Found:
    """The findings of the checks in one run, counted."""

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


def rulings(contract: Contract, found: Found, incidents: Incidents = NONE_FOUND) -> list[Judged]:
    """Every anomaly that was looked for, with what it means under the contract. ``incidents``: they know of
    each finding what it means; without them nobody knows when it was."""
    rows = []
    order = list(Meaning)
    for anomaly, by_place in found.counts.items():
        each: Counter[Ruling] = Counter(incidents.rulings.get(anomaly, {}))
        if not each:
            for place, count in (by_place or {None: 0}).items():
                each[rule_of(contract, anomaly, place).at_any_time] += count
        for meaning in sorted({one.meaning for one in each}, key=order.index):
            own = {one: count for one, count in each.items() if one.meaning is meaning}
            rows.append(Judged(anomaly, meaning, sum(own.values()), _why(own)))
    return [*rows, _unproven(found)]


def _why(each: Mapping[Ruling, int]) -> str:
    """The reason of most findings, with the first times that it was so."""
    most = max(each, key=lambda one: sum(count for other, count in each.items() if other.why == one.why))
    because = [one.because for one in each if one.why == most.why and one.because]
    if len(because) > MOST_REASONS:
        because[MOST_REASONS:] = [f"{len(because) - MOST_REASONS} more such times"]
    others = {one.why for one in each} - {most.why}
    also = f" (or {'; '.join(sorted(others))})" if others else ""
    return replace(most, because="; ".join(because)).text + also


def rule_of(contract: Contract, anomaly: str, place: Place | None) -> Rule:
    """Returns the contract's rule for findings, unless the run expects them, or its own troubles can have
    made them."""
    run, of = contract.run, contract.anomalies[anomaly]
    if anomaly in run.info.expected and not contract.forced:
        return Rule(Ruling(Meaning.EXPECTED, "the specification expects this run to show it"))
    if is_spoiled(run, of):
        return Rule(Ruling(Meaning.NOT_APPLICABLE, NO_EVIDENCE))
    if has_slipped(run, of, place):
        return Rule(Ruling(Meaning.NOT_APPLICABLE, SLIPPED))
    if of.rests_on_replicas and (why := run.info.unread.get("replicas")) is not None:
        return Rule(Ruling(Meaning.NOT_APPLICABLE, f"no replica's log was read: {why}"))
    return contract.rule(anomaly, place)


def _unproven(found: Found) -> Judged:
    count = found.unproven_read + found.unproven_unseen
    why = (
        f"a send of unknown outcome may have been stored or not; {found.unproven_read:,} of the records were "
        f"read, {found.unproven_unseen:,} were never seen"
    )
    return Judged(UNPROVEN, Meaning.ALLOWED, count, why)


def decide(
    contract: Contract, anomalies: list[Judged], found: Found, met: list[Condition]
) -> tuple[Verdict, list[str]]:
    """(verdict, its reasons)."""
    run = contract.run
    missing = [f"this condition does not hold: {one.name} ({one.detail})" for one in met if not one.ok]
    if run.info.expected and not contract.forced:
        return _decide_expected(contract, found, missing)
    forbidden = [one for one in anomalies if one.meaning is Meaning.VIOLATION and one.count]
    weak = [
        f"{_counted(one)} no evidence: {one.why}"
        for one in anomalies
        if one.count and one.why in (NO_EVIDENCE, SLIPPED)
    ]
    slipped = slips(run)
    if forbidden:
        lost = any(contract.anomalies[one.anomaly].is_loss for one in forbidden)
        return Verdict.VIOLATION, [
            *(f"{_counted(one)} forbidden: {one.why}" for one in forbidden),
            *(unserved(run) if lost else ()),
            *slipped,
            *weak,
            *missing,
        ]
    if run.trouble is not None or slipped:
        troubles = [] if run.trouble is None else [run.trouble.error]
        return Verdict.INFRASTRUCTURE, [*troubles, *slipped, *weak, *missing]
    if missing:
        return Verdict.INCONCLUSIVE, missing
    allowed = [f"{_counted(one)} allowed: {one.why}" for one in anomalies if one.count]
    untested = [f"not tested: {what}" for what in run.info.untested]
    deleted = [f"deleted, and not judged as lost: {one}" for one in deletions(run)]
    return Verdict.PASS, [NOTHING, *_unread(run), *untested, *deleted, *allowed]


def _counted(one: Judged) -> str:
    """``7 findings of lost-write are``; what is counted as unproven is no finding."""
    if one.anomaly == UNPROVEN:
        return f"{plural(one.count, 'unproven write')} {'is' if one.count == 1 else 'are'}"
    return f"{plural(one.count, 'finding')} of {one.anomaly} {'is' if one.count == 1 else 'are'}"


def times(count: int) -> str:
    """Returns a count in words: ``once``, ``3 times``."""
    return "once" if count == 1 else f"{count:,} times"


def _unread(run: Run) -> list[str]:
    """Says in one line which evidence was not read, so that a pass does not rest on it."""
    by_why: dict[str, list[str]] = {}
    for what, why in run.info.unread.items():
        by_why.setdefault(why, []).append(what)
    unread = "; ".join(f"{', '.join(what)} ({why})" for why, what in by_why.items())
    return (
        [f"not looked at: {unread}; the verdict rests on the answers to clients and on the final read"]
        if unread
        else []
    )


def is_spoiled(run: Run, anomaly: Anomaly) -> bool:
    return anomaly.rests_on_final_read and run.trouble is not None and run.trouble.spoils_final_read


def _decide_expected(contract: Contract, found: Found, missing: list[str]) -> tuple[Verdict, list[str]]:
    run = contract.run
    seen = [name for name in run.info.expected if found.total(name)]
    firm = [
        name
        for name in seen
        if not is_spoiled(run, contract.anomalies[name])
        and not has_slipped(run, contract.anomalies[name], None)
    ]
    shown = [f"{name} was found {times(found.total(name))}, as expected" for name in seen]
    absent = [f"{name} was expected and not found" for name in run.info.expected if name not in seen]
    if len(firm) == len(run.info.expected):
        return Verdict.REPRODUCED, shown
    if run.trouble is not None or slips(run):
        troubles = [] if run.trouble is None else [run.trouble.error]
        return Verdict.INFRASTRUCTURE, [*troubles, *slips(run), *shown, *absent]
    if missing:
        return Verdict.INCONCLUSIVE, absent + missing
    return Verdict.NOT_REPRODUCED, absent + shown


def rules_of(contract: Contract) -> Callable[[str, Place | None], Rule]:
    """Returns the function that gives the rule for findings of an anomaly in a partition in the contract's
    run."""
    return lambda anomaly, place: rule_of(contract, anomaly, place)


def verdict(
    contract: Contract,
    found: Found,
    figures: Figures,
    engine: Mapping[str, Any],
    incidents: Incidents = NONE_FOUND,
    not_looked_for: Sequence[str] = (),
) -> dict[str, Any]:
    """The content of verdict.json. ``not_looked_for``: anomalies that are installed, by name."""
    run = contract.run
    anomalies = rulings(contract, found, incidents)
    looked_for = [name for name in found.counts if name not in not_looked_for]
    met = [*conditions(run, figures), all_looked_for(looked_for, not_looked_for)]
    decided, reasons = decide(contract, anomalies, found, met)
    if decided is Verdict.VIOLATION:
        reasons = [*_what_happened(incidents), *reasons]
    of_pair = _of_the_pair(contract, anomalies, figures)
    if of_pair:
        reasons = [*reasons, f"of transactions client and system decide together: this was {of_pair}"]
    return {
        "test_id": run.info.test_id,
        "name": run.info.name,
        "verdict": str(decided),
        "exit_code": EXIT_CODES[decided],
        "headline": _headline(decided, contract, anomalies, figures, reasons, incidents),
        "reasons": reasons,
        "contract": {
            "name": contract.name,
            "row": _row(contract),
            "promise": contract.terms.promise,
            "because": list(contract.because),
        },
        "incidents": [one.to_json() for one in incidents.shown],
        "incident_counts": {str(meaning): count for meaning, count in incidents.counts.items()},
        "anomalies": [
            {
                **asdict(one),
                "meaning": str(one.meaning),
                "in_violations": incidents.within.get(one.anomaly, 0)
                if one.meaning is not Meaning.VIOLATION
                else one.count,
            }
            for one in anomalies
        ],
        "checks": {"looked_for": looked_for, "not_looked_for": list(not_looked_for)},
        "conditions": [asdict(one) for one in met],
        "faults": [_fault(fault) for fault in run.faults],
        "planned_faults": None if run.info.plan is None else len(planned_faults(run)),
        "interrupted": run.course.interrupted,
        "outage": outage(run, figures),
        "counts": _counts(figures, found),
        "engine": dict(engine),
    }


def _row(contract: Contract) -> str:
    topics = contract.run.info.topics
    least = f", MinISR={min(t.min_insync_replicas for t in topics)}" if topics else ""
    head, comma, tail = row(contract.terms.row, contract.run.info).partition(",")
    modifiers = ", idempotence on" if contract.terms.idempotence else ""
    return f"{head}{least}{comma}{tail}{modifiers}"


def _of_the_pair(contract: Contract, anomalies: list[Judged], figures: Figures) -> str:
    """Names the client and the system where something is wrong with transactions: neither of them is right
    or wrong alone."""
    bad = (Meaning.VIOLATION, Meaning.EXPECTED)
    result = {one.anomaly for one in anomalies if one.count and one.meaning in bad}
    breaks = {contract.anomalies[anomaly].breaks for anomaly in result}
    return pair(contract.run.info) if breaks & OF_TRANSACTIONS and figures.transactions else ""


def _what_happened(incidents: Incidents) -> list[str]:
    """Describes each incident that breaks the contract, with its mechanism and evidence."""
    shown = incidents.of(Meaning.VIOLATION)
    result = [in_full(one.to_json()) for one in shown]
    more = incidents.counts.get(Meaning.VIOLATION, 0) - len(shown)
    return [*result, f"There are {more:,} more incidents that the contract forbids."] if more > 0 else result


def _by_incidents(incidents: Incidents, meaning: Meaning) -> str:
    """The sentence of the only incident of this meaning, or of the first, with how many there are; empty
    where there is none."""
    shown, count = incidents.of(meaning), incidents.counts.get(meaning, 0)
    if not shown:
        return ""
    if meaning in incidents.at_once:
        return f"{plural(count, 'incident')}: {incidents.at_once[meaning]}"
    return f"{plural(count, 'incident')}, the first: {shown[0].sentence}" if count > 1 else shown[0].sentence


def _headline(
    decided: Verdict,
    contract: Contract,
    anomalies: list[Judged],
    figures: Figures,
    reasons: list[str],
    incidents: Incidents,
) -> str:
    run = contract.run
    acked = f"{figures.acked_records:,} acknowledged records"
    cut = "" if run.course.interrupted is None else f"; {run.course.interrupted}"
    unwritten = f"; {told}" if (told := outage(run, figures)) else ""
    match decided:
        case Verdict.VIOLATION:
            forbidden = [one for one in anomalies if one.meaning is Meaning.VIOLATION and one.count]
            named = ", ".join(f"{one.count:,} {one.anomaly}" for one in forbidden)
            pair_of = _of_the_pair(contract, anomalies, figures)
            among = f"among {acked} {_under(run, figures)}{f', {pair_of}' if pair_of else ''}{unwritten}{cut}"
            if what := _by_incidents(incidents, Meaning.VIOLATION):
                return f"{capital(what)}. {contract.name} was broken {among}"
            return f"{contract.name} was broken: {named} {among}"
        case Verdict.PASS:
            read = ", by the final read alone" if "replicas" in run.info.unread else ""
            if gone := _allowed_loss(contract, anomalies, f"{acked} under {_faults(run)}", read):
                return f"{gone}{unwritten}"
            deleted = [f"; deleted: {one}" for one in deletions(run)[:1]]
            kept = f"none of the records is {'lost' if deleted else 'gone'}{''.join(deleted)}"
            return (
                f"{_survived(run, figures)}: {kept}{unwritten}. {contract.name} was kept{read}"
                f"{_left_out(run, figures)}"
            )
        case Verdict.INCONCLUSIVE:
            return f"Nothing forbidden was found, but this run proves nothing: {reasons[0]}"
        case Verdict.INFRASTRUCTURE:
            return f"The run broke down, not the system: {reasons[0]}"
        case _:
            what = _by_incidents(incidents, Meaning.EXPECTED)
            shown = f"; {what}" if what else ""
            return f"{str(decided).capitalize()}: {'; '.join(reasons)}{shown}{unwritten}{cut}"


def _allowed_loss(contract: Contract, anomalies: list[Judged], acked: str, read: str) -> str:
    """``56 of 56 acknowledged records under 2 faults are gone. acks-1 allows that: ...``; empty where nothing
    is: a promise under which records were lost was not put to the test, so nobody says that it was kept.
    ``acked``: how many, and under which faults. ``read``: by what alone it was judged."""
    lost = {
        one.anomaly: one
        for one in anomalies
        if one.count and one.anomaly != UNPROVEN and contract.anomalies[one.anomaly].is_loss
    }
    if not lost:
        return ""
    first = next(iter(lost.values()))
    if (of := lost.get("lost-write")) is not None:
        first = of
        gone = f"{of.count:,} of {acked} {'is' if of.count == 1 else 'are'} gone"
    else:
        gone = f"{', '.join(f'{one.count:,} {name}' for name, one in lost.items())} among {acked}"
    return f"{gone}. {contract.name} allows that{read}: {first.why}"


def _survived(run: Run, figures: Figures) -> str:
    """``3 faults, 10,875 records acknowledged, 1.6 MiB of unsynced data lost on n1``."""
    lost: Counter[str] = Counter()
    for fault in run.faults:
        lost.update({host: sum(files.values()) for host, files in fault.lost.items()})
    lost = +lost
    data = f", {size(lost.total())} of unsynced data lost on {listed(sorted(lost))}" if lost else ""
    return f"{capital(_faults(run))}, {plural(figures.acked_records, 'record')} acknowledged{data}"


def _faults(run: Run) -> str:
    """``2 faults``, ``1 of 3 planned faults``, ``no fault``."""
    faults, planned = sum(fault.asked_for for fault in run.faults), len(planned_faults(run))
    if planned > faults:
        return f"{faults} of {plural(planned, 'planned fault')}"
    return plural(faults, "fault") if faults else "no fault"


def _under(run: Run, figures: Figures) -> str:
    """``under 2 faults``, and what was left out of the load."""
    return f"under {_faults(run)}{_left_out(run, figures)}"


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
        "restored": fault.restored,
        "restoration": fault.restoration,
        "asked_for": fault.asked_for,
        "lossy": list(fault.lossy),
        "unsure": list(fault.unsure),
        "lost": {host: dict(files) for host, files in fault.lost.items()},
        "damaged": {host: dict(files) for host, files in fault.damaged.items()},
    }


def _counts(figures: Figures, found: Found) -> dict[str, Any]:
    total = sum(figures.segments.values(), Outcomes())
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
