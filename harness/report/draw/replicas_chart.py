"""The log of an incident on each replica, as bars along its offsets: what each kept, and what each cut.
Kafka's own proposals draw it so (KIP-101)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from wrackline.harness.report.read.replicas import Replica, ReplicaLogs
from wrackline.history.wording import number, plural
from wrackline.pages.frame import PHONE, Frame, LabelRows
from wrackline.pages.svg import Svg, text_width

_BAR: Final = 18
_TOP: Final = 36
_WORDS: Final = 400
"""Room for what a replica did, to the right of its bar."""
_REPLICAS_DRAWN: Final = 12


def replicas_chart(logs: ReplicaLogs, frame: Frame) -> Markup:
    """A row for each replica. Every offset at which a log was cut, or had ended until then, has the same
    distance from the next: the drawing is not to scale."""
    shown = logs.replicas[:_REPLICAS_DRAWN]
    phone = frame is PHONE
    row = _BAR + (30 if phone else 8)
    right = frame.right if phone else frame.right - _WORDS
    x = _places(logs, shown, frame.left, right)
    bottom = _TOP + row * len(shown)
    svg = Svg(
        frame.width,
        bottom + 2,
        f"The log of {logs.partition} on each replica",
        frame.cls,
        desc=" ".join(f"{replica.node}: {', '.join(_words(replica)) or 'not cut'}." for replica in shown),
    )
    begin, end = x[logs.first], x[logs.end]
    svg.rect(begin, 18, end - begin, bottom - 20, "lost-band")
    last = "" if logs.end == logs.first + 1 else f" to {number(logs.end - 1)}"
    lost = f"lost: {number(logs.first)}{last}"
    anchored = max(min((begin + end) / 2, right - text_width(lost) / 2), frame.left + text_width(lost) / 2)
    svg.text(anchored, 12, lost, "moment-name", anchor="middle")
    _draw_offsets(svg, x, logs, frame)
    for at, replica in enumerate(shown):
        _draw_replica(svg, replica, logs, x, _TOP + at * row, frame, right)
    return svg.markup()


def _places(logs: ReplicaLogs, shown: Sequence[Replica], left: float, right: float) -> dict[int, float]:
    """Offset -> where it is. What comes before the first one is as long as what comes between two."""
    cuts = [replica.cut for replica in shown if replica.cut is not None]
    offsets = sorted({logs.first, logs.end, *(cut.to for cut in cuts), *(cut.was for cut in cuts)})
    step = (right - left) / (len(offsets) + 0.3)
    return {offset: left + step * (at + 1) for at, offset in enumerate(offsets)}


def _draw_offsets(svg: Svg, x: dict[int, float], logs: ReplicaLogs, frame: Frame) -> None:
    """The lost ones have their numbers first, the others where there is room."""
    rows = LabelRows(0)
    for offset in sorted(x, key=lambda one: (one not in (logs.first, logs.end), one)):
        room = text_width(number(offset)) / 2 + 3
        place = min(x[offset], frame.right - room)
        if rows.place(place - room, place + room) == 0:
            svg.text(place, 30, number(offset), "tick", anchor="middle")


def _draw_replica(
    svg: Svg, replica: Replica, logs: ReplicaLogs, x: dict[int, float], top: float, frame: Frame, right: float
) -> None:
    cut, words = replica.cut, _words(replica)
    tip = f"{replica.node}: {'; '.join(words) or 'not cut'}"
    kept = x[cut.to] if cut is not None else right
    svg.text(frame.left - 8, top + 13, replica.node, "witness-name", anchor="end")
    svg.rect(frame.left, top, kept - frame.left, _BAR, "kept", tip=tip)
    if cut is not None:
        for begin, end in pairwise(sorted({cut.to, cut.was, *(one for one in x if cut.to < one < cut.was)})):
            lost = logs.first <= begin < logs.end
            svg.rect(x[begin], top, x[end] - x[begin], _BAR, "cut-lost" if lost else "cut-else", tip=tip)
        svg.line(kept, top - 3, kept, top + _BAR + 3, "moment")
    if frame is PHONE:
        svg.text(frame.left, top + _BAR + 13, "; ".join(words), "tick")
    else:
        svg.text(right + 12, top + 13, "; ".join(words), "tick")


def _words(replica: Replica) -> list[str]:
    cut = replica.cut
    told = []
    if cut is not None:
        told.append((cut.at_ns, f"cut from {number(cut.was)} to {number(cut.to)} at {_at(cut.at_ns)}"))
    if replica.led_until_ns is not None:
        told.append((replica.led_until_ns, f"led until {_at(replica.led_until_ns)}"))
    if replica.leads_from_ns is not None:
        told.append((replica.leads_from_ns, f"leader at {_at(replica.leads_from_ns)}"))
    more = [f"{plural(replica.more_cuts, 'more cut')}"] if replica.more_cuts else []
    return [words for _, words in sorted(told)] + more


def _at(at_ns: int) -> str:
    return f"{at_ns / 1e9:,.1f} s"
