"""Transactions over lists and registers: our own decision against an oracle, against Elle, and by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.checkers.exact.transactions.cases import CASES, ENOUGH, Case, X, what_is_decided
from tests.checkers.exact.transactions.drawn import (
    LIST,
    REGISTERS,
    Drawn,
    Shape,
    columns,
    draw,
    drawn,
    in_any_order,
    in_real_time,
    in_session,
    is_possible,
    serial,
)
from tests.checkers.goldens import ELLE, load, transactions
from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.answers import Decision
from wrackline.checkers.exact.transactions.decide import decide
from wrackline.checkers.exact.transactions.levels import LEVELS, STRICT, assumed_of_keys
from wrackline.checkers.exact.transactions.placement import Limits
from wrackline.checkers.models.protocol import Outcome

OF_LEVEL: dict[str, Callable[[Drawn, Drawn], bool]] = {
    STRICT: in_real_time,
    "strong-session-serializable": in_session,
    "serializable": in_any_order,
}


def ok(process: int, inv: int, ret: int, *mops: list[Any]) -> Drawn:
    """A micro-operation is ["w", key, value] or ["r", key, value]."""
    return Drawn(process, inv, [[f == "w", key, value] for f, key, value in mops], ret, Outcome.OK)


def decided(
    history: list[Drawn], model: str = REGISTERS, level: str = STRICT, limits: Limits = ENOUGH
) -> Decision:
    return decide(model, columns(history, model), limits, level=level)


def search_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is worked out before it."""
    where = "wrackline.checkers.exact.transactions"
    monkeypatch.setattr(f"{where}.decide.begin", lambda _graph, _reading: None)
    monkeypatch.setattr(f"{where}.decide.saturate", lambda _graph, _reading: True)
    monkeypatch.setattr(f"{where}.placement.MOST_CLOSED", 0)
    monkeypatch.setattr(f"{where}.placement.windows", lambda _graph: [])


def shape(rng: random.Random, model: str) -> Shape:
    size = rng.randint(2, 8), rng.randint(2, 5), rng.randint(1, 3), rng.randint(1, 4)
    return Shape(model, *size, rng.choice((0.0, 0.2)), rng.choice((0.0, 0.2)))


@pytest.mark.parametrize("how", ["saturated", "in windows", "searched"])
@pytest.mark.parametrize("model", [REGISTERS, LIST])
def test_it_says_what_every_order_says(model: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of stores that are right and wrong; with what follows worked out first, and by the search alone."""
    if how == "searched":
        search_alone(monkeypatch)
    elif how == "in windows":
        for part in ("saturation", "placement"):
            monkeypatch.setattr(f"wrackline.checkers.exact.transactions.{part}.MOST_CLOSED", 0)
        monkeypatch.setattr("wrackline.checkers.exact.transactions.saturation.WINDOW", 4)
    said = {level: [0, 0] for level in OF_LEVEL}
    for seed in range(250):
        for name, history in drawn(seed, shape(random.Random(seed), model)):
            for level, before in OF_LEVEL.items():
                possible = is_possible(history, model, before=before)
                found = decided(history, model, level)
                assert found.answer == (Answer.VALID if possible else Answer.INVALID), (seed, name, level)
                said[level][possible] += 1
    assert min(min(counts) for counts in said.values()) > 40, said


def test_it_finds_what_elle_finds_and_more() -> None:
    for golden in load(ELLE):
        found = decide(golden["model"], transactions(golden), ENOUGH)
        theirs = {"valid": Answer.VALID, "invalid": Answer.INVALID}.get(golden["elle"])
        assert found.answer is (theirs or Answer.INVALID), golden["name"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {case.model}")
def test_a_case_is_decided_as_it_says(case: Case) -> None:
    assert what_is_decided(case) == case.said
    for _, some in decided(case.history, case.model).anomalies.values():
        for cycle in (one.cycle for one in some):
            following = [*cycle[1:], *cycle[:1]]
            assert [edge.after for edge in cycle] == [edge.before for edge in following]


def test_without_an_order_it_is_told_where_the_search_got_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    search_alone(monkeypatch)
    history = [ok(0, 1, 2, ["w", X, 1]), ok(0, 3, 4, ["w", X, 2]), ok(1, 5, 6, ["r", X, 1])]
    found = decided(history)
    assert (found.answer, found.searched) == (Answer.INVALID, True)
    assert found.impasse is not None
    assert (found.impasse.row, found.impasse.placed, found.impasse.blocked) == (1, (0,), ((1, X, 1, 2),))


def hard(keys: int) -> list[Drawn]:
    """Of each key two write and two read what one of them wrote, in any order; then comes a stale read."""
    history: list[Drawn] = []
    for key in range(10, 10 + keys):
        for mop in (["w", key, 1], ["w", key, 2], ["r", key, 1], ["r", key, 2]):
            history.append(ok(len(history), 1, 100, mop))
    return [
        *history,
        ok(0, 101, 102, ["w", X, 1]),
        ok(0, 103, 104, ["w", X, 2]),
        ok(1, 105, 106, ["r", X, 1]),
    ]


@pytest.mark.parametrize(
    ("limits", "why"),
    [(Limits(0.05, 1 << 30), "no answer within 0.05 s"), (Limits(60, 4_000), "of memory are used up")],
)
def test_a_limit_is_unknown(limits: Limits, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search_alone(monkeypatch)
    monkeypatch.setattr("wrackline.checkers.exact.transactions.placement._STEPS", 1)
    found = decided(hard(12), limits=limits)
    assert (found.answer, why in found.why) == (Answer.UNKNOWN, True), found


@pytest.mark.parametrize("model", [REGISTERS, LIST])
def test_many_are_decided(model: str) -> None:
    history = draw(random.Random(1), Shape(model, 3_000, 12, 30, 4, 0.02, 0.02), serial)
    assert decided(history, model).answer is Answer.VALID
    late = next(one for one in history[2_000:] if one.outcome is Outcome.OK and one.mops[0][0] is False)
    late.mops = [[False, late.mops[0][1], () if model == LIST else None]]
    assert decided(history, model).answer is Answer.INVALID


def test_elle_may_assume_what_the_level_implies() -> None:
    said = {level: assumed_of_keys(level) for level in LEVELS}
    assert {level for level, assumed in said.items() if not assumed} == {
        "read-uncommitted",
        "strong-read-uncommitted",
        "strong-session-read-uncommitted",
    }
    assert {level for level, assumed in said.items() if "sequential-keys?" in assumed} == {
        "strict-serializable",
        "strong-serializable",
        "strong-session-serializable",
        "strong-session-snapshot-isolation",
        "strong-snapshot-isolation",
    }
