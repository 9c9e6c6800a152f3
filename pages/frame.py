"""The widths that a drawing over time is made in: one for a page, one for a phone. The style sheet shows the
one that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from markupsafe import Markup

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    """Its width, and where its axis begins and ends: in pixels of a screen that is just as wide."""

    cls: str
    width: int
    left: int
    right: int
    letters: int
    """Of the longest label within the drawing."""
    ticks: int
    """Marks on its axis of time, about."""

    def place(self, at: float) -> float:
        """Of a point among thousands: on a phone in whole pixels."""
        return round(at) if self is PHONE else at

    def apart(self, places: Iterable[T]) -> list[T]:
        """On a phone without those that lie on one another."""
        return list(dict.fromkeys(places) if self is PHONE else places)


PAGE: Final = Frame("wide", 1120, 74, 1108, 60, 10)
PHONE: Final = Frame("phone", 366, 52, 360, 26, 5)


def for_both(draw: Callable[[Frame], Markup]) -> Markup:
    """The drawing for a page, and behind it the one for a phone."""
    return draw(PAGE) + draw(PHONE)
