"""A picture over time: the faults and the moments of incidents by name on top, their shade over every panel,
the axis of time below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from markupsafe import Markup

from wrackline.harness.report.draw.events import (
    FAULTS_DRAWN,
    LANE,
    Moments,
    draw_fault_bands,
    draw_fault_lanes,
    pack_faults,
)
from wrackline.harness.report.draw.page_data import Tables
from wrackline.harness.report.read.columns import Ints
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.moments import Moment
from wrackline.harness.report.read.pictures import Gathered
from wrackline.pages.frame import Frame, draw_time_axis
from wrackline.pages.svg import Scale, Svg

_BETWEEN: Final = 24
Legend = tuple[tuple[str, str], ...]
"""(class of the colour, what it stands for)."""
SERIES = 8
"""Colours that series have (``node-0`` to ``node-6`` in the style sheet); the last is for all others."""


@dataclass(frozen=True, slots=True)
class Chart:
    drawing: Markup
    hidden: int = 0
    """Panels or lanes for which there was no room."""
    legend: Legend = ()


class OverTime:
    """``tops``: where each panel begins; ``x``: a scale of seconds."""

    def __init__(
        self,
        label: str,
        desc: str,
        faults: Sequence[Fault],
        end_ns: int,
        heights: Sequence[float],
        frame: Frame,
        points: str = "",
        moments: Sequence[Moment] = (),
        above: float = _BETWEEN,
    ) -> None:
        """``heights``: of the panels; ``above``: room for the name of each."""
        self.frame = frame
        self._faults = faults[:FAULTS_DRAWN]
        self.x = Scale(0, max(end_ns / 1e9, 1e-3), frame.left, frame.right)
        self._lanes = pack_faults(self._faults, self.x, frame)
        self._moments = Moments(moments, self.x)
        self._moments_top = 4.0 + LANE * (max(self._lanes.values(), default=-1) + 1)
        top = self._moments_top + self._moments.height + above
        self.tops: list[float] = []
        for height in heights:
            self.tops.append(top)
            top += height + above
        self._bottom = top - above
        self.svg = Svg(frame.width, self._bottom + 24, label, frame.cls, desc=desc, points=points)
        draw_fault_bands(self.svg, self._faults, self.x, 2, self._bottom)

    def markup(self) -> Markup:
        draw_time_axis(self.svg, self.x, self._bottom, self.frame)
        self._moments.draw(self.svg, self._moments_top, self._bottom)
        draw_fault_lanes(self.svg, self._faults, self._lanes, self.x, 4, self.frame)
        return self.svg.markup()


@dataclass(frozen=True, slots=True)
class PictureData:
    """What the pictures of a run are drawn from, and the tables for the page's script."""

    of: Gathered
    faults: Sequence[Fault]
    moments: Sequence[Moment]
    tables: Tables

    def over_time(
        self,
        label: str,
        desc: str,
        heights: Sequence[float],
        frame: Frame,
        points: str = "",
        moments: Sequence[Moment] = (),
    ) -> OverTime:
        return OverTime(label, desc, self.faults, self.of.end_ns, heights, frame, points, moments)


def rank_processes(processes: Ints) -> dict[int, int]:
    """Returns the rank of each process; the one that is there most often is the first."""
    numbers, counts = np.unique(processes, return_counts=True)
    order = np.argsort(-counts, kind="stable").tolist()
    return {int(numbers[at]): rank for rank, at in enumerate(order)}


def colour(rank: int) -> str:
    """The class of the series of this rank."""
    return f"node-{min(rank, SERIES - 1)}"
