"""What each model allows, one operation after another: cases.txt, whose first lines say how it is read.
``python -m tests.checkers.models.cases`` writes what is said anew."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import ModelError, Operation, Outcome, load

FILE = Path(__file__).with_suffix(".txt")
_CASE = re.compile(r"(?P<model>[\w-]+)(?: (?P<settings>{.*?}))?: (?P<steps>.+)")
_STEP = re.compile(
    r"(?:(?P<process>\d+) )?(?P<f>[a-z-]+)(?: (?P<argument>.+?))??(?: -> (?P<result>.+))?"
    r"(?: (?P<outcome>failed|unknown))?"
)
_OUTCOMES = {None: Outcome.OK, "failed": Outcome.FAIL, "unknown": Outcome.INFO}
_SAID = " => "


@dataclass(frozen=True)
class Case:
    asked: str
    model: str
    settings: dict[str, Any]
    history: list[Operation]
    said: str


def _case(line: str) -> Case:
    asked, _, said = line.partition(_SAID)
    read = _CASE.fullmatch(asked)
    assert read is not None, line
    steps = [_operation(number, step) for number, step in enumerate(read["steps"].split("; "))]
    return Case(asked, read["model"], literal_eval(read["settings"] or "{}"), steps, said)


def _operation(number: int, step: str) -> Operation:
    read = _STEP.fullmatch(step)
    assert read is not None, step
    argument, outcome = literal_eval(read["argument"] or "None"), _OUTCOMES[read["outcome"]]
    result = argument if read["result"] is None else literal_eval(read["result"])
    return Operation(
        number if read["process"] is None else int(read["process"]),
        read["f"],
        argument,
        result if outcome is Outcome.OK else None,
        2 * number,
        None if outcome is Outcome.INFO else 2 * number + 1,
        outcome,
    )


def what_is_said(case: Case) -> str:
    """Whether the model allows it; if not, in what state it refuses which operation."""
    try:
        parts = search(case.history, load(case.model, **case.settings), deadline_s=20).parts
    except ModelError as wrong:
        return f"error: {wrong}"
    if not parts or parts[0].answer is Answer.VALID:
        return "allowed"
    [part] = parts
    last = "" if part.stuck == len(case.history) - 1 else f" operation {part.stuck}"
    return f"refused{last}: {part.ends[0].in_words}"


def _lines() -> Iterator[Case | str]:
    for line in FILE.read_text(encoding="utf-8").splitlines():
        yield _case(line) if _SAID in line and not line.startswith("#") else line


CASES = [case for case in _lines() if isinstance(case, Case)]

if __name__ == "__main__":
    lines = [line if isinstance(line, str) else line.asked + _SAID + what_is_said(line) for line in _lines()]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
