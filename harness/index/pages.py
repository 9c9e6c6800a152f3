"""The pages of the site as HTML, and trends as drawings: a point for each run, the band of its past behind
it, a ring around what is outside. No other module of this folder knows HTML, and no template computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from wrackline.harness.index.baseline import change, figure, interval, percent
from wrackline.harness.index.incidents import Incident
from wrackline.harness.index.runs import Run
from wrackline.harness.index.suites import Suite
from wrackline.harness.index.trends import Point, Series, Trend
from wrackline.pages.svg import Scale, Svg, ticks
from wrackline.pages.template import Templates

PAGES: Final = (
    ("index.html", "Nights"),
    ("suites.html", "Suites"),
    ("trends.html", "Trends"),
    ("incidents.html", "Incidents"),
    ("latency.html", "Latency"),
    ("runs.html", "Runs"),
    ("compare.html", "Compare"),
    ("history.html", "History"),
)
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """A name as a part of an address or of a file's name."""
    return _NO_NAME.sub("-", name).strip("-.") or "none"


def _by_metric(series: Series) -> dict[str, Trend]:
    return {trend.metric: trend for trend in series.trends}


@dataclass(frozen=True)
class Site:
    """The data that every page shows or links to."""

    name: str
    """Where the runs are."""
    runs: Sequence[Run]
    suites: Sequence[Suite]
    series: Sequence[Series]
    incidents: Sequence[Incident]
    stamp: str
    """Another one whenever a run is; empty where the pages do not ask for it."""
    pages: tuple[tuple[str, str], ...] = PAGES

    @cached_property
    def suite_page(self) -> dict[str, str]:
        """Suite -> the file of its page, in the folder ``suite``."""
        names = dict.fromkeys(run.record.name for run in self.runs)
        made: dict[str, str] = {}
        for name in names:
            file = slug(name)
            while f"{file}.html" in made.values():
                file += f"-{len(made)}"
            made[name] = f"{file}.html"
        return made

    @cached_property
    def verdicts(self) -> list[str]:
        return sorted({run.word for run in self.runs})

    @cached_property
    def marks(self) -> list[tuple[str, str, str]]:
        """The squares that the site has: class, sign, what it says."""
        return sorted({(run.css, run.mark, run.word) for run in self.runs})

    @staticmethod
    def way(link: str, root: str) -> str:
        """A link from the site's folder, from a page that is so deep in it."""
        return link if "://" in link else root + link


@cache
def _templates() -> Templates:
    return Templates(
        "wrackline.harness.index",
        may_fetch=True,
        by_metric=_by_metric,
        change=change,
        chart=trend_chart,
        figure=lambda value, metric: figure(metric, value),
        interval=interval,
        percent=percent,
        slug=slug,
        spark=spark,
    )


def page(site: Site, here: str, template: str = "", *, script: str = "", **values: Any) -> tuple[str, str]:
    """Returns a page's file, from the site's folder, and its HTML. ``template``: named as the file by
    default. ``script``: one of ours that it has besides, as the content of its element."""
    name, root = template or f"{here}.j2", "../" * here.count("/")
    return here, _templates().render(name, script=script, site=site, here=here, root=root, **values)


def embedded(json: bytes) -> Markup:
    """JSON that cannot end the element it is in."""
    return Markup(json.decode().replace("<", "\\u003c"))


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
    """Returns the range of the vertical axis: it begins at zero where that does not press everything to
    the upper edge."""
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
    """Draws a line with the version's name where the version changes, and the days of the first and the
    last run below."""
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
