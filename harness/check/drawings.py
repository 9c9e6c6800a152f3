"""The drawings of check: the operations on one object as bars, a lane per process, with the order that a
search found for them before it got stuck; and a cycle of transactions.

Time is the place of an event in the history: every invocation and completion that is shown has a column of
its own, so operations can be told apart whether they took minutes or microseconds."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from wrackline.harness.check.elle import transaction
from wrackline.harness.check.results import Link, Operation
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


def object_states(
    operations: Sequence[Operation],
    culprits: Collection[int],
    order: Sequence[Operation] = (),
    stuck: int | None = None,
) -> Markup:
    """``culprits``: the operations that are what is wrong, or part of it, by ``at``; ``order``: the order
    that was found; ``stuck``: the operation that has no place in it, by ``at``."""
    shown = sorted({one.at: one for one in (*operations, *order)}.values(), key=lambda bar: bar.at)
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
        _draw_bar(svg, bar, x, _TOP + lanes[bar.process] * _LANE + 5, width, culprit=bar.at in culprits)
    _draw_order(svg, order, next((bar for bar in shown if bar.at == stuck), None), x, lanes, step)
    svg.text(
        _LEFT, height - 6, "each column is one invocation or completion; distances are not to scale", "tick"
    )
    return svg.markup()


def _size(width: float) -> int:
    return min(SIZES, key=lambda size: abs(size - width))


def _draw_bar(
    svg: Svg, bar: Operation, x: Mapping[int, float], y: float, width: float, *, culprit: bool
) -> None:
    begin = x[bar.at]
    end = width - 2 if bar.until is None else x[bar.until]
    cls = f"op o-{bar.outcome}" + (" culprit" if culprit else "")
    svg.rect(begin, y, max(end - begin, 3), _BAR, cls, tip=bar.line, rx=3)
    letters = int((end - begin - 6) / text_width("0"))
    if letters >= 3:
        svg.text(begin + 4, y + 14, shorten(bar.words[1:], letters), "bar-words")


def _draw_order(
    svg: Svg,
    order: Sequence[Operation],
    stuck: Operation | None,
    x: Mapping[int, float],
    lanes: Mapping[int, int],
    step: float,
) -> None:
    """A line through a moment of each operation, in their order; a cross where the search got stuck."""
    points: list[tuple[float, float]] = []
    for bar in order:
        earliest = x[bar.at] if not points else max(x[bar.at], points[-1][0] + step / 8)
        latest = x[bar.until] if bar.until is not None else earliest
        points.append((min(earliest, max(latest, x[bar.at])), _TOP + lanes[bar.process] * _LANE + 5 + _BAR))
    svg.path(points, "order-line")
    for number, (bar, (px, py)) in enumerate(zip(order, points, strict=True), 1):
        svg.circle(px, py, 5.5, "order-point", tip=f"{number}. in the order that was found: {bar.line}")
    if stuck is not None:
        px = x[stuck.at] if stuck.until is None else x[stuck.until]
        py = _TOP + lanes[stuck.process] * _LANE + 5 + _BAR / 2
        svg.path([(px - 5, py - 5), (px + 5, py + 5)], "cross")
        svg.path([(px - 5, py + 5), (px + 5, py - 5)], "cross")


_WIDTH: Final = 380
_BOX_LEFT, _BOX_RIGHT = 8, 340
_LINE: Final = 15
_BACK: Final = 364
"""Where the last edge goes back up."""
_LETTERS: Final = 50


def elle_cycle(title: str, transactions: Sequence[Operation], links: Sequence[Link]) -> Markup:
    """``links``: from each transaction to the next; the last leads back to the first."""
    texts = [textwrap.wrap(transaction(one), _LETTERS - 4)[:4] or [""] for one in transactions]
    words = [textwrap.wrap(f"{one.kind}: {one.sentence}", _LETTERS)[:4] for one in links]
    boxes = [_LINE * len(lines) + 24 for lines in texts]
    gaps = [_LINE * len(lines) + 22 for lines in words]
    svg = Svg(_WIDTH, sum(boxes) + sum(gaps) + 12, f"{title}: a cycle of transactions", "narrow")
    y, tops = 6.0, []
    for at, (one, lines) in enumerate(zip(transactions, texts, strict=True)):
        tops.append(y)
        name = f"T{at + 1}"
        svg.rect(_BOX_LEFT, y, _BOX_RIGHT - _BOX_LEFT, boxes[at], "version", tip=f"{name}: {one.line}", rx=5)
        svg.text(_BOX_LEFT + 10, y + 17, name, "witness-name")
        for n, line in enumerate(lines):
            svg.text(_BOX_LEFT + 38, y + 17 + n * _LINE, line)
        y += boxes[at]
        last = at == len(transactions) - 1
        cls = f"edge {'' if links[at].kind in ('ww', 'wr', 'rw') else 'e-time'}".strip()
        if last:
            middle = tops[0] + boxes[0] / 2
            svg.path([(_BOX_LEFT + 22, y), (_BOX_LEFT + 22, y + 8), (_BACK, y + 8), (_BACK, middle)], cls)
            svg.path([(_BACK, middle), (_BOX_RIGHT + 2, middle)], cls)
            svg.path(
                [(_BOX_RIGHT + 9, middle - 4), (_BOX_RIGHT + 1, middle), (_BOX_RIGHT + 9, middle + 4)],
                f"{cls} edge-head",
            )
        else:
            foot = y + gaps[at]
            svg.path([(_BOX_LEFT + 22, y), (_BOX_LEFT + 22, foot)], cls)
            svg.path(
                [(_BOX_LEFT + 18, foot - 8), (_BOX_LEFT + 22, foot), (_BOX_LEFT + 26, foot - 8)],
                f"{cls} edge-head",
            )
        for n, line in enumerate(words[at]):
            place = f"edge-label {'' if 'e-time' not in cls else 'e-time'}".strip()
            svg.text(_BOX_LEFT + 38, y + (24 if last else 20) + n * _LINE, line, place)
        y += gaps[at]
    return svg.markup()
