"""What each checker calls, and what it leaves alone."""

from __future__ import annotations

import pytest

from tests.checkers.jepsen.cases import CASES, UNDECIDED, Case
from tests.checkers.jepsen.events import history
from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import known, load_decider


def checker(name: str, **settings: object) -> Checker:
    found = load_decider(name, **settings)
    assert isinstance(found, Checker)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.checker}: {case.name}")
def test_calls_what_is_wrong_and_nothing_else(case: Case) -> None:
    found = checker(case.checker, **case.settings).check(history(*case.events))
    if case.rules == UNDECIDED:
        assert found.undecided
        assert not found.problems
    else:
        assert sorted(found.counts) == case.rules
        assert not found.undecided
    assert sorted({one.rule for one in found.problems}) == sorted(found.counts)
    assert all(one.operations and one.sentence for one in found.problems)


def test_each_checker_has_cases_in_both_directions() -> None:
    names = {name for name in known() if isinstance(load_decider(name), Checker)}
    assert {case.checker for case in CASES if not case.rules} == names
    assert {case.checker for case in CASES if case.rules and case.rules != UNDECIDED} == names
