"""The drawing of an explanation: its operations in the order of the history, and the edges between them.

Only the order in time is drawn: every invocation and completion that is cited gets a column of its own, so
operations can be distinguished whether they were minutes or microseconds apart. Below them is the version
strip: what each log and reader has around the offset.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from wrackline.checkers.explain.model import (
    Cell,
    Edge,
    EdgeKind,
    Explanation,
    Held,
    Neighbourhood,
    Operation,
)
from wrackline.history.wording import number, seconds, shorten
from wrackline.pages.frame import PAGE
from wrackline.pages.svg import Svg

_WIDTH: Final = PAGE.width
_LEFT: Final = 300
_LANE: Final = 52
_BAR: Final = 14
_TOP: Final = 12
_STRIP_ROW: Final = 22
_BEND: Final = 26
_Point = tuple[float, float]


def explanation_drawing(explained: Explanation) -> Markup | None:
    """Bars and arrows of the operations that the edges join; None when there is none."""
    joined = sorted({number for edge in explained.edges for number in (edge.before, edge.after)})
    operations = {at: explained.operations[at - 1] for at in joined}
    if not operations:
        return None
    columns = _columns(list(operations.values()))
    step = (_WIDTH - _LEFT - 30) / max(len(columns), 1)
    x = {column: _LEFT + 10 + step * (at + 0.5) for at, column in enumerate(columns)}
    height = _TOP + _LANE * len(operations) + 24
    svg = Svg(_WIDTH, height, "The operations that contradict one another, in their order", "witness")
    boxes = {
        at: _draw_operation(svg, row, at, op, x, step) for row, (at, op) in enumerate(operations.items())
    }
    taken: list[_Point] = []
    for at, edge in enumerate(explained.edges, 1):
        _draw_edge(svg, at, edge, boxes, taken)
    svg.text(
        _LEFT + 10,
        height - 6,
        "each column is one invocation or completion, in their order; distances are not to scale",
        "tick",
    )
    return svg.markup()


def _ends(op: Operation) -> tuple[tuple[int, int], tuple[int, int]]:
    """(time, index) of where its bar begins and ends; an open one ends where it begins."""
    begin = (op.begin_ns, op.indexes[0])
    return begin, (op.end_ns, op.indexes[-1] + 1) if op.end_ns is not None else begin


def _columns(operations: Sequence[Operation]) -> list[tuple[int, int]]:
    return sorted({end for op in operations for end in _ends(op)})


def _draw_operation(
    svg: Svg, row: int, at: int, op: Operation, x: dict[tuple[int, int], float], step: float
) -> tuple[float, float, float]:
    """Draws a lane; returns (left, right, middle height) of its bar."""
    top = _TOP + row * _LANE
    middle = top + _LANE / 2
    begin, end = _ends(op)
    left = x[begin] - step * 0.3
    right = x[end] + step * 0.3 if op.end_ns is not None else _WIDTH - 20
    svg.circle(10, middle, 8, "number", tip=f"operation {at}")
    svg.text(10, middle + 4, str(at), "numbered", anchor="middle")
    svg.text(24, middle - 3, f"{op.who} · {op.name} · {op.outcome}", "witness-name")
    svg.text(24, middle + 11, shorten(op.what, 50), "tick")
    svg.line(_LEFT, top + _LANE - 1, _WIDTH - 10, top + _LANE - 1, "lane")
    ended = seconds(op.end_ns) if op.end_ns is not None else "never completed"
    tip = f"{op.who} {op.f} {op.what}: {seconds(op.begin_ns)} to {ended}, {op.outcome}"
    svg.rect(left, middle - _BAR / 2, right - left, _BAR, f"bar o-{op.outcome}", tip=tip, rx=3)
    return left, right, middle


def _draw_edge(
    svg: Svg, at: int, edge: Edge, boxes: Mapping[int, tuple[float, float, float]], taken: list[_Point]
) -> None:
    """An arrow from the bar that came before to the one that came after, bent so that two of them stay apart;
    its number is that of its sentence. ``taken``: where labels are already."""
    from_left, from_right, from_y = boxes[edge.before]
    to_left, to_right, to_y = boxes[edge.after]
    down = 1 if to_y > from_y else -1
    timed = edge.kind is EdgeKind.TIME
    start = (
        from_right - 4 if timed else from_left + (from_right - from_left) * 0.35,
        from_y + down * _BAR / 2,
    )
    end = (to_left + 4 if timed else to_left + (to_right - to_left) * 0.65, to_y - down * _BAR / 2)
    bend = _BEND if down > 0 else -_BEND
    if abs(start[0] - end[0]) < 4 * _BEND:  # upright: leave room for the words of both
        bend *= 2
    middle = ((start[0] + end[0]) / 2 + bend, (start[1] + end[1]) / 2 - down * 4)
    curve = [_between(start, middle, end, share / 16) for share in range(17)]
    svg.path(curve, f"edge e-{edge.kind}")
    svg.path(_head(curve[-3], end), f"edge edge-head e-{edge.kind}")
    x, y = max(curve[3:14], key=lambda point: _room(point, [box[2] for box in boxes.values()], taken))
    taken.append((x, y))
    before = bend < 0
    svg.text(
        x + (-5 if before else 5),
        y + 4,
        f"{at} {edge.kind.label}",
        f"edge-label e-{edge.kind}",
        anchor="end" if before else "start",
    )


def _room(point: _Point, bars: Sequence[float], taken: Sequence[_Point]) -> float:
    """Returns how far a label is from the bars, and from the labels that are there already."""
    from_bars = min(abs(point[1] - y) for y in bars)
    from_labels = min((abs(point[1] - y) + abs(point[0] - x) / 6 for x, y in taken), default=99.0)
    return min(from_bars, from_labels)


def _between(start: _Point, bend: _Point, end: _Point, share: float) -> _Point:
    """A point of the curve that leaves ``start`` towards ``bend`` and comes from there to ``end``."""
    near, far = (1 - share) ** 2, share**2
    both = 2 * share * (1 - share)
    return (
        near * start[0] + both * bend[0] + far * end[0],
        near * start[1] + both * bend[1] + far * end[1],
    )


def _head(come_from: _Point, end: _Point) -> list[_Point]:
    """The two strokes of an arrow's head."""
    angle = math.atan2(end[1] - come_from[1], end[0] - come_from[0])
    sides = [
        (end[0] - 8 * math.cos(angle + turn), end[1] - 8 * math.sin(angle + turn)) for turn in (-0.45, 0.45)
    ]
    return [sides[0], end, sides[1]]


def version_strip(around: Neighbourhood) -> Markup:
    """Offsets from left to right, one row for each log and reader; what differs from the rest stands out."""
    width = (_WIDTH - _LEFT - 20) / max(len(around.lines), 1)
    height = _TOP + 16 + _STRIP_ROW * len(around.columns) + 6
    svg = Svg(_WIDTH, height, "The log around the offset, as each reader saw it", "strip")
    for at, line in enumerate(around.lines):
        centre = _LEFT + 10 + width * (at + 0.5)
        svg.text(
            centre, _TOP + 4, number(line.offset), "at-offset" if line.culprit else "tick", anchor="middle"
        )
    for row, column in enumerate(around.columns):
        top = _TOP + 12 + row * _STRIP_ROW
        svg.text(
            _LEFT, top + 14, shorten(f"{column.name}{_short_bounds(column.bounds)}", 52), "tick", anchor="end"
        )
        for at, line in enumerate(around.lines):
            _draw_version(svg, line.cells[row], _LEFT + 10 + width * at, top, width)
    return svg.markup()


def _short_bounds(bounds: str) -> str:
    return f" · {bounds}" if bounds.startswith(("ends", "not", "by p")) else ""


def _draw_version(svg: Svg, cell: Cell, left: float, top: float, width: float) -> None:
    held = ", ".join(_spelt(item) for item in cell.held)
    if not cell.held and not cell.note:
        return
    state, words = cell.state or "empty", held or cell.note
    shown = shorten(words, 20)
    svg.rect(
        left + 1,
        top,
        width - 2,
        _STRIP_ROW - 3,
        f"version v-{state}",
        tip="" if shown == words else words,
        rx=2,
    )
    svg.text(left + width / 2, top + 14, shown, "version-label", anchor="middle")


def _spelt(item: Held) -> str:
    epoch = f" e{item.leader_epoch}" if item.leader_epoch is not None else ""
    return f"{item.label}{epoch}" + (f" ×{item.times}" if item.times > 1 else "")
