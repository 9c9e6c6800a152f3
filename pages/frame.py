"""The parts that drawings over time share: their widths, one for a page and one for a phone, of which the
style sheet shows the one that fits; the axis of time; and rows for labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from markupsafe import Markup

from wrackline.pages.svg import Scale, Svg, text_width, ticks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of a drawing: its width, and where its axis begins and ends: in pixels of a screen that is
    just as wide."""

    cls: str
    width: int
    left: int
    right: int
    letters: int
    """Of the longest label within the drawing."""
    ticks: int
    """Marks on its axis of time, about."""

    def place(self, at: float) -> float:
        """Returns the place of a point among thousands: on a phone in whole pixels."""
        return round(at) if self is PHONE else at

    def apart(self, places: Iterable[T]) -> list[T]:
        """Returns the places, on a phone without those that lie on one another."""
        return list(dict.fromkeys(places) if self is PHONE else places)


PAGE: Final = Frame("wide", 1120, 74, 1108, 60, 10)
PHONE: Final = Frame("phone", 366, 52, 360, 26, 5)


def for_both(draw: Callable[[Frame], Markup]) -> Markup:
    """The drawing for a page, and behind it the one for a phone."""
    return draw(PAGE) + draw(PHONE)


def draw_time_axis(svg: Svg, x: Scale, bottom: float, frame: Frame, about: int = 0, digits: int = 0) -> None:
    """``x``: a scale of seconds. ``about``: how many marks; the frame's by default. ``digits``: at least so
    many behind the point."""
    svg.line(frame.left, bottom, frame.right, bottom, "axis")
    places = ticks(x.low, x.high, about or frame.ticks)
    step = places[1] - places[0] if len(places) > 1 else 1.0
    needed = next((decimals for decimals, least in enumerate((1, 0.1, 0.01)) if step >= least), 3)
    for place in places:
        svg.line(x(place), bottom, x(place), bottom + 4, "axis")
        label = f"{place:,.{max(needed, digits)}f} s"
        middle = min(x(place), frame.width - text_width(label) / 2)
        svg.text(middle, bottom + 17, label, "tick", anchor="middle")


class LabelRows:
    """Labels side by side in as few rows as keep them ``apart``."""

    def __init__(self, apart: float) -> None:
        self._apart = apart
        self._taken: list[list[tuple[float, float]]] = []

    def __len__(self) -> int:
        return len(self._taken)

    def place(self, begin: float, end: float) -> int:
        """The first row in which there is room from ``begin`` to ``end``, which is taken then."""
        free = (row for row, spans in enumerate(self._taken) if self._is_free(begin, end, spans))
        row = next(free, len(self))
        if row == len(self):
            self._taken.append([])
        self._taken[row].append((begin, end))
        return row

    def _is_free(self, begin: float, end: float, spans: Iterable[tuple[float, float]]) -> bool:
        return all(end + self._apart <= left or right + self._apart <= begin for left, right in spans)
