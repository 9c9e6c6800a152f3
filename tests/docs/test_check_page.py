"""docs/check.md: its table of checkers, and the checker that it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import known, load_decider, maker

TEXT = (Path(__file__).parents[2] / "docs/check.md").read_text(encoding="utf-8")
ROWS = {
    row.split("`")[1]: row.split(" | ") for row in TEXT.splitlines() if re.match(r"\| `[\w-]+` \| `", row)
}
CHECKERS = [name for name in known() if isinstance(load_decider(name), Checker)]


def test_the_table_has_every_checker() -> None:
    assert sorted(ROWS) == sorted(CHECKERS)


@pytest.mark.parametrize("name", CHECKERS)
def test_a_row_has_what_the_checker_says_of_itself(name: str) -> None:
    checker, row = load_decider(name), ROWS[name]
    assert isinstance(checker, Checker)
    assert row[1] == f"`{checker.jepsen}`"
    of = ROWS["final-set"][2] if name == "set-full" else ROWS["queue"][2] if name == "total-queue" else row[2]
    assert all(f in of for f in checker.operations)
    assert checker.cannot_see
    assert checker.promise != Checker.promise
    assert (maker(name).__doc__ or "").strip()
