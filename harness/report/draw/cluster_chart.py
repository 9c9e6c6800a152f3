"""The leaders of each partition, drawn over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup

from wrackline.checkers.inputs.cluster_history import LeaderSpan, Recovery
from wrackline.harness.report.draw.over_time import OverTime
from wrackline.harness.report.read.faults import CONTROLLER, Fault
from wrackline.harness.report.read.moments import Moment
from wrackline.history.wording import seconds, shorten
from wrackline.pages.frame import Frame
from wrackline.pages.svg import Scale, Svg, letters_in, text_width

_PARTITIONS_DRAWN: Final = 24
_SPANS_DRAWN: Final = 200
_MARKS_DRAWN: Final = 40


def cluster_chart(
    spans: Mapping[str, Sequence[LeaderSpan]],
    nodes: Sequence[str],
    faults: Sequence[Fault],
    extent_ns: int,
    recoveries: Sequence[Recovery],
    moments: Sequence[Moment],
    frame: Frame,
) -> Markup:
    """One lane per partition: the colour is the leader, the height the share of replicas in the ISR, with
    those of the ELR hatched on top; a mark where a leader was elected uncleanly, and the moments of
    incidents. One lane above them for the active controller, where there were several."""
    lane = 30
    shown = list(spans.items())[:_PARTITIONS_DRAWN]
    label = "Leader and in-sync replicas of each partition over time"
    height = lane * len(shown) + 2
    picture = OverTime(label, "", faults, extent_ns, [height], frame, moments=moments, above=8)
    svg, x = picture.svg, picture.x
    for position, (label, own) in enumerate(shown):
        top = picture.tops[0] + position * lane
        svg.text(frame.left - 8, top + 17, shorten(label, letters_in(frame.left - 8)), "tick", anchor="end")
        for span in own[-_SPANS_DRAWN:]:
            _draw_span(svg, span, nodes, x, top, lane - 6)
        _draw_names(svg, own[-_SPANS_DRAWN:], x, top + lane - 10)
        for recovery in [one for one in recoveries if one.label == label][:_MARKS_DRAWN]:
            _draw_recovery(svg, recovery, x, top, lane - 6)
    return picture.markup()


def _draw_span(
    svg: Svg,
    span: LeaderSpan,
    nodes: Sequence[str],
    x: Scale,
    top: float,
    height: float,
) -> None:
    left, right = x(span.begin_ns / 1e9), x(span.end_ns / 1e9)
    if span.leader is None:
        svg.rect(left, top, right - left, height, "no-leader")
        svg.rect(left, top, right - left, height, "hatch")
    else:
        colour = f"node-{nodes.index(span.leader) % 8}" if span.leader in nodes else "node-7"
        every = max(len(span.replicas), 1)
        share, eligible = min(len(span.isr) / every, 1.0), min(len({*span.isr, *span.elr}) / every, 1.0)
        svg.rect(left, top, right - left, height, f"{colour} pale")
        svg.rect(left, top + height * (1 - share), right - left, height * share, colour)
        if eligible > share:
            svg.rect(left, top + height * (1 - eligible), right - left, height * (eligible - share), "hatch")
    svg.rect(left, top, right - left, height, "hit", tip=span_tip(span))


def _draw_names(svg: Svg, spans: Sequence[LeaderSpan], x: Scale, y: float) -> None:
    """Writes the leader's name once for each time that one leader led in one epoch, on the longest span in
    it, where the name has room."""
    for (leader, epoch), group in groupby(spans, key=lambda span: (span.leader, span.leader_epoch)):
        longest = max(group, key=lambda span: span.end_ns - span.begin_ns)
        left, right = x(longest.begin_ns / 1e9), x(longest.end_ns / 1e9)
        name = f"{leader or 'none'}{'' if epoch is None else f' e{epoch}'}"
        if right - left > text_width(name) + 6:
            svg.text(left + 4, y, name, "span-name")


def _draw_recovery(svg: Svg, recovery: Recovery, x: Scale, top: float, height: float) -> None:
    place = x(recovery.at_ns / 1e9)
    svg.line(place, top - 3, place, top + height + 3, "unclean")
    svg.circle(place, top - 3, 3.5, "unclean" if recovery.winner else "unclean asked")
    who = f"{recovery.winner} leads" if recovery.winner else "nobody leads"
    tip = "\n".join(
        line
        for line in (
            f"{recovery.label}, {seconds(recovery.at_ns)}: unclean recovery, {who}",
            f"strategy {recovery.strategy}" if recovery.strategy else "",
            recovery.why,
            recovery.logs,
        )
        if line
    )
    svg.rect(place - 5, top - 6, 10, height + 9, "hit", tip=tip)


def span_tip(span: LeaderSpan) -> str:
    if span.topic == CONTROLLER:
        when = f"{seconds(span.begin_ns)} to {seconds(span.end_ns)}"
        return f"active controller, {when}\n{span.leader or 'none that a majority names'}"
    epochs = [
        f"{name} epoch {epoch}"
        for name, epoch in (("leader", span.leader_epoch), ("partition", span.partition_epoch))
        if epoch is not None
    ]
    epoch = f" ({', '.join(epochs)})" if epochs else ""
    leader = f"leader {span.leader}{epoch}" if span.leader is not None else "no leader"
    elr = f", ELR {' '.join(span.elr)}" if span.elr else ""
    recovering = "\nelected uncleanly, has not taken over yet" if span.recovering else ""
    return (
        f"{span.topic}-{span.partition}, {seconds(span.begin_ns)} to {seconds(span.end_ns)}\n{leader}\n"
        f"ISR {' '.join(span.isr) or 'empty'} of {' '.join(span.replicas)}{elr}{recovering}"
    )
