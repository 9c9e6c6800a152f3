"""Faults and the moments of incidents on a drawing over time: bands with their names, and red lines with a
label that leads to the incident."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.moments import Moment
from wrackline.history.wording import printable, seconds, shorten
from wrackline.pages.frame import PHONE, Frame, LabelRows
from wrackline.pages.svg import Scale, Svg, text_width

LANE: Final = 20
FAULTS_DRAWN: Final = 80
ROW: Final = 16
MOMENTS_DRAWN: Final = 12
_BETWEEN: Final = 8


def fault_span(fault: Fault, x: Scale) -> tuple[float, float]:
    """Returns where a fault's band starts and ends on a scale of seconds, at least three units wide."""
    begin = fault.begin_ns if fault.begin_ns is not None else fault.active_ns or 0
    ended = fault.ended_ns if fault.ended_ns is not None else fault.undo_ns
    left = x(begin / 1e9)
    right = x(ended / 1e9) if ended is not None else x(x.high)
    return left, max(right, left + 3)


def force_span(fault: Fault, x: Scale) -> tuple[float, float]:
    """The part of a fault's band in which it was in force; empty when it never was."""
    left, right = fault_span(fault, x)
    if fault.active_ns is None:
        return left, left
    active = x(fault.active_ns / 1e9)
    return active, max(right if fault.undo_ns is None else x(fault.undo_ns / 1e9), active + 3)


@dataclass(frozen=True, slots=True)
class Label:
    """The place of a fault's name: in its bar, to its right, to its left, or else over its end; and all
    the room that bar and name take."""

    x: float
    anchor: str
    cls: str
    begin: float
    until: float


def place_label(fault: Fault, x: Scale, frame: Frame) -> Label:
    left, right = fault_span(fault, x)
    width = text_width(bar_name(fault, frame))
    active, undo = force_span(fault, x)
    if undo - active > width + 8:
        return Label(active + 5, "start", "bar-name", left, right)
    if right + width + 5 < frame.right:
        return Label(right + 5, "start", "side-name", left, right + width + 5)
    if left - width - 5 >= 0:
        return Label(left - 5, "end", "side-name", left - width - 5, right)
    return Label(frame.right, "end", "side-name", min(left, frame.right - width), max(right, frame.right))


def pack_faults(faults: Sequence[Fault], x: Scale, frame: Frame) -> dict[str, int]:
    """Fault id -> row, such that bars and their names do not overlap."""
    rows = LabelRows(6)
    labels = [(fault.id, place_label(fault, x, frame)) for fault in faults]
    return {name: rows.place(label.begin, label.until) for name, label in labels}


def bar_name(fault: Fault, frame: Frame) -> str:
    aside = "" if fault.told == "proved" else f" ({fault.told})"
    return shorten(fault.label, frame.letters - (len(aside) if frame is PHONE else 0)) + aside


def fault_tip(fault: Fault) -> str:
    times = f"{seconds(fault.begin_ns)} to {seconds(fault.ended_ns)}"
    proved = fault.told if fault.told == "proved" else fault.told.upper()
    role = f" as {fault.role}" if fault.role else ""
    return f"{fault.label}{role}\n{times}\n{proved}: {fault.proof or 'no proof given'}"


def draw_fault_bands(svg: Svg, faults: Sequence[Fault], x: Scale, top: float, bottom: float) -> None:
    for fault in faults:
        left, right = fault_span(fault, x)
        svg.rect(left, top, right - left, bottom - top, f"band f-{fault.kind}")
        if not fault.proved:
            svg.rect(left, top, right - left, bottom - top, "hatch")


def draw_fault_lanes(
    svg: Svg, faults: Sequence[Fault], lanes: Mapping[str, int], x: Scale, top: float, frame: Frame
) -> None:
    if faults:
        svg.text(frame.left - 8, top + 12, "faults", "tick", anchor="end")
    for fault in faults:
        left, right = fault_span(fault, x)
        y = top + lanes[fault.id] * LANE
        svg.rect(left, y, right - left, LANE - 4, f"bar f-{fault.kind} pale", rx=2)
        if fault.active_ns is not None:
            active, undo = force_span(fault, x)
            svg.rect(active, y, undo - active, LANE - 4, f"bar f-{fault.kind}", rx=2)
        if not fault.proved:
            svg.rect(left, y, right - left, LANE - 4, "hatch", rx=2)
        label = place_label(fault, x, frame)
        svg.text(label.x, y + 12, bar_name(fault, frame), label.cls, anchor=label.anchor)
        svg.rect(left, y, right - left, LANE - 4, "hit", tip=fault_tip(fault), rx=2)


class Moments:
    """``height``: of the rows of their labels together."""

    def __init__(self, moments: Sequence[Moment], x: Scale) -> None:
        """``x``: a scale of seconds."""
        self._places: list[tuple[Moment, float, bool, int]] = []
        rows = LabelRows(_BETWEEN)
        for moment in moments[:MOMENTS_DRAWN]:
            place, room = x(moment.at_ns / 1e9), text_width(moment.label) + 5
            before = place + room > x.end + 6
            begin, until = (place - room, place) if before else (place, place + room)
            self._places.append((moment, place, before, rows.place(begin, until)))
        self.height = ROW * len(rows)

    def draw(self, svg: Svg, top: float, bottom: float) -> None:
        """Labels from ``top`` on, lines down to ``bottom``."""
        for _, place, _, row in self._places:  # first, so that no line crosses a label
            svg.line(place, top + ROW * row + 2, place, bottom, "moment")
        for moment, place, before, row in self._places:
            y = top + ROW * row
            with svg.link(f"#{printable(moment.incident, 40)}", f"{moment.label}: {moment.words}"):
                svg.text(
                    place - 4 if before else place + 4,
                    y + 12,
                    moment.label,
                    "moment-name",
                    anchor="end" if before else "start",
                )
                svg.rect(place - 3, y, 6, bottom - y, "hit", tip=f"{moment.label}\n{moment.words}")
