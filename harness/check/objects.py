"""One object: decided exactly where its values allow it, else by a search; by Knossos on demand."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wrackline.checkers.exact.judgement import Answer, Part
from wrackline.checkers.exact.operations import RepeatedValue
from wrackline.checkers.exact.queue import check_queue
from wrackline.checkers.exact.register import check_register
from wrackline.checkers.exact.transactions.columns import NIL
from wrackline.checkers.exact.transactions.placement import Limits
from wrackline.checkers.jvm.answers import Judgement
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Calls
from wrackline.checkers.jvm.calls import Model as KnossosModel
from wrackline.checkers.models.protocol import Model
from wrackline.checkers.models.protocol import Operation as Done
from wrackline.harness.check.reasons import of_log, of_object
from wrackline.harness.check.results import (
    EXACT,
    KNOSSOS,
    SEARCH,
    Operation,
    Problem,
    State,
    Stuck,
    Verdict,
    operation,
    shown,
)
from wrackline.harness.jepsen.log_histories import OF_VALUES, Log
from wrackline.harness.jepsen.object_histories import Subject

REGISTER, QUEUE, LOG = "register", "fifo-queue", "log"
MOST_PROBLEMS = 5
MOST_OPERATIONS = 8
MOST_AROUND = 24
_LAST_OF_ORDER = 12


@dataclass(frozen=True, slots=True)
class Asking:
    """The settings for deciding each object, or the transactions of a file."""

    name: str
    """Of the model."""
    model: Model[Any] | None
    """For our own search; None of transactions, which Elle decides."""
    by: str
    """"": exactly where possible, else by our own search, and of transactions by Elle. search, knossos, both,
    elle."""
    initial: Any
    holes: bool
    limits: Limits
    bridge: Callable[[], Bridge]
    """Starts none before the first question. Raises JvmUnavailable."""
    progress: Callable[[str], None]
    level: str = ""
    """The consistency that is asked about, of transactions."""


def decide(subject: Subject, asking: Asking) -> Iterator[Verdict]:
    """One verdict, or one for each part that the model divides the object into. Raises TextError, ModelError,
    JvmUnavailable."""
    if asking.by == "knossos":
        yield _by_knossos(subject, asking)
        return
    ours = _timed(lambda: list(_by_us(subject, asking)))
    if asking.by != "both":
        yield from ours
        return
    theirs = _by_knossos(subject, asking)
    yield from _compared(ours, theirs)


def _by_us(subject: Subject, asking: Asking) -> Iterator[Verdict]:
    note = ""
    if asking.name in (REGISTER, QUEUE) and asking.by != "search":
        try:
            yield _exactly(subject, asking)
            return
        except RepeatedValue as repeated:
            note = repeated_note(subject.value(repeated.value), repeated.others)
    for verdict in _searched(subject.key, subject.asked, subject.done, asking):
        yield replace(verdict, note=note)


def _searched(key: Any, asked: Sequence[Done], done: Sequence[Done], asking: Asking) -> Iterator[Verdict]:
    """``done``: what each of the operations that are ``asked`` about is in the file."""
    # It compiles itself when it is imported: who needs no search need not wait for it.
    from wrackline.checkers.exact.search.search import search

    assert asking.model is not None
    limits = asking.limits
    result = search(
        asked,
        asking.model,
        deadline_s=limits.deadline_s,
        memory_bytes=limits.memory_bytes,
        processes=len(os.sched_getaffinity(0)),
        progress=asking.progress,
    )
    for part in result.parts:
        yield _of_part(part, key, done)


def _of_part(part: Part, key: Any, done: Sequence[Done]) -> Verdict:
    keys = [one for one in (key, part.key) if one is not None]
    key = keys if len(keys) > 1 else next(iter(keys), None)

    def some(places: Sequence[int]) -> tuple[Operation, ...]:
        return tuple(operation(done[place]) for place in places)

    verdict = Verdict(key, part.answer, SEARCH, part.operations, why=part.why)
    if part.stuck is None:
        return verdict
    states = tuple(State(end.in_words, some(end.placed), some(end.waiting)) for end in part.ends)
    stuck = done[part.stuck]
    return replace(
        verdict,
        stuck=Stuck(operation(stuck), states, some(part.order[-_LAST_OF_ORDER:])),
        around=around(done, [stuck]),
    )


def _exactly(subject: Subject, asking: Asking) -> Verdict:
    """Raises RepeatedValue."""
    table = subject.exact(asking.initial)
    result: list[Any] = list(check_register(table) if asking.name == REGISTER else check_queue(table))
    done = subject.rows_of_exact()
    problems = [
        _problem(one.rule, _said(one, subject), [done[row] for row in one.rows[:MOST_OPERATIONS]])
        for one in result[:MOST_PROBLEMS]
    ]
    return _exact_verdict(subject.key, len(table), problems, len(result), subject.done)


def _said(breach: Any, subject: Subject) -> str:
    about = (None if one is None else subject.value(one) for one in (breach.value, breach.other))
    return of_object(breach.rule, *about)


def _problem(rule: Any, said: str, done: Sequence[Done]) -> tuple[Problem, Sequence[Done]]:
    """The problem, and the operations that show it as the file has them."""
    return Problem(str(rule), said, tuple(map(operation, done))), done


def _exact_verdict(
    key: Any,
    operations: int,
    problems: Sequence[tuple[Problem, Sequence[Done]]],
    count: int,
    done: Sequence[Done],
) -> Verdict:
    """``problems``: the first of the ``count`` that there are."""
    more = count - len(problems)
    return Verdict(
        key,
        Answer.INVALID if count else Answer.VALID,
        EXACT,
        operations,
        problems=tuple(problem for problem, _ in problems),
        around=around(done, next((named for _, named in problems if named), ())),
        note=f"and {more} more" if more else "",
    )


def decide_log(log: Log, asking: Asking) -> Iterator[Verdict]:
    """Raises TextError, JvmUnavailable."""
    whole, note = not (asking.holes or log.transactions), ""
    try:
        log.refuse_repeats()
    except RepeatedValue as repeated:
        note = repeated_note(log.value(repeated.value), repeated.others)
    search = bool(note) or asking.by == "search"
    if search and not whole:
        why = "where offsets may have no record, no search can decide"
        yield Verdict(log.key, Answer.UNKNOWN, SEARCH, len(log), why=why, note=note)
        return
    if asking.by == "knossos":
        yield replace(_log_by_knossos(log, asking, whole), note=note)
        return
    ours = _timed(lambda: [_log_by_search(log, asking) if search else _log_exactly(log, whole)])
    ours = [replace(one, note=_joined(note, one.note)) for one in ours]
    yield from _compared(ours, _log_by_knossos(log, asking, whole)) if asking.by == "both" else ours


def _log_by_search(log: Log, asking: Asking) -> Verdict:
    (verdict,) = _searched(log.key, *log.operations(), asking)
    return verdict


def _log_exactly(log: Log, whole: bool) -> Verdict:
    result = log.violations(holes=whole)
    problems = [
        _problem(
            wrong.rule,
            of_log(wrong.rule, log.value(wrong.offset) if wrong.rule in OF_VALUES else f"{wrong.offset:,}"),
            about[:MOST_OPERATIONS],
        )
        for wrong, about in result[:MOST_PROBLEMS]
    ]
    done = list({one.at: one for _, _, one in log.parts}.values())
    verdict = _exact_verdict(log.key, len(log), problems, len(result), done)
    return verdict if whole else replace(verdict, note=_joined(verdict.note, "holes allowed"))


def _log_by_knossos(log: Log, asking: Asking, whole: bool) -> Verdict:
    calls, rows = log.calls(holes=whole)
    return _knossos_verdict(log.key, calls, rows, asking, log.value)


def _by_knossos(subject: Subject, asking: Asking) -> Verdict:
    calls = subject.calls(KnossosModel(asking.name), asking.initial)
    return _knossos_verdict(subject.key, calls, subject.rows_of_calls(), asking, subject.value)


def _knossos_verdict(
    key: Any, calls: Calls, rows: Sequence[Done], asking: Asking, value: Callable[[int], Any]
) -> Verdict:
    began = time.monotonic()
    result = asking.bridge().linearizable(calls, deadline_s=asking.limits.deadline_s)
    verdict = Verdict(
        key, result.answer, KNOSSOS, len(calls), why=result.why, seconds=time.monotonic() - began
    )
    if result.row is None:
        return verdict
    states = tuple(
        State(
            _holds(result, at, asking.name, value),
            tuple(operation(rows[row]) for row in state.placed),
            tuple(operation(rows[row]) for row in state.waiting),
        )
        for at, state in enumerate(result.states)
    )
    stuck = rows[result.row]
    return replace(verdict, stuck=Stuck(operation(stuck), states), around=around(rows, [stuck]))


def _holds(found: Judgement, at: int, model: str, value: Callable[[int], Any]) -> str:
    """A state of Knossos's in words; its numbers stand for values."""
    state = found.states[at]
    if model == "mutex":
        return "held" if state.holds[0] else "free"

    def named(number: int) -> str:
        return "nil" if number == NIL else shown(value(number))

    if model in (REGISTER, "cas-register"):
        return named(state.holds[0])
    held, size = [named(one) for one in state.holds], state.size
    if model == "multi-register":
        held, size = [f"{key}: {one}" for key, one in zip(held[::2], held[1::2], strict=True)], size // 2
    inside = ", ".join(held)
    more = size - len(held)
    brackets = "{}" if model in ("set", "unordered-queue", "multi-register") else "[]"
    return f"{brackets[0]}{inside}{f' and {more} more' if more else ''}{brackets[1]}"


def _compared(ours: Sequence[Verdict], theirs: Verdict) -> Iterator[Verdict]:
    """Our verdicts, with what Knossos says of the same object."""
    answers = {one.answer for one in ours}
    worst = next((one for one in (Answer.INVALID, Answer.UNKNOWN) if one in answers), Answer.VALID)
    if Answer.UNKNOWN in (worst, theirs.answer) or worst is theirs.answer:
        said = f"Knossos says {theirs.answer}" + (f" ({theirs.why})" if theirs.why else "")
        if worst is Answer.UNKNOWN and theirs.answer is not Answer.UNKNOWN:
            yield replace(theirs, note=f"our own search did not decide: {ours[0].why}")
            return
        for one in ours:
            yield replace(one, note=_joined(one.note, said))
        return
    why = (
        f"the two referees disagree: {ours[0].by} says {worst}, Knossos says {theirs.answer}; one of them is "
        "wrong, please report this history"
    )
    yield replace(ours[0], answer=Answer.UNKNOWN, why=why)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def repeated_note(value: Any, others: int) -> str:
    more = f" (as were {others} others)" if others else ""
    return f"value {shown(value)} was put more than once{more}: only a search can decide"


def around(done: Sequence[Done], named: Sequence[Done]) -> tuple[Operation, ...]:
    """The operations at the time of those that are named, with the nearest before them: what a drawing shows
    beside them."""
    if not named:
        return ()
    first = min(one.inv for one in named)
    last = max((one.ret for one in named if one.ret is not None), default=max(one.inv for one in named))
    near = sorted(
        (one for one in done if one.inv <= last),
        key=lambda one: max(0, first - min(last if one.ret is None else one.ret, last)),
    )
    chosen = {one.at: one for one in [*named, *near[: MOST_AROUND - len(named)]]}
    return tuple(operation(chosen[at]) for at in sorted(chosen))


def _timed(judge: Callable[[], list[Verdict]]) -> list[Verdict]:
    began = time.monotonic()
    result = judge()
    seconds = time.monotonic() - began
    return [replace(one, seconds=seconds / len(result)) for one in result]
