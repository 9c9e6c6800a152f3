"""The run over time: phases, faults, throughput and latency on one axis.

Every drawing has one element per series and at most ``BUCKETS`` points a series, however long the run.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup

from wrackline.harness.report.draw.events import (
    FAULTS_DRAWN,
    LANE,
    Moments,
    draw_fault_bands,
    draw_fault_lanes,
    pack_faults,
)
from wrackline.harness.report.read.faults import Fault, Phase
from wrackline.harness.report.read.files import numeric, rows, whole
from wrackline.harness.report.read.moments import Moment
from wrackline.history.wording import milliseconds, number, seconds
from wrackline.pages.frame import PHONE, Frame, draw_time_axis
from wrackline.pages.svg import Scale, Svg, text_width, ticks

BUCKETS: Final = 300
_DECADES: Final = tuple(10.0**power for power in range(-3, 7))
_AFTERWARDS: Final = ("drain", "replica", "assign", "lag")
"""Not part of the load: the final read, and consumers taking partitions."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rates per second, and latencies in milliseconds, of one kind of operation from ``begin_s`` on."""

    begin_s: float
    ok: float = 0
    fail: float = 0
    info: float = 0
    p50: float | None = None
    p99: float | None = None
    worst: float | None = None

    @property
    def rate(self) -> float:
        return self.ok + self.fail + self.info


def buckets(metrics: Mapping[str, Any] | None, extent_s: float) -> tuple[int, dict[str, list[Bucket]]]:
    """(seconds per bucket, kind of operation -> buckets). p50 is the median of the seconds', p99 the
    worst."""
    step = max(1, -(-int(extent_s) // BUCKETS))
    gathered: dict[str, dict[int, list[Mapping[str, Any]]]] = {}
    for row in rows(metrics, "seconds"):
        second = whole(row, "t")
        f = str(row.get("f", "?"))
        if second is not None and 0 <= second <= extent_s and f not in _AFTERWARDS:
            gathered.setdefault(f, {}).setdefault(second // step, []).append(row)
    order = {"send": 0, "poll": 1, "acquire": 1, "end": 2, "acknowledge": 2}
    named = sorted(gathered.items(), key=lambda item: (order.get(item[0], 9), item[0]))
    return step, {
        f: [_bucket(at * step, step, members) for at, members in sorted(by.items())] for f, by in named[:6]
    }


def _bucket(begin: int, step: int, members: Sequence[Mapping[str, Any]]) -> Bucket:
    def total(key: str) -> float:
        return sum(numeric(row, key) or 0 for row in members) / step

    def known(key: str) -> list[float]:
        return [value for row in members if (value := numeric(row, key)) is not None]

    p50 = known("p50_ms")
    return Bucket(
        begin_s=begin,
        ok=total("ok"),
        fail=total("fail"),
        info=total("info"),
        p50=statistics.median(p50) if p50 else None,
        p99=max(known("p99_ms"), default=None),
        worst=max(known("max_ms"), default=None),
    )


def run_chart(
    metrics: Mapping[str, Any] | None,
    faults: Sequence[Fault],
    phases: Sequence[Phase],
    extent_ns: int,
    moments: Sequence[Moment],
    frame: Frame,
) -> Markup:
    """Phases, faults and moments on top, then one throughput panel per kind of operation, then latency."""
    extent_s = max(extent_ns / 1e9, 1.0)
    step, series = buckets(metrics, extent_s)
    x = Scale(0, extent_s, frame.left, frame.right)
    lanes = pack_faults(faults[:FAULTS_DRAWN], x, frame)
    marks = Moments(moments, x)
    marks_top = 24 + LANE * (max(lanes.values(), default=-1) + 1)
    panels_top = marks_top + marks.height + 26
    heights = {f: 100 if f == "send" or len(series) == 1 else 34 for f in series}
    latency = next(iter(series.values()), [])
    has_latency = any(bucket.p99 is not None or bucket.p50 is not None for bucket in latency)
    bottom = panels_top + sum(height + 24 for height in heights.values()) + (84 if has_latency else 0)
    svg = Svg(frame.width, bottom + 22, "Throughput and latency over time, with faults", frame.cls)
    _draw_phases(svg, phases, x, bottom, frame)
    draw_fault_bands(svg, faults[:FAULTS_DRAWN], x, panels_top - 18, bottom)
    top = panels_top
    for f, own in series.items():
        _draw_rates(svg, f, own, step, x, top, heights[f], frame)
        top += heights[f] + 24
    if has_latency:
        _draw_latency(svg, next(iter(series)), latency, step, x, top, 78, frame)
    draw_time_axis(svg, x, bottom, frame)
    if frame is not PHONE:  # its columns are narrower than a finger
        _draw_hits(svg, series, step, faults, x, panels_top - 18, bottom)
    marks.draw(svg, marks_top, bottom)
    draw_fault_lanes(svg, faults[:FAULTS_DRAWN], lanes, x, 24, frame)
    return svg.markup()


def _draw_phases(svg: Svg, phases: Sequence[Phase], x: Scale, bottom: float, frame: Frame) -> None:
    for number_, phase in enumerate(phases):
        left, right = x(phase.begin_ns / 1e9), x(phase.end_ns / 1e9)
        span = f"phase {phase.name}: {seconds(phase.begin_ns)} to {seconds(phase.end_ns)}"
        svg.rect(left, 2, right - left, 17, f"phase phase-{number_ % 2}", tip=span)
        if number_:
            svg.line(left, 2, left, bottom, "phase-edge")
        if right - left > text_width(phase.name) + 4:
            svg.text((left + right) / 2, 14, phase.name, "phase-name", anchor="middle")
    svg.text(frame.left - 8, 14, "phase", "tick", anchor="end")


# panels -----------------------------------------------------------------------------------------------------


def draw_frame(svg: Svg, y: Scale, marks: Sequence[tuple[float, str]], name: str, frame: Frame) -> None:
    """Lines of a panel's scale, which ends at its top, with their labels; and the panel's name above it."""
    for value, label in marks:
        svg.line(frame.left, y(value), frame.right, y(value), "grid")
        svg.text(frame.left - 8, y(value) + 4, label, "tick", anchor="end")
    svg.text(frame.left, y.end - 5, name, "panel-name")


def _draw_rates(
    svg: Svg, f: str, own: Sequence[Bucket], step: int, x: Scale, top: float, height: float, frame: Frame
) -> None:
    peak = max((bucket.rate for bucket in own), default=0) or 1
    y = Scale(0, peak * 1.04, top + height, top)
    marks = [(value, number(value)) for value in ticks(0, peak, 3 if height > 80 else 2)]
    draw_frame(svg, y, marks, f"{f} per second", frame)
    boxes: dict[str, list[tuple[float, float, float, float]]] = {"ok": [], "fail": [], "info": []}
    for bucket in own:
        left = x(bucket.begin_s)
        width = x(bucket.begin_s + step) - left
        base = 0.0
        for name, amount in (("ok", bucket.ok), ("fail", bucket.fail), ("info", bucket.info)):
            if amount:
                # a single failure among thousands must still be seen
                least = 0 if name == "ok" else 2
                tall = max(y(base) - y(base + amount), least)
                boxes[name].append((left, y(base) - tall, max(width - (0.6 if width > 3 else 0), 0.5), tall))
                base += amount
    for name, drawn in boxes.items():
        svg.columns(drawn, f"s-{name}")


def _draw_latency(
    svg: Svg, f: str, own: Sequence[Bucket], step: int, x: Scale, top: float, height: float, frame: Frame
) -> None:
    known = [value for b in own for value in (b.p50, b.p99, b.worst) if value is not None and value > 0]
    y = latency_scale(min(known, default=1.0), max(known, default=10.0), top, height)
    draw_frame(svg, y, latency_marks(y), f"{f} latency (log scale)", frame)
    for bucket in own:
        if bucket.worst is not None:
            svg.circle(x(bucket.begin_s + step / 2), y(bucket.worst), 1.6, "worst")
    for name in ("p99", "p50"):
        points = [(bucket.begin_s, getattr(bucket, name)) for bucket in own]
        for present, run in groupby(_with_gaps(points, step), key=lambda point: point[1] is not None):
            if present:
                svg.path([(x(begin + step / 2), y(value)) for begin, value in run if value is not None], name)


def latency_scale(low_ms: float, high_ms: float, top: float, height: float) -> Scale:
    """Logarithmic, from the power of ten below ``low_ms`` to that above ``high_ms``."""
    floor = max((d for d in _DECADES if d <= low_ms), default=_DECADES[0])
    ceiling = min((d for d in _DECADES if d >= high_ms and d > floor), default=_DECADES[-1])
    return Scale(floor, ceiling, top + height, top, log=True)


def latency_marks(y: Scale) -> list[tuple[float, str]]:
    return [(value, milliseconds(value)) for value in _DECADES if y.low <= value <= y.high]


def _with_gaps(points: Sequence[tuple[float, float | None]], step: int) -> list[tuple[float, float | None]]:
    """The points, with an empty one wherever a bucket is absent, so that no line crosses a silence."""
    filled: list[tuple[float, float | None]] = []
    for begin, value in points:
        if filled and begin - filled[-1][0] > step * 1.5:
            filled.append((begin, None))
        filled.append((begin, value))
    return filled


def _draw_hits(
    svg: Svg,
    series: Mapping[str, Sequence[Bucket]],
    step: int,
    faults: Sequence[Fault],
    x: Scale,
    top: float,
    bottom: float,
) -> None:
    """Invisible columns that carry the numbers as tooltips."""
    by_time: dict[float, list[str]] = {}
    for f, own in series.items():
        for b in own:
            line = f"{f}: {number(b.ok)} ok, {number(b.fail)} fail, {number(b.info)} info per second"
            if b.p50 is not None:
                line += f"; p50 {milliseconds(b.p50)}, p99 {milliseconds(b.p99)}, max {milliseconds(b.worst)}"
            by_time.setdefault(b.begin_s, []).append(line)
    for begin, lines in by_time.items():
        during = [
            f.label
            for f in faults
            if f.begin_ns is not None
            and f.begin_ns < (begin + step) * 1e9
            and (f.ended_ns or 1e30) > begin * 1e9
        ]
        tip = "\n".join([f"{begin:,.0f} to {begin + step:,.0f} s", *lines, *during[:4]])
        svg.rect(x(begin), top, x(begin + step) - x(begin), bottom - top, "hit", tip=tip)
