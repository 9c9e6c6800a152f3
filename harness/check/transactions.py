"""The transactions of a file: by our own search, and by Elle where that does not decide."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.answers import Decision, Impasse
from wrackline.checkers.exact.transactions.decide import LIST, decide
from wrackline.checkers.exact.transactions.levels import LEVELS, ORDERS
from wrackline.checkers.jvm.classpath import JvmUnavailable
from wrackline.checkers.models.protocol import ModelError
from wrackline.harness.check.elle import anomalies
from wrackline.harness.check.objects import Asking, around
from wrackline.harness.check.results import ELLE, EXACT, SEARCH, State, Stuck, Verdict, operation, shown
from wrackline.harness.jepsen.object_histories import Asked


def levels_of(consistency: str) -> tuple[str, ...]:
    """One, or several with commas between them. Raises ModelError."""
    result = tuple(dict.fromkeys(level.strip() for level in consistency.split(",")))
    for level in result:
        if level not in LEVELS:
            raise ModelError(f"there is no consistency {level!r}, only {', '.join(LEVELS)}")
    return result


def decide_transactions(asked: Asked, asking: Asking) -> Verdict:
    """Raises JvmUnavailable, where only Elle could decide."""
    began = time.monotonic()
    if asking.by == "elle":
        return replace(_by_elle(asked, asking), seconds=time.monotonic() - began)
    result = decide(
        asking.name, asked.transactions, asking.limits, level=asking.level, progress=asking.progress
    )
    verdict = _ours(result, asked, asking)
    if result.answer is Answer.UNKNOWN and result.repeated is None and asking.by != "search":
        verdict = _with_elle(verdict, asked, asking)
    return replace(verdict, seconds=time.monotonic() - began)


def _ours(found: Decision, asked: Asked, asking: Asking) -> Verdict:
    by = SEARCH if found.searched or found.answer is Answer.UNKNOWN else EXACT
    verdict = Verdict(None, found.answer, by, len(asked.transactions), promise=asking.level, why=found.why)
    if found.repeated is not None:
        return replace(verdict, by=EXACT, why=_repeated(*found.repeated, asked, asking.name))
    verdict = replace(
        verdict,
        anomalies=anomalies(found.anomalies, asking.name, asked.names, asked.done),
        refuted=found.refuted,
    )
    return verdict if found.impasse is None else _stuck(verdict, found.impasse, asked)


def _repeated(key: int, value: int, rows: Sequence[int], asked: Asked, model: str) -> str:
    at = " and ".join(str(asked.done[row].at) for row in rows[:2])
    if len(rows) < 2:
        wrote = f"operation {at} wrote nil to key {_name(asked, key)}, which is nil at first"
    else:
        verb = "appended" if model == LIST else "wrote"
        wrote = f"operations {at} both {verb} {_name(asked, value)} to key {_name(asked, key)}"
    said = f"{wrote}, and who read it read either: {model} needs values that are written once"
    return said if model == LIST else f"{said}; -m multi-register searches for an order all the same"


def _stuck(verdict: Verdict, impasse: Impasse, asked: Asked) -> Verdict:
    named = [asked.done[row] for row in dict.fromkeys([impasse.row, *(one[0] for one in impasse.blocked)])]
    why = [
        f"{'nil' if held is None else _name(asked, held)} in key {_name(asked, key)}, "
        f"which process {asked.done[reader].process} has yet to read (operation {asked.done[reader].at})"
        for _, key, held, reader in impasse.blocked
    ]
    order = tuple(operation(asked.done[row]) for row in impasse.placed)
    state = State(", and ".join(dict.fromkeys(why)), (), tuple(operation(one) for one in named[1:] or named))
    return replace(
        verdict,
        stuck=Stuck(operation(named[0]), (state,), order),
        around=around(asked.done, [named[0]]),
    )


def _with_elle(ours: Verdict, asked: Asked, asking: Asking) -> Verdict:
    """Returns Elle's verdict where our own search does not decide. That it finds nothing is a proof only
    of what it infers completely."""
    ordered = asking.level in ORDERS
    try:
        result = _by_elle(asked, asking)
    except JvmUnavailable as gone:
        if not ordered:
            raise
        return replace(ours, why=f"{ours.why}; Elle could be asked: {gone}")
    if not ordered:
        return result
    if result.answer is Answer.INVALID:
        return replace(result, note=f"our own search did not decide: {ours.why}")
    said = f"does not decide: {result.why}"
    if result.answer is Answer.VALID:
        said = "finds nothing, which is no proof"
    return replace(ours, why=f"{ours.why}; Elle {said}")


def _by_elle(asked: Asked, asking: Asking) -> Verdict:
    asking.progress(f"Elle, {len(asked.transactions)} transactions")
    result = asking.bridge().serializable(
        asking.name, asked.transactions, consistency=asking.level, deadline_s=asking.limits.deadline_s
    )
    return Verdict(
        None,
        result.answer,
        ELLE,
        len(asked.transactions),
        promise=asking.level,
        why=result.why,
        anomalies=anomalies(result.anomalies, asking.name, asked.names, asked.done),
        refuted=result.refuted,
    )


def _name(asked: Asked, number: int) -> str:
    return shown(asked.names.get(number, number))
