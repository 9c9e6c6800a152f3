"""One object, decided by a checker: a rule over its operations that needs no search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.checker import Problem as Broken
from wrackline.checkers.models.protocol import Operation as Done
from wrackline.harness.check.objects import MOST_OPERATIONS, MOST_PROBLEMS, around
from wrackline.harness.check.results import CHECKER, Problem, Verdict, operation
from wrackline.history.jepsen.text import TextError


def decide_by_rule(
    key: Any, done: Sequence[Done], asked: Sequence[Done], checker: Checker, progress: Callable[[str], None]
) -> Verdict:
    """``done``: what each of the operations that are ``asked`` about is in the file. Raises TextError,
    ModelError."""
    began = time.monotonic()
    try:
        result = checker.check(asked, progress)
    except OperationError as error:
        raise TextError(f"operation {done[error.place].at}: {error.why}") from error
    shown = _first_of_each(result)[:MOST_PROBLEMS]
    answer = Answer.INVALID if result.counts else Answer.UNKNOWN if result.undecided else Answer.VALID
    return Verdict(
        key,
        answer,
        CHECKER,
        len(done),
        promise=checker.promise,
        why=result.undecided if answer is Answer.UNKNOWN else "",
        problems=tuple(
            Problem(
                one.rule, one.sentence, tuple(operation(done[at]) for at in one.operations[:MOST_OPERATIONS])
            )
            for one in shown
        ),
        around=around(done, [done[at] for one in shown[:1] for at in one.operations]),
        note=_more(result, shown),
        figures=dict(result.figures),
        seconds=time.monotonic() - began,
    )


def _first_of_each(found: Found) -> list[Broken]:
    """The problems, with the first of each rule before the others."""
    first = {one.rule: one for one in reversed(found.problems)}
    firsts = [one for one in found.problems if first[one.rule] is one]
    return firsts + [one for one in found.problems if first[one.rule] is not one]


def _more(found: Found, shown: Sequence[Broken]) -> str:
    """``7 more: lost, 1 more: duplicate``."""
    left = {rule: count - sum(one.rule == rule for one in shown) for rule, count in found.counts.items()}
    return ", ".join(f"{count:,} more: {rule}" for rule, count in left.items() if count)
