"""Trends as drawings: a point for each run, the band of its past behind it, a ring around what is outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from wrackline.harness.index.trends import Point, Trend
from wrackline.harness.index.words import figure
from wrackline.pages.svg import Scale, Svg, ticks

LATEST: Final = 120
"""So many runs are drawn; what was before is in the band."""
_WIDTH, _HEIGHT = 380, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 8, 10, 22
_SPARK_WIDTH, _SPARK_HEIGHT = 110, 26


def trend_chart(trend: Trend, root: str) -> Markup:
    """Runs from left to right, oldest first. ``root``: the way from the page to the site's folder."""
    points = trend.points[-LATEST:]
    drawing = Svg(_WIDTH, _HEIGHT, f"{trend.label}: {len(points)} runs, {len(trend.marked)} marked", "trend")
    low, high = _range(points)
    across = Scale(0, max(len(points) - 1, 1), _LEFT + 6, _WIDTH - _RIGHT - 6)
    up = Scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    for at in ticks(low, high, 3):
        drawing.line(_LEFT, up(at), _WIDTH - _RIGHT, up(at), "grid")
        drawing.text(_LEFT - 6, up(at) + 4, figure(trend.metric, at), "tick", anchor="end")
    _band(drawing, points, across, up)
    _nights(drawing, points, across)
    drawing.path([(across(at), up(point.value)) for at, point in enumerate(points)], "line")
    for at, point in enumerate(points):
        if point.outside:
            drawing.circle(across(at), up(point.value), 6.5, "ring")
        drawing.circle(
            across(at),
            up(point.value),
            3,
            f"dot d-{point.run.css}",
            tip=_tip(trend, point),
            href=root + point.run.page,
        )
    return drawing.markup()


def _range(points: Sequence[Point]) -> tuple[float, float]:
    """From zero where that does not press everything to the upper edge."""
    values = [point.value for point in points]
    bounds = [
        edge for point in points if point.expected for edge in (point.expected.low, point.expected.high)
    ]
    low, high = min([*values, *bounds]), max([*values, *bounds])
    if 0 <= low < 0.6 * high:
        low = 0.0
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return (low - room if low else 0.0), high + room


def _band(drawing: Svg, points: Sequence[Point], across: Scale, up: Scale) -> None:
    known = [(at, point.expected) for at, point in enumerate(points) if point.expected]
    if len(known) < 2:
        return
    upper = [(across(at), up(one.high)) for at, one in known]
    lower = [(across(at), up(one.low)) for at, one in reversed(known)]
    drawing.path([*upper, *lower], "past", closed=True)
    drawing.path([(across(at), up(one.middle)) for at, one in known], "middle")


def _nights(drawing: Svg, points: Sequence[Point], across: Scale) -> None:
    """Where the version changes, a line with its name; the days of the first and the last run below."""
    newest = -1000.0
    for at, (before, after) in enumerate(pairwise(points), 1):
        if before.run.record.version != after.run.record.version:
            x = (across(at - 1) + across(at)) / 2
            drawing.line(x, _TOP, x, _HEIGHT - _BOTTOM, "version-edge")
            if x - newest > 60:
                drawing.text(x + 3, _TOP + 8, after.run.record.version, "version-name")
                newest = x
    first, last = points[0].run.began[:10], points[-1].run.began[:10]
    drawing.text(_LEFT, _HEIGHT - 6, first, "tick")
    if last != first:
        drawing.text(_WIDTH - _RIGHT, _HEIGHT - 6, last, "tick", anchor="end")


def _tip(trend: Trend, point: Point) -> str:
    lines = [
        f"{figure(trend.metric, point.value)}  {point.run.word}",
        f"{point.run.record.task}, {point.run.began}, {point.run.system}",
    ]
    if point.expected:
        low, high = (figure(trend.metric, edge) for edge in (point.expected.low, point.expected.high))
        lines.append(f"expected {low} to {high}, from {point.expected.runs} runs before")
    return "\n".join(lines)


def spark(trend: Trend) -> Markup:
    """The same, as small as a word."""
    points = trend.points[-40:]
    drawing = Svg(_SPARK_WIDTH, _SPARK_HEIGHT, f"{trend.label}, {len(points)} runs", "spark")
    low, high = _range(points)
    across = Scale(0, max(len(points) - 1, 1), 4, _SPARK_WIDTH - 4)
    up: Callable[[float], float] = Scale(low, high, _SPARK_HEIGHT - 3, 3)
    drawing.path([(across(at), up(point.value)) for at, point in enumerate(points)], "line")
    for at, point in enumerate(points):
        if point.outside:
            drawing.circle(across(at), up(point.value), 2.6, "ring full")
    drawing.circle(across(len(points) - 1), up(points[-1].value), 2.2, "dot")
    return drawing.markup()
