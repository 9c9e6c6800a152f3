"""What the checkers say of each case by hand: told.txt, for readers. ``python -m tests.checkers.jepsen.told``
writes it anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.checkers.jepsen.cases import CASES, Case
from tests.checkers.jepsen.events import history
from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import load_decider

TOLD = Path(__file__).with_suffix(".txt")


def text() -> str:
    return "\n\n".join("\n".join(lines(case)) for case in CASES) + "\n"


def lines(case: Case) -> Iterator[str]:
    checker = load_decider(case.checker, **case.settings)
    assert isinstance(checker, Checker)
    found = checker.check(history(*case.events))
    yield f"{case.checker}: {case.name}"
    for one in found.problems:
        yield f"  {one.rule}: {one.sentence} {list(one.operations)}"
    if found.undecided:
        yield f"  undecided: {found.undecided}"
    yield f"  {found.figures}"


if __name__ == "__main__":
    TOLD.write_text(text())
