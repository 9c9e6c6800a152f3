"""What the noise of the past leaves room for, and how sure a share is."""

from __future__ import annotations

import random
from statistics import median

import pytest
from scipy.stats import binomtest

from wrackline.harness.index.baseline import band, expected, share


@pytest.mark.parametrize(("count", "of"), [(0, 1), (0, 20), (1, 20), (3, 40), (10, 10), (57, 200)])
def test_the_interval_of_a_share_is_wilsons(count: int, of: int) -> None:
    interval = binomtest(count, of).proportion_ci(confidence_level=0.95, method="wilson")
    found = share(count, of)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_of_no_runs_nothing_is_sure() -> None:
    assert (share(0, 0).low, share(0, 0).high) == (0.0, 1.0)


def test_a_wild_run_of_the_past_does_not_widen_the_band() -> None:
    calm = [10.0, 11.0, 9.0, 10.0, 10.5, 9.5, 10.0]
    found = band([*calm, 500.0])
    assert found is not None
    assert found.high < 15
    assert found.outside(20.0)
    assert not found.outside(10.8)


def test_too_few_runs_say_nothing() -> None:
    assert band([1.0] * 4) is None
    assert expected([1.0] * 4, [9.0], 1) is None


def test_runs_that_all_agree_still_leave_two_percent() -> None:
    found = band([100.0] * 9)
    assert found is not None
    assert (found.low, found.high) == (98.0, 102.0)


def test_only_the_latest_thirty_runs_are_the_past() -> None:
    found = band([1_000.0] * 50 + [10.0] * 30)
    assert found is not None
    assert found.middle == 10.0


def test_a_median_of_many_runs_moves_less_than_one_run() -> None:
    dice = random.Random(1)
    past = [dice.gauss(100, 10) for _ in range(40)]
    one, many = expected(past, [100.0], 12), expected(past, [dice.gauss(100, 10) for _ in range(40)], 12)
    assert one is not None
    assert many is not None
    assert many.high - many.low < 0.5 * (one.high - one.low)


def test_among_a_thousand_comparisons_of_the_same_thing_hardly_one_is_news() -> None:
    """Ten sets of a hundred figures; a plain band of three deviations marks one in nearly every set."""
    dice = random.Random(2)
    news = 0
    for _ in range(1_000):
        past, new = ([dice.gauss(100, 10) for _ in range(20)] for _ in range(2))
        found = expected(past, new, 100)
        assert found is not None
        news += found.outside(median(new))
    assert news <= 3
