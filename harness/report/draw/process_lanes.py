"""The operations of every process around a finding: each process is a lane, each operation a bar, each
fault a band.

A drawing has about ``BARS`` bars; bars of one lane and outcome that touch are
drawn as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from wrackline.checkers.explain.model import OPEN, Operation, Window
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.harness.report.draw.events import fault_tip
from wrackline.harness.report.draw.over_time import Chart, PictureData
from wrackline.harness.report.read.bars import SEVERAL
from wrackline.harness.report.read.columns import OUTCOMES, Ints
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.pictures import Gathered
from wrackline.history.model import POLLS
from wrackline.history.wording import duration, process_label, seconds, shorten
from wrackline.pages.frame import PAGE, PHONE, Frame, LabelRows, draw_time_axis, for_both
from wrackline.pages.svg import Scale, Svg, text_width

BARS: Final = 2_500
_BARS_WITH_TIPS: Final = 300
_LANE: Final = 18
_TOP: Final = 24
_MARKS: Final = 12


@dataclass(frozen=True, slots=True)
class Timeline:
    drawing: Markup
    window: Window


def process_timeline(
    operations: Sequence[Operation],
    proof: Sequence[Operation],
    window: Window,
    faults: Sequence[Fault],
    leaders: Sequence[LeaderSpan],
) -> Timeline:
    """``operations``: those of the window; ``proof``: those that the finding cites, numbered from 1 in their
    order."""
    numbers = {index: n for n, op in enumerate(proof, 1) for index in op.indexes}
    changes = leader_changes(leaders, window)
    return Timeline(
        for_both(lambda frame: _lanes(operations, numbers, window, faults, changes, frame)), window
    )


def _lanes(
    operations: Sequence[Operation],
    numbers: dict[int, int],
    window: Window,
    faults: Sequence[Fault],
    changes: Sequence[LeaderSpan],
    frame: Frame,
) -> Markup:
    lanes = sorted({op.process for op in operations})
    x = Scale(window.begin_ns, window.end_ns, frame.left, frame.right)
    bottom = _TOP + _LANE * len(lanes) + (18 if changes else 4)
    svg = Svg(
        frame.width,
        bottom + 24,
        f"Operations from {seconds(window.begin_ns)} to {seconds(window.end_ns)}",
        frame.cls,
    )
    _draw_faults(
        svg, [f for f in faults if f.begin_ns is not None and window.holds(f.begin_ns, f.ended_ns)], x, bottom
    )
    by_lane = [[op for op in operations if op.process == process] for process in lanes]
    others = [[op for op in own if not numbers.keys() & set(op.indexes)] for own in by_lane]
    merged = merge_bars(others, x)
    tips = frame is not PHONE and sum(map(len, merged)) <= _BARS_WITH_TIPS
    for row, (process, bars) in enumerate(zip(lanes, merged, strict=True)):
        top = _TOP + row * _LANE
        svg.text(frame.left - 8, top + 12, lane_label(process), "tick", anchor="end")
        svg.line(frame.left, top + _LANE - 1, frame.right, top + _LANE - 1, "lane")
        _draw_bars(svg, bars, top, tips=tips)
        _draw_proof(svg, [op for op in by_lane[row] if numbers.keys() & set(op.indexes)], numbers, x, top)
    _draw_leaders(svg, changes, x, bottom)
    seconds_x = Scale(window.begin_ns / 1e9, window.end_ns / 1e9, x.start, x.end)
    draw_time_axis(svg, seconds_x, bottom, frame, frame.ticks - 2)
    return svg.markup()


def lane_label(process: int) -> str:
    """The label at the left of a process's lane."""
    label = process_label(process)
    return f"p{label}" if label.isdigit() else f"consumer {label.split()[0]}"


def describe(op: Operation) -> str:
    took = "never completed" if op.end_ns is None else f"took {duration(op.end_ns - op.begin_ns)}"
    lines = [
        f"{op.who} {op.f}: {op.outcome}, {took}",
        f"{seconds(op.begin_ns)} to {seconds(op.end_ns)}",
        op.what,
    ]
    lines += [f"error: {op.error}"] if op.error else []
    return "\n".join(line for line in [*lines, f"node {op.node}" if op.node else ""] if line)


_Bar = tuple[float, float, list[Operation]]
"""Left, right, and the operations drawn as one."""


def merge_bars(lanes: Sequence[Sequence[Operation]], x: Scale, limit: int = BARS) -> list[list[_Bar]]:
    """The bars of every lane. Neighbours of one outcome that touch are one bar; the distance that still
    counts as touching grows until all lanes together need at most ``limit`` bars (or cannot be merged
    further)."""
    gap = 0.5
    while True:
        merged = [_merge(own, x, gap) for own in lanes]
        if sum(map(len, merged)) <= limit or gap > x.end - x.start:
            return merged
        gap *= 2


def _merge(own: Sequence[Operation], x: Scale, gap: float) -> list[_Bar]:
    bars: list[_Bar] = []
    for op in own:
        left, right = _extent(op, x)
        if bars and left - bars[-1][1] < gap and bars[-1][2][-1].outcome == op.outcome:
            before = bars.pop()
            bars.append((before[0], max(before[1], right), [*before[2], op]))
        else:
            bars.append((left, right, [op]))
    return bars


def _draw_bars(svg: Svg, bars: Sequence[_Bar], top: float, *, tips: bool) -> None:
    """Draw one lane. ``tips``: every bar has a tool tip with its operation, which takes ten times the
    room."""
    plain: dict[str, list[tuple[float, float, float, float]]] = {}
    for left, right, members in bars:
        first = members[0]
        cls = f"op o-{first.outcome} q-{_shade(first)}"
        if not tips:
            plain.setdefault(cls, []).append((left, top + 2, right - left, _LANE - 6))
            continue
        tip = describe(first)
        if len(members) > 1:
            tip = f"{first.who}: {len(members)} operations, {first.outcome}\nfirst: {tip}"
        svg.rect(left, top + 2, right - left, _LANE - 6, cls, tip=tip)
    for cls, boxes in plain.items():
        svg.columns(boxes, cls)


def _shade(op: Operation) -> str:
    return "poll" if op.f in POLLS else op.f if op.f in ("send", "end") else "else"


def _extent(op: Operation, x: Scale) -> tuple[float, float]:
    left = x(op.begin_ns)
    return left, max(x(op.end_ns) if op.end_ns is not None else x(x.high), left + 1)


def _draw_proof(svg: Svg, own: Sequence[Operation], numbers: dict[int, int], x: Scale, top: float) -> None:
    """The cited operations: outlined, numbered as in the table, named where there is room."""
    busy_until = 0.0
    for op in sorted(own, key=lambda op: op.begin_ns):
        left, right = _extent(op, x)
        right = max(right, left + 3)
        svg.rect(left, top + 1, right - left, _LANE - 4, f"op o-{op.outcome} culprit", tip=describe(op), rx=1)
        if op.outcome == OPEN:
            svg.rect(left, top + 1, right - left, _LANE - 4, "hatch")
        badge = right + 8 if right + 16 < x.end else left - 8
        if badge < busy_until:
            continue
        number_ = next(numbers[index] for index in op.indexes if index in numbers)
        svg.circle(badge, top + 8, 7, "badge")
        svg.text(badge, top + 11.5, str(number_), "badge-text", anchor="middle")
        busy_until = badge + 16
        label = shorten(f"{op.f} {op.what}", 44)
        alone = all(
            other is op or not left <= _extent(other, x)[0] < right + 30 + text_width(label) for other in own
        )
        if alone and badge > left and badge + 12 + text_width(label) < x.end:
            svg.rect(badge + 10, top + 1, text_width(label, 11.5) + 4, 14, "label-back", rx=2)
            svg.text(badge + 12, top + 12, label, "proof-name")


def _draw_faults(svg: Svg, faults: Sequence[Fault], x: Scale, bottom: float) -> None:
    for fault in faults[:_MARKS]:
        begin = x(fault.begin_ns or 0)
        end = max(x(fault.ended_ns) if fault.ended_ns is not None else x(x.high), begin + 3)
        svg.rect(begin, 16, end - begin, bottom - 16, f"band strong f-{fault.kind}", tip=fault_tip(fault))
        if not fault.proved:
            svg.rect(begin, 16, end - begin, bottom - 16, "hatch")
    rows = LabelRows(0)
    for fault in faults[:_MARKS]:
        begin = x(fault.begin_ns or 0)
        label = shorten(fault.label, 48)
        room = text_width(label)
        start = begin + 2 if begin + room < x.end else x.end - room
        if rows.place(start, start + room) == 0:
            svg.text(start, 12, label, f"fault-name f-{fault.kind}")


def leader_changes(leaders: Sequence[LeaderSpan], window: Window) -> list[LeaderSpan]:
    """The spans within the window with which metadata first showed another leader or epoch; at most
    ``_MARKS``."""
    return [
        after
        for before, after in pairwise(leaders)
        if (before.leader, before.leader_epoch) != (after.leader, after.leader_epoch)
        and window.begin_ns < after.begin_ns < window.end_ns
    ][:_MARKS]


def _draw_leaders(svg: Svg, changes: Sequence[LeaderSpan], x: Scale, bottom: float) -> None:
    free_from = 0.0
    for span in changes:
        place = x(span.begin_ns)
        svg.line(place, 16, place, bottom, "leader-edge")
        label = f"metadata: leader {span.leader or 'none'} e{span.leader_epoch}"
        start = min(place + 3, x.end - text_width(label))
        if start > free_from:
            svg.text(start, bottom - 5, label, "leader-name")
            free_from = start + text_width(label)


_LANES: Final = 140
_THIN_LANE: Final = 14
_TALL: Final = 560
"""So high is the picture at most: with more lanes, each is lower."""
_BOXES: Final = 4_000


def processes_chart(data: PictureData) -> Chart | None:
    """All of the run at once, what touches drawn as one box."""
    of = data.of
    if not len(of.bars):
        return None
    lanes = int(of.lane.max()) + 1
    shown = min(lanes, _LANES)
    height = min(_THIN_LANE, _TALL / shown)
    picture = data.over_time(
        "What every process did over time",
        "One lane for each process, one box for each operation, coloured by outcome. Faults are shaded.",
        [shown * height],
        PAGE,
    )
    top, ends, bars = picture.tops[0], _ends(of), of.bars["operation"]
    for lane in range(shown):
        own = np.unique(bars["process"][of.lane == lane])
        y = top + lane * height
        label = process_label(int(own[0])) + (" …" if len(own) > 1 else "")
        if lane % math.ceil(11 / height) == 0:
            picture.svg.text(PAGE.left - 8, y + min(height, 11), f"p{label}", "tick", anchor="end")
        if height > 8:
            picture.svg.line(PAGE.left, y + height - 1, PAGE.right, y + height - 1, "lane")
    for outcome, name in enumerate(OUTCOMES):
        for shade in ("send", "poll", "else"):
            chosen = (of.lane < shown) & (bars["outcome"] == outcome) & _of_shade(of, shade)
            boxes = _boxes(bars["begin"][chosen], ends[chosen], of.lane[chosen], of.end_ns)
            gap = 2 if height > 8 else 0.5
            drawn = [
                (left, top + lane * height + gap, width, height - 2 * gap) for lane, left, width in boxes
            ]
            picture.svg.columns(drawn, f"op o-{name} q-{shade}")
    _add_bars(of, data)
    return Chart(picture.markup(), lanes - shown)


def _of_shade(of: Gathered, shade: str) -> np.ndarray:
    kinds = {"send": ("send",), "poll": POLLS, "else": ("send", *POLLS)}[shade]
    result = np.isin(of.bars["operation"]["f"], [of.fs.index(name) for name in kinds if name in of.fs])
    return ~result if shade == "else" else result


def _ends(of: Gathered) -> Ints:
    """Returns where each bar ends; one that was never completed ends where the next of its lane begins."""
    bars = of.bars["operation"]
    order = np.lexsort((bars["begin"], of.lane))
    follows = np.r_[np.diff(of.lane[order]) == 0, False]
    after = np.r_[bars["begin"][order][1:], of.end_ns]
    ends = np.empty(len(order), np.int64)
    ends[order] = np.where(follows, after, of.end_ns)
    return np.where(bars["end"] < 0, ends, bars["end"])


def _boxes(begin: Ints, end: Ints, lane: Ints, end_ns: int) -> list[tuple[int, float, float]]:
    """(lane, left, width), with neighbours joined until there are few enough."""
    unit = (PAGE.right - PAGE.left) / end_ns
    left = PAGE.left + np.clip(begin * unit, 0, PAGE.right - PAGE.left)
    right = np.maximum(PAGE.left + np.clip(end * unit, 0, PAGE.right - PAGE.left), left + 0.6)
    order = np.lexsort((left, lane))
    lane, left, right = lane[order], left[order], right[order]
    gap = 0.3
    while len(lane):
        starts = np.flatnonzero(np.r_[True, (np.diff(lane) != 0) | (left[1:] - right[:-1] > gap)])
        lane, left, right = lane[starts], left[starts], np.maximum.reduceat(right, starts)
        if len(lane) <= _BOXES // 4 or gap > PAGE.right:
            break
        gap *= 2
    return list(zip(lane.tolist(), left.tolist(), (right - left).tolist(), strict=True))


def _add_bars(of: Gathered, data: PictureData) -> None:
    """The table ``bars`` for the script, in the order of lanes and begins, and what it must know besides."""
    order = np.lexsort((of.bars["operation"]["begin"], of.lane))
    bars = of.bars[order]
    own = {"lane": of.lane[order], "stands": bars["stands_for"], "bad": bars["bad"]}
    data.tables.add("bars", own | data.tables.operations(bars["operation"]))
    data.tables.words["several"] = SEVERAL
    data.tables.words["faults"] = [
        _fault(fault, of.end_ns) for fault in data.faults if fault.begin_ns is not None
    ]


def _fault(fault: Fault, end_ns: int) -> dict[str, Any]:
    ended = fault.ended_ns if fault.ended_ns is not None else end_ns
    return {
        "label": fault.label + ("" if fault.proved else " (not proved)"),
        "kind": fault.kind,
        "begin": (fault.begin_ns or 0) // 1_000,
        "end": ended // 1_000,
    }
