"""The drawing of an explanation: its operations in the order of the history, and the edges between them.

Time is compressed to order: every invocation and completion that is cited gets a column of its own, so operations that were
minutes or microseconds apart are told from one another alike. Below it the version strip: what the log holds around the offset, by
whom it was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from harness.report.chart import WIDTH
from harness.report.explanation import Edge, Explanation
from harness.report.neighbourhood import Cell, Grid
from harness.report.operations import Operation
from harness.report.svg import Svg
from harness.report.text import number, seconds, shorten

_LEFT: Final = 230
_LANE: Final = 46
_BAR: Final = 14
_TOP: Final = 12
_STRIP_ROW: Final = 22
_KINDS: Final = {"time": "in time", "log": "in the log", "seen": "seen", "unseen": "unseen"}


def witness_drawing(explained: Explanation) -> Markup | None:
    """Bars and arrows; None when there is no operation to draw."""
    operations = explained.operations
    if not operations:
        return None
    columns = _columns(operations)
    step = (WIDTH - _LEFT - 30) / max(len(columns), 1)
    x = {moment: _LEFT + 10 + step * (at + 0.5) for at, moment in enumerate(columns)}
    height = _TOP + _LANE * len(operations) + 24
    svg = Svg(WIDTH, height, "The operations that contradict one another, in their order", "witness")
    boxes: list[tuple[float, float, float]] = []
    for row, op in enumerate(operations):
        boxes.append(_draw_operation(svg, row, op, x, step))
    for edge in explained.edges:
        _draw_edge(svg, edge, boxes)
    svg.text(
        _LEFT + 10,
        height - 6,
        "each column is one invocation or completion; distances are not to scale",
        "tick",
    )
    return svg.markup()


def _moments(op: Operation) -> tuple[tuple[int, int], tuple[int, int]]:
    """(time, index) of where its bar begins and ends; an open one ends where it begins."""
    begin = (op.begin_ns, op.indexes[0])
    return begin, (op.end_ns, op.indexes[-1] + 1) if op.end_ns is not None else begin


def _columns(operations: Sequence[Operation]) -> list[tuple[int, int]]:
    return sorted({moment for op in operations for moment in _moments(op)})


def _draw_operation(
    svg: Svg, row: int, op: Operation, x: dict[tuple[int, int], float], step: float
) -> tuple[float, float, float]:
    """Draws a lane; returns (left, right, middle height) of its bar."""
    top = _TOP + row * _LANE
    middle = top + _LANE / 2
    begin, end = _moments(op)
    left = x[begin] - step * 0.3
    right = x[end] + step * 0.3 if op.end_ns is not None else WIDTH - 20
    svg.text(22, middle + 4, shorten(f"{op.who} {op.f} {op.what}", 34), "tick")
    svg.circle(10, middle, 8, "number", tip=f"operation {row + 1}")
    svg.text(10, middle + 4, str(row + 1), "numbered", anchor="middle")
    svg.line(_LEFT, top + _LANE - 1, WIDTH - 10, top + _LANE - 1, "lane")
    ended = seconds(op.end_ns) if op.end_ns is not None else "never completed"
    tip = f"{op.who} {op.f} {op.what}: {seconds(op.begin_ns)} to {ended}, {op.outcome}"
    svg.rect(left, middle - _BAR / 2, right - left, _BAR, f"bar o-{op.outcome}", tip=tip, rx=3)
    return left, right, middle


def _draw_edge(svg: Svg, edge: Edge, boxes: Sequence[tuple[float, float, float]]) -> None:
    """An arrow from the bar that came before to the one that came after."""
    from_left, from_right, from_y = boxes[edge.before - 1]
    to_left, to_right, to_y = boxes[edge.after - 1]
    down = 1 if to_y > from_y else -1
    start = (
        from_right - 4 if edge.kind == "time" else (from_left + from_right) / 2,
        from_y + down * _BAR / 2,
    )
    end = (to_left + 4 if edge.kind == "time" else (to_left + to_right) / 2, to_y - down * _BAR / 2)
    svg.path([start, end], f"edge e-{edge.kind}")
    svg.path([(end[0] - 4, end[1] - down * 7), end, (end[0] + 4, end[1] - down * 7)], f"edge e-{edge.kind}")
    # Arrows of a cycle of two cross: their words stand apart.
    along = 0.3 if edge.kind == "time" else 0.7
    at = (start[0] + (end[0] - start[0]) * along, start[1] + (end[1] - start[1]) * along)
    svg.text(at[0] + 6, at[1] + 4, _KINDS[edge.kind], f"edge-label e-{edge.kind}")


def version_strip(grid: Grid) -> Markup:
    """Offsets from left to right, one row for each who saw them; what differs from the rest stands out."""
    width = (WIDTH - _LEFT - 20) / max(len(grid.lines), 1)
    height = _TOP + 16 + _STRIP_ROW * len(grid.columns) + 6
    svg = Svg(WIDTH, height, "The log around the offset, as each was told", "strip")
    for at, line in enumerate(grid.lines):
        centre = _LEFT + 10 + width * (at + 0.5)
        svg.text(
            centre, _TOP + 4, number(line.offset), "tick culprit" if line.culprit else "tick", anchor="middle"
        )
    for row, (name, bounds) in enumerate(grid.columns):
        top = _TOP + 12 + row * _STRIP_ROW
        svg.text(_LEFT, top + 14, name, "tick", anchor="end")
        for at, line in enumerate(grid.lines):
            _draw_version(svg, line.cells[row], _LEFT + 10 + width * at, top, width, bounds)
    return svg.markup()


def _draw_version(svg: Svg, cell: Cell, left: float, top: float, width: float, bounds: str) -> None:
    held = ", ".join(item.label for item in cell.held)
    if not cell.held and not cell.note:
        return
    state = cell.state or "empty"
    svg.rect(
        left + 1,
        top,
        width - 2,
        _STRIP_ROW - 3,
        f"version v-{state}",
        tip=f"{held or cell.note} ({bounds})",
        rx=2,
    )
    svg.text(left + width / 2, top + 14, shorten(held or cell.note, 16), "version-label", anchor="middle")
