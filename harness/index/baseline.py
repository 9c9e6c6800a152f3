"""The expected range of a figure: the band of its past, and how sure a share is; and figures as a person
reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from statistics import NormalDist, median
from typing import Final

from wrackline.harness.records import METRICS
from wrackline.history.wording import NOTHING, milliseconds, number

PAST: Final = 30
"""So many earlier runs make the band."""
FEWEST: Final = 5
"""With fewer nothing is said."""
WIDTH: Final = 3.0
"""Half the band's width, in standard deviations as the median absolute deviation estimates them."""
_SIGMA: Final = 1.4826
"""Of a normal distribution the standard deviation is so many times the median absolute deviation."""
_Z: Final = NormalDist().inv_cdf(0.975)
_LEAST_SHARE: Final = 0.02
"""Narrower than this share of the median no band is: where all earlier runs agree to the last digit, the
smallest change would be news."""


@dataclass(frozen=True, slots=True)
class Band:
    """The band in which a figure was expected, from the figures of earlier runs. ``low <= middle <=
    high``."""

    low: float
    middle: float
    high: float
    runs: int
    """So many earlier runs it was made of."""

    def outside(self, value: float) -> bool:
        return not self.low <= value <= self.high


def band(past: Sequence[float]) -> Band | None:
    """The median and three robust standard deviations (1.4826 times the median absolute deviation) about it,
    of the last thirty values; one run that went wild does not widen it. None of fewer than five."""
    latest = past[-PAST:]
    if len(latest) < FEWEST:
        return None
    middle = median(latest)
    half = max(WIDTH * _deviation(latest), _LEAST_SHARE * abs(middle))
    low = middle - half
    if low < 0 <= min(latest):
        low = 0.0  # times and counts do not go below
    return Band(low, middle, middle + half, len(latest))


def expected(past: Sequence[float], new: Sequence[float], comparisons: int) -> Band | None:
    """Returns the band in which the median of the new runs is expected. A median of many moves less than
    one run does, and who makes many comparisons finds something by chance: the band is as narrow as the
    first and as wide as the second demand, so that all of them together are wrong in three of a thousand
    cases (of normal noise). None of fewer than five earlier runs."""
    from scipy.stats import t  # late: it takes a second, and the site does without

    if len(past) < FEWEST:
        return None
    middle = median(past)
    before = _deviation(past)
    after = _deviation(new) if len(new) >= FEWEST else before
    error = 2 * NormalDist().cdf(-WIDTH) / max(comparisons, 1)
    # Student's, since the deviations are themselves estimated from these few.
    width = float(t.isf(error / 2, len(past) - 1))
    noise = sqrt(before**2 * _of_a_median(len(past)) + after**2 * _of_a_median(len(new)))
    half = max(width * noise, _LEAST_SHARE * abs(middle))
    low = middle - half
    return Band(max(low, 0.0) if min(past) >= 0 else low, middle, middle + half, len(past))


def _deviation(values: Sequence[float]) -> float:
    middle = median(values)
    return _SIGMA * median(abs(value - middle) for value in values)


def _of_a_median(runs: int) -> float:
    """The variance of a median of so many values, in that of one: pi/2n for many."""
    return 1.0 if runs == 1 else pi / 2 / runs


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` of ``of``, with the interval that holds the true share in 95 of 100 cases (Wilson)."""

    count: int
    of: int
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.count / self.of if self.of else 0.0


def share(count: int, of: int) -> Share:
    """Wilson's interval stays honest where the count is 0 or all, and of few runs."""
    if not of:
        return Share(0, 0, 0.0, 1.0)
    seen, room = count / of, _Z * _Z / of
    middle = (seen + room / 2) / (1 + room)
    half = _Z * sqrt(seen * (1 - seen) / of + room / (4 * of)) / (1 + room)
    return Share(count, of, max(0.0, middle - half), min(1.0, middle + half))


def figure(metric: str, value: float | None) -> str:
    """``1,814``, ``12.5 ms``, ``4.7 %``, ``21.9 s``: by the ending of the metric's name."""
    if value is None:
        return NOTHING
    if metric.endswith("_ms"):
        return milliseconds(value)
    if metric in ("seconds", "judged_in_s"):
        return milliseconds(value * 1e3)
    if metric == "left_out":
        return percent(value)
    return number(value)


def label(metric: str) -> str:
    """Returns the name of a metric; its unit stands with the figure."""
    return METRICS[metric].removesuffix(", ms").removesuffix(", s")


def percent(value: float) -> str:
    """``4.7 %``; whole numbers stay whole."""
    return f"{100 * value:.1f}".removesuffix(".0") + " %"


def interval(of: Share) -> str:
    """``2.6 % to 19.9 %``"""
    return f"{percent(of.low)} to {percent(of.high)}"


def change(before: float | None, after: float | None) -> str:
    """``+12 %``, ``×3.4``; of nothing to something there is no share."""
    if before is None or after is None:
        return NOTHING
    if before == after:
        return "same"
    if before <= 0:
        return "new" if after > 0 else NOTHING
    ratio = after / before
    if ratio >= 3:
        return f"×{ratio:.1f}"
    return f"{100 * (ratio - 1):+.1f} %"
