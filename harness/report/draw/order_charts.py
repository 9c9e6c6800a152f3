"""Sends and reads along the offsets of a partition: of the whole run, and of the offsets around findings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from wrackline.harness.report.draw.events import Moments, fault_tip
from wrackline.harness.report.draw.over_time import SERIES, Chart, PictureData, colour, rank_processes
from wrackline.harness.report.draw.run_chart import draw_frame
from wrackline.harness.report.read.columns import Bools, Table
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.log_order import PLACES, Stretch
from wrackline.harness.report.read.moments import of_partition
from wrackline.harness.report.read.pictures import Gathered
from wrackline.history.wording import number, value_label
from wrackline.pages.frame import PHONE, Frame, draw_time_axis, for_both
from wrackline.pages.svg import Scale, Svg, text_width, ticks

_PANEL: Final = 120
_ROW: Final = 18
_FINAL: Final = 92
"""Width of the column for the final read."""
_SEND: Final = "send"
_FINAL_READ: Final = "drain"


def order_chart(data: PictureData) -> Chart | None:
    """A panel for each partition, time to the right, offsets upwards."""
    numbers = np.unique(data.of.order["place"]).tolist()
    chosen = sorted(numbers, key=lambda at: data.of.places[at])[:PLACES]
    if not chosen:
        return None
    return Chart(for_both(partial(_order, data, chosen)), len(numbers) - len(chosen))


def _order(data: PictureData, chosen: Sequence[int], frame: Frame) -> Markup:
    of, rows = data.of, data.of.order
    picture = data.over_time(
        "Sends and reads along the offsets of each partition, over time",
        "One panel for each partition: time to the right, offsets upwards. A thick pale point is a send that "
        "was acknowledged there; an upright line is what one poll was given, in the colour of its process.",
        [_PANEL] * len(chosen),
        frame,
        "order",
        data.moments,
    )
    sent = _of_kind(of, rows, _SEND)
    ranks = rank_processes(rows[~sent]["process"])
    points = []
    for place, top in zip(chosen, picture.tops, strict=True):
        own = np.flatnonzero(rows["place"] == place)
        low, high = int(rows["offset"][own].min()), int(rows["last"][own].max())
        y = Scale(low, max(high, low + 1), top + _PANEL, top)
        marks = [(value, number(value)) for value in ticks(low, high, 3)]
        draw_frame(picture.svg, y, marks, f"{of.places[place]}, offsets", frame)
        x_of = [frame.place(picture.x(at)) for at in (rows["end"][own] / 1e9).tolist()]
        spans = [
            (frame.place(y(a)), frame.place(y(b)))
            for a, b in zip(rows["offset"][own].tolist(), rows["last"][own].tolist(), strict=True)
        ]
        lines: dict[str, list[tuple[float, float, float]]] = {}
        for at, x, (low_y, high_y) in zip(own.tolist(), x_of, spans, strict=True):
            cls = "dots sent" if sent[at] else f"dots read {_colour(of, rows[at], ranks)}"
            lines.setdefault(cls, []).append((x, low_y, high_y))
        for cls in sorted(lines, key=lambda cls: cls != "dots sent"):
            picture.svg.strokes(frame.apart(lines[cls]), cls)
        points.append((np.array(x_of), np.array([(a + b) / 2 for a, b in spans]), rows[own]))
    data.tables.points("order", points)
    return picture.markup()


def _colour(of: Gathered, row: np.void, ranks: dict[int, int]) -> str:
    if of.fs[int(row["f"])] == _FINAL_READ:
        return colour(SERIES - 1)
    return colour(min(ranks.get(int(row["process"]), SERIES), SERIES - 1))


def order_around(data: PictureData, number_: int, frame: Frame) -> Markup:
    """Each record sent or read at the offsets of a stretch: a row for each offset, time to the right. A send
    is a bar from its invocation to its ack with the value it put there, a read a point; one that was given
    another value than was acknowledged first is red. The final read is in a column of its own."""
    of, (stretch, rows) = data.of, data.of.around[number_]
    final, sent = _of_kind(of, rows, _FINAL_READ), _of_kind(of, rows, _SEND)
    begin_ns = int(min(rows["begin"][sent], default=rows["end"].min()))
    end_ns = int(max(rows["end"][~final], default=begin_ns + 1))
    room = max((end_ns - begin_ns) // 12, 1_000_000)
    x = Scale((begin_ns - room) / 1e9, (end_ns + room // 2) / 1e9, frame.left, frame.right - _FINAL)
    moments = of_partition(data.moments, stretch.label)
    marks = Moments([one for one in moments if x.low <= one.at_ns / 1e9 <= x.high], x)
    top = 36 + marks.height
    bottom = top + _ROW * (stretch.last - stretch.first + 1)
    name = f"around-{number_}"
    svg = Svg(
        frame.width,
        bottom + 26,
        f"Sends and reads of {stretch.label} from offset {stretch.first:,} to {stretch.last:,}",
        frame.cls,
        desc=f"A row for each offset, time to the right. Findings are about {_listed(stretch.cited)}. Bars "
        "are sends with their values, points are reads; red: another value than was acknowledged first.",
        points=name,
    )
    near = [one for one in data.faults if one.begin_ns is not None and one.begin_ns / 1e9 <= x.high]
    near = [one for one in near if one.ended_ns is None or one.ended_ns / 1e9 >= x.low]
    _draw_shade(svg, near, x, top, bottom, marks.height)
    _draw_rows(svg, stretch, top, frame)
    middle = top + _ROW * (rows["offset"] - stretch.first) + _ROW / 2
    _draw_sends(svg, rows[sent], middle[sent], x, frame)
    places = np.array([x(at) for at in ((rows["begin"] + rows["end"]) / 2e9).tolist()])
    places[~sent] = [x(at) for at in (rows["end"][~sent] / 1e9).tolist()]
    places[final] = frame.right - _FINAL + 18
    acked = {int(row["offset"]): int(row["value"]) for row in rows[sent][::-1]}
    shown = {(int(row["offset"]), int(row["value"])) for row in rows[sent]}
    ranks = rank_processes(rows[~sent & ~final]["process"])
    for at in np.flatnonzero(~sent).tolist():
        offset, value = int(rows["offset"][at]), int(rows["value"][at])
        error = acked.get(offset, value) != value
        svg.circle(places[at], middle[at], 4, "differs" if error else _colour(of, rows[at], ranks))
        if final[at] or (offset, value) not in shown:
            svg.text(places[at] + 7, middle[at] + 4, value_label(value), "differing" if error else "tick")
            shown.add((offset, value))
    _draw_absent(svg, set(rows["offset"][final].tolist()), stretch, acked, top, frame)
    marks.draw(svg, top - marks.height, bottom)
    draw_time_axis(svg, x, bottom, frame, about=3 if frame is PHONE else 6, digits=3)
    data.tables.points(name, [(places, middle, rows)])
    return svg.markup()


def _of_kind(of: Gathered, rows: Table, name: str) -> Bools:
    """Returns a mask of the operations that are of a kind."""
    return np.asarray(rows["f"] == (of.fs.index(name) if name in of.fs else -1))


def _listed(offsets: Sequence[int]) -> str:
    return "offset " + ", ".join(map(number, offsets[:12])) + (" and more" if len(offsets) > 12 else "")


def _draw_shade(svg: Svg, faults: Sequence[Fault], x: Scale, top: float, bottom: float, above: float) -> None:
    """``above``: room between the names and the rows."""
    until = [0.0, 0.0]
    for fault in faults[:12]:
        left = x((fault.begin_ns or 0) / 1e9)
        right = max(x(fault.ended_ns / 1e9) if fault.ended_ns is not None else x(x.high), left + 3)
        svg.rect(left, top - 8, right - left, bottom - top + 8, f"band f-{fault.kind}", tip=fault_tip(fault))
        row = 0 if left >= until[0] else 1
        if left >= until[row] and left + text_width(fault.label) < x.end + _FINAL:
            svg.text(left + 2, top - above - 22 + 13 * row, fault.label, f"fault-name f-{fault.kind}")
            until[row] = left + text_width(fault.label) + 8


def _draw_rows(svg: Svg, stretch: Stretch, top: float, frame: Frame) -> None:
    for offset in range(stretch.first, stretch.last + 1):
        y = top + _ROW * (offset - stretch.first)
        cited = offset in stretch.cited
        svg.text(frame.left - 8, y + 13, number(offset), "at-offset" if cited else "tick", anchor="end")
        svg.line(frame.left, y + _ROW, frame.right, y + _ROW, "lane")
    edge = frame.right - _FINAL
    svg.line(edge, top - 8, edge, top + _ROW * (stretch.last - stretch.first + 1), "axis")
    svg.text(edge + 6, top - 10, "final read", "tick")


def _draw_sends(svg: Svg, sends: Table, middle: NDArray[np.float64], x: Scale, frame: Frame) -> None:
    for row, y in zip(sends, middle.tolist(), strict=True):
        left, right = x(row["begin"] / 1e9), x(row["end"] / 1e9)
        svg.rect(left, y - _ROW / 2 + 3, max(right - left, 3), _ROW - 6, "op o-ok", rx=2)
        label = value_label(int(row["value"]))
        if left - text_width(label) - 6 > x.start:
            svg.text(left - 5, y + 4, label, "tick", anchor="end")
        elif frame is not PHONE:  # there it would lie on the reads
            svg.text(max(right, left + 3) + 8, y + 4, label, "tick")


def _draw_absent(
    svg: Svg, there: set[int], stretch: Stretch, acked: dict[int, int], top: float, frame: Frame
) -> None:
    """Acknowledged offsets of findings that the final read (of the offsets ``there``) passed over."""
    for offset in stretch.cited if there else ():
        if offset in acked and offset not in there:
            y = top + _ROW * (offset - stretch.first) + _ROW / 2
            svg.circle(frame.right - _FINAL + 18, y, 4.5, "absent")
            svg.text(frame.right - _FINAL + 27, y + 4, "not there", "differing")
