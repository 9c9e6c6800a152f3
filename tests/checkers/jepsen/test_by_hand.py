"""What each checker calls, and what it leaves alone."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from tests.checkers.jepsen.cases import CASES, UNDECIDED, Case, what_is_said
from tests.checkers.jepsen.events import history
from wrackline.checkers.models.checker import Checker, OperationError
from wrackline.checkers.models.loading import known, load_decider
from wrackline.checkers.models.protocol import Operation, Outcome
from wrackline.values import TRUE, Keyword, Map, Text, Whole


def checker(name: str, **settings: object) -> Checker:
    found = load_decider(name, **settings)
    assert isinstance(found, Checker)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.checker}: {case.name}")
def test_calls_what_is_wrong_and_nothing_else(case: Case) -> None:
    assert what_is_said(case) == case.said
    found = checker(case.checker, **case.settings).check(history(*case.events))
    assert sorted(found.counts) == ([] if case.rules == UNDECIDED else case.rules)
    assert all(one.operations and one.sentence for one in found.problems)


def test_each_checker_has_cases_in_both_directions() -> None:
    names = {name for name in known() if isinstance(load_decider(name), Checker)}
    assert {case.checker for case in CASES if not case.rules} == names
    assert {case.checker for case in CASES if case.rules and case.rules != UNDECIDED} == names


def at(f: str, argument: object, result: object, inv: int, ret: int, process: int = 0) -> Operation:
    return Operation(process, f, argument, result, inv, ret)


@pytest.mark.parametrize(
    ("name", "operations", "later"),
    [
        ("final-set", [at("add", 1, 1, 0, 5), at("read", None, (), 5, 9)], "lost"),
        ("set-full", [at("add", 1, 1, 0, 5), at("read", None, (), 5, 9)], "lost"),
        (
            "causal-reverse",
            [at("write", 1, 1, 0, 5), at("write", 2, 2, 5, 7), at("read", None, (2,), 8, 9)],
            "causal reverse",
        ),
        ("monotonic", [at("add", 1, {"val": 1}, 0, 5), at("read", None, (), 5, 9)], "lost"),
        ("total-queue", [at("enqueue", 1, 1, 0, 5), at("dequeue", None, None, 5, 9)], "lost"),
        ("counter-bounds", [at("add", 1, 1, 0, 5), at("read", None, 0, 5, 9)], "out of bounds"),
        ("causal", [at("write", 1, 1, 0, 5), at("read", None, 0, 5, 9)], "wrong read"),
    ],
)
def test_operations_whose_bounds_touch_are_concurrent(
    name: str, operations: list[Operation], later: str
) -> None:
    """One moment later the second must know of the first."""
    found = checker(name).check(operations)
    assert not found.problems or name == "causal"  # whose operations come one after another
    first, *others = operations
    moved = [first, *(replace(one, inv=one.inv + 1) for one in others)]
    assert list(checker(name).check(moved).counts) == [later]


def test_a_read_that_ends_as_another_begins_may_be_the_later_one() -> None:
    added, missed = at("add", 1, 1, 0, 1), at("read", None, (), 5, 9)
    assert not checker("set-full").check([added, at("read", None, (1,), 2, 5), missed]).problems
    assert checker("set-full").check([added, at("read", None, (1,), 2, 4), missed]).problems


@pytest.mark.parametrize(
    ("name", "put", "seen"),
    [
        ("final-set", at("add", 1, 1, 5, 9), at("read", None, (1,), 0, 5)),
        ("set-full", at("add", 1, 1, 5, 9), at("read", None, (1,), 0, 5)),
        ("causal-reverse", at("write", 1, 1, 5, 9), at("read", None, (1,), 0, 5)),
        ("queue", at("enqueue", 1, 1, 5, 9), at("dequeue", None, 1, 0, 5)),
        ("total-queue", at("enqueue", 1, 1, 5, 9), at("dequeue", None, 1, 0, 5)),
        (
            "long-fork",
            at("write", (("w", "x", 1),), None, 5, 9),
            at("read", (("r", "x", None),), (("r", "x", 1),), 0, 5),
        ),
        ("sequential", at("write", 1, 1, 5, 9), at("read", 1, (1, ("a",)), 0, 5)),
        ("counter-bounds", at("add", 1, 1, 5, 9), at("read", None, 1, 0, 5)),
    ],
)
def test_what_is_put_as_a_read_returns_may_be_in_it(name: str, put: Operation, seen: Operation) -> None:
    assert not checker(name).check([seen, put]).problems
    assert checker(name).check([seen, replace(put, inv=6)]).problems


VALUES = [
    *(
        None,
        0,
        -1,
        10**30,
        TRUE,
        1.5,
        Whole(1.0),
        Whole(math.nan),
        math.inf,
        "a",
        "",
        "1e400",
        "²",
        Keyword("a"),
        Text("a"),
    ),
    *(
        (),
        (1, 2),
        (1, (1, None)),
        ((1,),),
        (("r", "x", 1),),
        (("r", "x"), ("r", "y", 1)),
        (("w", "x", 1),),
        (5, (None, 1)),
    ),
    *(
        frozenset(),
        frozenset({1, 2}),
        Map(),
        Map({"val": 1, "sts": "2"}),
        (Map({"val": 1, "sts": "2"}),),
        Map({"a": None}),
    ),
    *((Map({"val": TRUE}),), Map({"a": 1}), Map({"a": Whole(math.nan)})),
]


@pytest.mark.parametrize("name", [name for name in known() if isinstance(load_decider(name), Checker)])
def test_any_value_is_read_or_refused(name: str) -> None:
    asked = checker(name)
    for seed in range(300):
        chance = Random(seed)
        history = []
        for at in range(chance.randint(1, 5)):
            outcome = chance.choice(list(Outcome))
            ret = None if outcome is Outcome.INFO else at + chance.randint(0, 3)
            result = chance.choice(VALUES) if outcome is Outcome.OK else None
            more = {
                key: chance.choice(VALUES) for key in chance.choice([(), ("link", "position"), ("error",)])
            }
            f = chance.choice(list(asked.operations))
            history.append(Operation(at, f, chance.choice(VALUES), result, at, ret, outcome, more=more))
        with suppress(OperationError):  # any other error is a ModelError that is none
            asked.check(history)
