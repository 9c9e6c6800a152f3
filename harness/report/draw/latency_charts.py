"""The latencies of operations: each as a point, quantiles over time, and by node and partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final

import numpy as np
from markupsafe import Markup

from wrackline.harness.report.draw.over_time import OverTime, PictureData
from wrackline.harness.report.draw.run_chart import draw_frame, latency_marks, latency_scale
from wrackline.harness.report.read.columns import OUTCOMES
from wrackline.harness.report.read.latency import Spread, quantiles_ms
from wrackline.harness.report.read.pictures import TIMES, Histogram
from wrackline.history.wording import milliseconds, number, plural, seconds, shorten
from wrackline.pages.frame import PHONE, Frame, for_both
from wrackline.pages.svg import Scale, Svg, letters_in

QUANTILES: Final = (0.5, 0.95, 0.99, 1.0)
_KINDS: Final = 4
_ENOUGH: Final = 50
"""Operations that quantiles should be read from."""
_PANEL: Final = 150
_PLACES: Final = 40


def latency_raw(data: PictureData) -> Markup | None:
    """A point for each operation: when it ended, how long it took, and its outcome."""
    of = data.of
    kinds = _kinds([name for name in of.fs if np.any(of.raw["f"] == of.fs.index(name))])
    return for_both(partial(_raw, data, kinds)) if kinds else None


def _raw(data: PictureData, kinds: Sequence[str], frame: Frame) -> Markup:
    of = data.of
    picture = data.over_time(
        "Latency of each operation, by kind and outcome",
        "Left to right: when an operation ended. Upwards, on a log scale: how long it had taken. One panel "
        "for each kind of operation, one colour for each outcome. Faults are shaded.",
        [_PANEL] * len(kinds),
        frame,
        "raw",
    )
    drawn = []
    for name, top in zip(kinds, picture.tops, strict=True):
        own = np.flatnonzero(of.raw["f"] == of.fs.index(name))
        took = (of.raw["end"][own] - of.raw["begin"][own]) / 1e6
        y = latency_scale(float(took.min()), float(took.max()), top, _PANEL)
        draw_frame(picture.svg, y, latency_marks(y), f"{name} latency (log scale)", picture.frame)
        x_of = np.array([frame.place(picture.x(at)) for at in of.raw["end"][own] / 1e9])
        y_of = np.array([frame.place(y(value)) for value in took])
        for outcome in ("ok", "fail", "info"):
            chosen = of.raw["outcome"][own] == OUTCOMES.index(outcome)
            points = zip(x_of[chosen].tolist(), y_of[chosen].tolist(), strict=True)
            picture.svg.dots(frame.apart(points), f"dots s-{outcome}")
        drawn.append((x_of, y_of, of.raw[own]))
    data.tables.points("raw", drawn)
    return picture.markup()


def _kinds(names: Sequence[str]) -> list[str]:
    order = {"send": 0, "poll": 1, "acquire": 1, "read": 2, "dequeue": 2, "end": 3, "acknowledge": 3}
    return sorted(names, key=lambda name: (order.get(name, 9), name))[:_KINDS]


def latency_quantiles(data: PictureData) -> Markup | None:
    """Quantiles of the latency of acknowledged operations, by kind, over time."""
    kinds = _kinds([name for name, held in data.of.quantiles.items() if held.counts.any()])
    return for_both(partial(_quantiles, data, kinds)) if kinds else None


def _quantiles(data: PictureData, kinds: Sequence[str], frame: Frame) -> Markup:
    picture = data.over_time(
        "Quantiles of latency over time, by kind of operation",
        "Lines for the median, the 95th and 99th percentile and the largest latency of acknowledged "
        "operations, on a log scale. One panel for each kind of operation. Faults are shaded.",
        [_PANEL] * len(kinds),
        frame,
    )
    tips: dict[int, list[str]] = {}
    for name, top in zip(kinds, picture.tops, strict=True):
        _draw_quantiles(picture, name, _coarse(data.of.quantiles[name]), data.of.end_ns, top, tips)
    if frame is PHONE:  # its columns are narrower than a finger
        return picture.markup()
    width = (frame.right - frame.left) / TIMES
    top, bottom = picture.tops[0], picture.tops[-1] + _PANEL
    for tip, columns in groupby(sorted(tips), key=lambda at: "\n".join(tips[at])):
        first, *others = columns
        picture.svg.rect(
            frame.left + first * width, top, (1 + len(others)) * width, bottom - top, "hit", tip=tip
        )
    return picture.markup()


def _coarse(held: Histogram) -> Histogram:
    """Returns the histogram with as few columns of time as it takes that an average one has ``_ENOUGH``
    operations; at least 15."""
    factor = 1
    while factor < 16 and held.counts.sum() * factor < _ENOUGH * np.count_nonzero(held.most):
        factor *= 2
    return Histogram(
        held.counts.reshape(TIMES // factor, factor, -1).sum(axis=1),
        held.most.reshape(TIMES // factor, factor).max(axis=1),
    )


def _draw_quantiles(
    picture: OverTime, name: str, held: Histogram, end_ns: int, top: float, tips: dict[int, list[str]]
) -> None:
    """``tips``: number of the column of time -> lines of its tool tip, which gets one more."""
    times = len(held.most)
    known = np.flatnonzero(held.most).tolist()
    read = {at: quantiles_ms(held.counts[at], int(held.most[at]), QUANTILES) for at in known}
    values = [value for one in read.values() for value in one]
    y = latency_scale(min(values), max(values), top, _PANEL)
    draw_frame(picture.svg, y, latency_marks(y), f"{name} latency (log scale)", picture.frame)
    x = {at: picture.x((at + 0.5) * end_ns / times / 1e9) for at in known}
    runs = np.split(np.array(known), np.flatnonzero(np.diff(known) > 1) + 1)
    for line, share in reversed(list(enumerate(QUANTILES))):
        cls = f"q-{share:g}".replace(".", "-")
        for run in runs:
            places = [(x[at], y(read[at][line])) for at in run.tolist()]
            if len(places) == 1:
                picture.svg.dots(places, f"dots {cls}")
            else:
                picture.svg.path(places, f"line {cls}")
    for at in known:
        shares = zip(QUANTILES, read[at], strict=True)
        spelt = ", ".join(f"{share:g}: {milliseconds(value)}" for share, value in shares)
        begin, end = (edge * end_ns / times for edge in (at, at + 1))
        text = f"{name}, {seconds(begin)} to {seconds(end)}: {number(held.counts[at].sum())} ok\n{spelt}"
        for fine in range(at * TIMES // times, (at + 1) * TIMES // times):
            tips.setdefault(fine, []).append(text)


def latency_by_place(places: Mapping[str, Mapping[str, Spread]]) -> Markup | None:
    """Bars of quantiles, a row for each name in each group (``node``, ``partition``)."""
    rows = [(group, name, own[name]) for group, own in places.items() for name in list(own)[:_PLACES]]
    return for_both(partial(_by_place, rows)) if rows else None


def _by_place(rows: Sequence[tuple[str, str, Spread]], frame: Frame) -> Markup:
    row, top, left = 20, 22, frame.left + 40
    groups = {group for group, *_ in rows}
    height = top + row * (len(rows) + len(groups)) + 26
    svg = Svg(
        frame.width,
        height,
        "Latency of acknowledged sends by node and by partition",
        frame.cls,
        desc="A row for each node and each partition, latency from left to right on a log scale: the bar "
        "reaches from the median to the 95th percentile, the thin line to the 99th, the dot is the largest.",
    )
    low, high = min(one.p50_ms for *_, one in rows), max(one.max_ms for *_, one in rows)
    scale = latency_scale(max(low, 1e-3), high, 0, 0)
    x = Scale(scale.low, scale.high, left, frame.right - (80 if frame is PHONE else 160), log=True)
    bottom = height - 26
    for value, label in latency_marks(scale):
        svg.line(x(value), top - 6, x(value), bottom, "grid")
        svg.text(x(value), height - 8, label, "tick", anchor="middle")
    y, before = float(top), ""
    for group, name, spread in rows:
        if group != before:
            title = "led by node" if group == "node" else group
            svg.text(8, y + 13, title, "panel-name")
            y, before = y + row, group
        _draw_spread(svg, x, y, name, spread, frame)
        y += row
    return svg.markup()


def _draw_spread(svg: Svg, x: Scale, y: float, name: str, spread: Spread, frame: Frame) -> None:
    middle = y + 8
    svg.text(x.start - 8, y + 12, shorten(name, letters_in(x.start - 8)), "tick", anchor="end")
    svg.line(x(spread.p50_ms), middle, x(spread.p99_ms), middle, "whisker")
    svg.rect(x(spread.p50_ms), y + 3, max(x(spread.p95_ms) - x(spread.p50_ms), 2), 10, "s-ok", rx=2)
    svg.circle(x(spread.max_ms), middle, 3, "worst")
    text = f"p99 {milliseconds(spread.p99_ms)}"
    text += "" if frame is PHONE else f", max {milliseconds(spread.max_ms)}"
    svg.text(x.end + 10, y + 12, text, "tick")
    tip = (
        f"{name}: {plural(spread.count, 'acknowledged send')}\n0.5: {milliseconds(spread.p50_ms)}, "
        f"0.95: {milliseconds(spread.p95_ms)}\n0.99: {milliseconds(spread.p99_ms)}, "
        f"1: {milliseconds(spread.max_ms)}"
    )
    svg.rect(0, y, frame.width, 19, "hit", tip=tip)
