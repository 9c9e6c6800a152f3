"""The search for an order, held against all orders of small histories and against histories that were
made."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.checkers.exact.by_hand import is_an_order, linearizable
from tests.checkers.exact.drawn import KINDS, Kind, drawn, spoilt
from wrackline.checkers.exact.search import Answer, search
from wrackline.checkers.models import Operation, Outcome

SMALL = 60
"""Histories of each model; the nightly test draws more."""


@pytest.mark.parametrize("name", KINDS)
def test_decides_small_histories_as_all_orders_do(name: str) -> None:
    decided = [agrees(KINDS[name], random.Random(f"{name} {seed}")) for seed in range(SMALL)]
    assert {Answer.VALID, Answer.INVALID} == set(decided)


@pytest.mark.nightly
@pytest.mark.parametrize("name", KINDS)
def test_decides_many_small_histories_as_all_orders_do(name: str) -> None:
    for seed in range(5_000):
        agrees(KINDS[name], random.Random(f"{name} nightly {seed}"))


def agrees(kind: Kind, rng: random.Random) -> Answer:
    """Draw one history, and hold all that the search says of it against all orders."""
    unknown = rng.choice([0.0, 0.3])
    history = drawn(
        kind, rng, rng.randrange(2, 8), rng.randrange(2, 5), unknown=unknown, ties=rng.random() < 0.3
    )
    if rng.random() < 0.7:
        history = spoilt(kind, history, rng)
    right = linearizable(kind.model, history)
    found = search(history, kind.model)
    assert found.answer is (Answer.VALID if right else Answer.INVALID), history
    for part in found.parts:
        assert is_an_order(kind.model, history, part.order), (history, part)
        mine = [one for one in history if kind.model.partition(one) == part.key]
        if part.answer is Answer.VALID:
            sure = {n for n, one in enumerate(history) if one in mine and one.outcome is Outcome.OK}
            assert sure <= set(part.order), (history, part)
        else:
            is_first_without_a_place(kind, history, mine, part.stuck)
    return found.answer


def is_first_without_a_place(kind: Kind, history: list[Operation], mine: list[Operation], stuck: Any) -> None:
    returned = history[stuck].ret
    assert returned is not None
    assert not linearizable(kind.model, mine, until=returned), (history, stuck)
    if all(one is history[stuck] or one.ret != returned for one in mine):
        assert linearizable(kind.model, mine, until=returned - 1), (history, stuck)
