"""The moments of incidents on a drawing over time: a red line with a label that leads to the incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wrackline.harness.report.read.moments import Moment
from wrackline.history.wording import printable
from wrackline.pages.frame import LabelRows
from wrackline.pages.svg import Scale, Svg, text_width

ROW: Final = 16
MOMENTS_DRAWN: Final = 12
_BETWEEN: Final = 8


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
