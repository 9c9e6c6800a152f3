"""Figures of a run as a person reads them, with their units."""

from __future__ import annotations

from wrackline.harness.index.baseline import Share
from wrackline.harness.records import METRICS
from wrackline.history.wording import NOTHING, milliseconds, number


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
    """What it is; its unit stands with the figure."""
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
