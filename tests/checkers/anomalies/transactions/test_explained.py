"""The walk of transactions against an explainer that shares no line with it (explainer.py): what a correct
system may show has no finding, and what has a finding no correct system may show."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.checkers.anomalies.transactions.explainer import drawn, events_of, explained, in_order, spoiled
from tests.checkers.anomalies.transactions.walked import walked

NOT_ISOLATED = {"write-cycle", "write-read-cycle"}
"""Kafka does not isolate writes from each other, so a correct system shows them."""
SPOILED = 3
"""Changes that are tried on each history."""


def found(told: object, plain: tuple[int, ...], chunk: int | None = None) -> set[str]:
    rows = walked(*events_of(told, plain), chunk)  # type: ignore[arg-type]
    return {row["anomaly"] for row in rows} - NOT_ISOLATED


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_what_a_correct_system_shows_has_no_finding(first: int) -> None:
    for seed in range(first, first + 100):
        told, plain = drawn(seed)
        assert in_order(told), f"seed {seed}"
        assert explained(told, plain), f"seed {seed}: the explainer is wrong"
        assert not found(told, plain, seed % 7 + 1), f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_what_has_a_finding_cannot_be_explained(first: int) -> None:
    impossible: Counter[bool] = Counter()
    for seed in range(first, first + 100):
        told, plain = drawn(seed)
        for more in range(SPOILED):
            how, worse = spoiled(told, seed * SPOILED + more)
            if worse == told or not in_order(worse):
                continue
            names, possible = found(worse, plain), explained(worse, plain)
            assert not (names and possible), f"seed {seed}, change {more} ({how}): {names}"
            impossible[bool(names)] += not possible
    assert impossible[True] >= 5, "few of the impossible ones are found: lost and aborted records are others'"
