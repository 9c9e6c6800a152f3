"""The operations on one object as bars, a lane per process, and the order that a search found for them before
it got stuck.

Time is the place of an event in the history: every invocation and completion that is shown has a column of
its own, so operations can be told apart whether they took minutes or microseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from wrackline.history.wording import shorten
from wrackline.pages.svg import Svg, text_width

_LEFT: Final = 92
_LANE: Final = 30
_BAR: Final = 20
_TOP: Final = 8
_FOOT: Final = 22
_NARROW, _BROAD = 14.0, 72.0
"""Width of a column: where there are many, and where there are few."""
_ABOUT: Final = 900
"""A drawing of more columns than fit grows beyond it; the page lets it be moved sideways."""
SIZES: Final = (500, 700, 900, 1100, 1400, 1800)
"""Classes of the page by which a drawing keeps its size: w-500, ..."""


@dataclass(frozen=True, slots=True)
class Bar:
    at: int
    """Place of the invocation: the operation's name."""
    until: int | None
    """Place of the completion; None where nobody knows the outcome."""
    process: int
    label: str
    tip: str
    outcome: str
    """ok, fail or info."""
    culprit: bool = False
    """It is what is wrong, or part of it."""


def object_states(bars: Sequence[Bar], order: Sequence[int] = (), stuck: int | None = None) -> Markup:
    """``order``: operations in the order that was found for them, by ``at``; those without a bar are left
    out. ``stuck``: the operation that has no place in it."""
    shown = sorted(bars, key=lambda bar: bar.at)
    moments = sorted({bar.at for bar in shown} | {bar.until for bar in shown if bar.until is not None})
    step = min(max((_ABOUT - _LEFT) / max(len(moments), 1), _NARROW), _BROAD)
    width = max(_LEFT + step * (len(moments) + 0.6), _LEFT + 370)
    x = {moment: _LEFT + step * (at + 0.5) for at, moment in enumerate(moments)}
    processes = list(dict.fromkeys(bar.process for bar in shown))
    lanes = {process: at for at, process in enumerate(processes)}
    height = _TOP + _LANE * len(lanes) + _FOOT
    svg = Svg(width, height, "Operations by process, in their order", f"bars w-{_size(width)}")
    for process, lane in lanes.items():
        svg.text(4, _TOP + lane * _LANE + 19, f"process {process}", "tick")
        svg.line(_LEFT, _TOP + (lane + 1) * _LANE, width, _TOP + (lane + 1) * _LANE, "lane")
    for bar in shown:
        _draw_bar(svg, bar, x, _TOP + lanes[bar.process] * _LANE + 5, width)
    _draw_order(svg, shown, order, stuck, x, lanes, step)
    svg.text(
        _LEFT, height - 6, "each column is one invocation or completion; distances are not to scale", "tick"
    )
    return svg.markup()


def _size(width: float) -> int:
    return min(SIZES, key=lambda size: abs(size - width))


def _draw_bar(svg: Svg, bar: Bar, x: Mapping[int, float], y: float, width: float) -> None:
    begin = x[bar.at]
    end = width - 2 if bar.until is None else x[bar.until]
    cls = f"op o-{bar.outcome}" + (" culprit" if bar.culprit else "")
    svg.rect(begin, y, max(end - begin, 3), _BAR, cls, tip=bar.tip, rx=3)
    letters = int((end - begin - 6) / text_width("0"))
    if letters >= 3:
        svg.text(begin + 4, y + 14, shorten(bar.label, letters), "bar-words")


def _draw_order(
    svg: Svg,
    bars: Sequence[Bar],
    order: Sequence[int],
    stuck: int | None,
    x: Mapping[int, float],
    lanes: Mapping[int, int],
    step: float,
) -> None:
    """A line through a moment of each operation, in their order; a cross where the search got stuck."""
    known = {bar.at: bar for bar in bars}
    drawn = [known[at] for at in order if at in known]
    points: list[tuple[float, float]] = []
    for bar in drawn:
        earliest = x[bar.at] if not points else max(x[bar.at], points[-1][0] + step / 8)
        latest = x[bar.until] if bar.until is not None else earliest
        points.append((min(earliest, max(latest, x[bar.at])), _TOP + lanes[bar.process] * _LANE + 5 + _BAR))
    svg.path(points, "order-line")
    for number, (bar, (px, py)) in enumerate(zip(drawn, points, strict=True), 1):
        svg.circle(px, py, 5.5, "order-point", tip=f"{number}. in the order that was found: {bar.tip}")
    if stuck in known:
        bar = known[stuck]
        px = x[bar.until] if bar.until is not None else x[bar.at]
        py = _TOP + lanes[bar.process] * _LANE + 5 + _BAR / 2
        svg.path([(px - 5, py - 5), (px + 5, py + 5)], "cross")
        svg.path([(px - 5, py + 5), (px + 5, py - 5)], "cross")
