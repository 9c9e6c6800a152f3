"""Records that nobody was given yet, and how far each consumer was behind the end of each log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
from markupsafe import Markup

from wrackline.harness.report.draw.over_time import (
    SERIES,
    Chart,
    Legend,
    PictureData,
    colour,
    rank_processes,
)
from wrackline.harness.report.draw.run_chart import draw_frame
from wrackline.harness.report.read.columns import Ints
from wrackline.harness.report.read.delivery import COLUMNS
from wrackline.history.wording import number, process_label
from wrackline.pages.frame import Frame, for_both
from wrackline.pages.svg import Scale, ticks

_LINES: Final = 24
_PANELS: Final = 12
_HEIGHT: Final = 190
_SMALL: Final = 64
_SILENT: Final = 0.02
"""Share of the run for which a consumer may say nothing of a partition before its line ends."""


def unseen_chart(data: PictureData) -> Chart | None:
    """A line for each partition; those with the most unseen records have a colour of their own."""
    series = data.of.unseen.series()
    ranked = sorted(series, key=lambda place: (-int(series[place].max()), place))[:_LINES]
    if not ranked or not any(series[place].any() for place in ranked):
        return None
    pictures = for_both(partial(_unseen, data, series, ranked))
    return Chart(pictures, legend=_legend([data.of.places[place] for place in ranked]))


def _unseen(data: PictureData, series: Mapping[int, Ints], ranked: Sequence[int], frame: Frame) -> Markup:
    of = data.of
    picture = data.over_time(
        "Records acknowledged and not yet given to any consumer, by partition",
        "Left to right: time. Upwards: how many acknowledged records of a partition no consumer had been "
        "given yet. A line that stays up at the end shows records that were never delivered. Faults are "
        "shaded.",
        [_HEIGHT],
        frame,
        "unseen",
    )
    most = max(int(series[place].max()) for place in ranked)
    y = Scale(0, most * 1.04, picture.tops[0] + _HEIGHT, picture.tops[0])
    marks = [(value, number(value)) for value in ticks(0, most, 4)]
    draw_frame(picture.svg, y, marks, "records unseen", frame)
    edges = [picture.x((at + 1) * of.end_ns / COLUMNS / 1e9) for at in range(COLUMNS)]
    points, counts = [], []
    for rank, place in reversed(list(enumerate(ranked))):
        values = series[place]
        heights = [y(value) for value in values.tolist()]
        turns = np.flatnonzero(np.r_[True, (np.diff(values[:-1]) != 0) | (np.diff(values[1:]) != 0), True])
        picture.svg.path([(edges[at], heights[at]) for at in turns.tolist()], f"line {colour(rank)}")
        latest = of.unseen.latest(place)
        known = np.flatnonzero(latest["end"] > 0)
        rows = latest[known]
        rows["place"] = place
        points.append((np.array(edges)[known], np.array(heights)[known], rows))
        counts.append(values[known])
    data.tables.points("unseen", points, {"unseen records of the partition": np.concatenate(counts)})
    return picture.markup()


def _legend(names: Sequence[str]) -> Legend:
    own = [(colour(rank), name) for rank, name in enumerate(names[: SERIES - 1])]
    if len(names) == SERIES:
        own.append((colour(SERIES - 1), names[-1]))
    elif len(names) > SERIES:
        own.append((colour(SERIES - 1), f"{len(names) - SERIES + 1} others"))
    return tuple(own)


def lag_charts(data: PictureData) -> tuple[Chart, Markup] | None:
    """Returns the charts of lag (in records, in seconds): a panel for each partition, a line for each
    consumer."""
    of = data.of
    if not len(of.lags):
        return None
    place, process = of.lags["operation"]["place"], of.lags["operation"]["process"]
    numbers = np.unique(place)
    most = {at: int(of.lags["behind"][place == at].max()) for at in numbers.tolist()}
    chosen = sorted(most, key=lambda at: (-most[at], at))[:_PANELS]
    chosen.sort()
    ranks = rank_processes(process)
    records, in_seconds = (
        for_both(partial(_lag_chart, data, chosen, ranks, name, upwards))
        for name, upwards in (("lag", of.lags["behind"]), ("behind", of.behind_ns / 1e9))
    )
    names = [f"process {process_label(process)}" for process in ranks]
    return Chart(records, len(most) - len(chosen), _legend(names)), in_seconds


def _lag_chart(
    data: PictureData,
    chosen: Sequence[int],
    ranks: dict[int, int],
    name: str,
    upwards: np.ndarray,
    frame: Frame,
) -> Markup:
    of, unit = data.of, "records" if name == "lag" else "seconds"
    picture = data.over_time(
        f"Consumer lag in {unit}, by partition and process",
        f"One panel for each partition, one line for each process that polls. Upwards: how far its position "
        f"was behind the end of the log that clients knew of, in {unit}. Faults are shaded.",
        [_SMALL] * len(chosen),
        frame,
        name,
    )
    at, process = of.lags["operation"]["place"], of.lags["operation"]["process"]
    most = float(upwards[np.isin(at, chosen)].max()) or 1.0
    points, drawn = [], []
    for place, top in zip(chosen, picture.tops, strict=True):
        y = Scale(0, most * 1.04, top + _SMALL, top)
        marks = [(value, number(value)) for value in ticks(0, most, 3)]
        draw_frame(picture.svg, y, marks, f"{of.places[place]}, {unit} behind", frame)
        own = np.flatnonzero(at == place)
        own = own[np.lexsort((of.lags["operation"]["end"][own], process[own]))]
        x_of = np.array([frame.place(picture.x(end)) for end in of.lags["operation"]["end"][own] / 1e9])
        y_of = np.array([frame.place(y(value)) for value in upwards[own].tolist()])
        lines: dict[str, list[list[tuple[float, float]]]] = {}
        silent = np.diff(of.lags["operation"]["end"][own]) > _SILENT * of.end_ns
        for line in np.split(np.arange(len(own)), np.flatnonzero((np.diff(process[own]) != 0) | silent) + 1):
            places = list(zip(x_of[line].tolist(), y_of[line].tolist(), strict=True))
            lines.setdefault(colour(ranks[int(process[own[line[0]]])]), []).append(places)
        for cls, drawn_lines in sorted(lines.items(), reverse=True):
            picture.svg.paths(drawn_lines, f"line thin {cls}")
        points.append((x_of, y_of, of.lags["operation"][own]))
        drawn.append(own)
    rows = np.concatenate(drawn)
    figures: dict[str, Ints] = {
        "position": of.lags["position"][rows],
        "records behind": of.lags["behind"][rows],
        "milliseconds behind": of.behind_ns[rows] // 1_000_000,
    }
    data.tables.points(name, points, figures)
    return picture.markup()
