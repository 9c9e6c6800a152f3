"""Every operation of every process: a picture that stands still, and the columns from which the page's script
draws one that can be browsed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from wrackline.harness.report.draw.over_time import Chart, OverTime
from wrackline.harness.report.draw.page_data import Tables
from wrackline.harness.report.read.bars import SEVERAL
from wrackline.harness.report.read.columns import OUTCOMES, Ints
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.pictures import Gathered
from wrackline.history.wording import process_label
from wrackline.pages.frame import PAGE

_LANES: Final = 140
_LANE: Final = 14
_TALL: Final = 560
"""So high is the picture at most: with more lanes, each is lower."""
_BOXES: Final = 4_000


def processes_chart(of: Gathered, faults: Sequence[Fault]) -> Chart | None:
    """All of the run at once, what touches drawn as one box."""
    if not len(of.bars):
        return None
    lanes = int(of.lane.max()) + 1
    shown = min(lanes, _LANES)
    height = min(_LANE, _TALL / shown)
    picture = OverTime(
        "What every process did over time",
        "One lane for each process, one box for each operation, coloured by outcome. Faults are shaded.",
        faults,
        of.end_ns,
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
    return Chart(picture.markup(), lanes - shown)


def _of_shade(of: Gathered, shade: str) -> np.ndarray:
    named = {name: of.fs.index(name) for name in ("send", "poll") if name in of.fs}
    if shade != "else":
        return np.asarray(of.bars["operation"]["f"] == named.get(shade, 254))
    return ~np.isin(of.bars["operation"]["f"], list(named.values()))


def _ends(of: Gathered) -> Ints:
    """Where each bar ends; one that was never completed where the next of its lane begins."""
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


def add_bars(of: Gathered, faults: Sequence[Fault], tables: Tables) -> None:
    """The table ``bars`` for the script, in the order of lanes and begins, and what it must know besides."""
    order = np.lexsort((of.bars["operation"]["begin"], of.lane))
    bars = of.bars[order]
    own = {"lane": of.lane[order], "stands": bars["stands_for"], "bad": bars["bad"]}
    tables.add("bars", own | tables.operations(bars["operation"]))
    tables.words["several"] = SEVERAL
    tables.words["faults"] = [_fault(fault, of.end_ns) for fault in faults if fault.begin_ns is not None]


def _fault(fault: Fault, end_ns: int) -> dict[str, Any]:
    ended = fault.ended_ns if fault.ended_ns is not None else end_ns
    return {
        "label": fault.label + ("" if fault.proved else " (not proved)"),
        "kind": fault.kind,
        "begin": (fault.begin_ns or 0) // 1_000,
        "end": ended // 1_000,
    }
