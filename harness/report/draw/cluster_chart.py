"""Who led each partition, drawn over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from wrackline.harness.report.draw.run_chart import (
    FAULTS_DRAWN,
    LANE,
    LEFT,
    RIGHT,
    WIDTH,
    draw_fault_bands,
    draw_fault_lanes,
    draw_time_axis,
    pack_faults,
)
from wrackline.harness.report.draw.svg import Scale, Svg, text_width
from wrackline.harness.report.read.cluster import CONTROLLER, LeaderSpan, Recovery
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.text import seconds, shorten

_PARTITIONS_DRAWN: Final = 24
_SPANS_DRAWN: Final = 200
_MARKS_DRAWN: Final = 40


def cluster_chart(
    spans: Mapping[str, Sequence[LeaderSpan]],
    nodes: Sequence[str],
    faults: Sequence[Fault],
    extent_ns: int,
    recoveries: Sequence[Recovery] = (),
) -> Markup:
    """One lane per partition: the colour is the leader, the height the share of replicas in the ISR, with
    those of the ELR hatched on top; a mark where a leader was elected uncleanly. One lane above them for the
    active controller, where there were several."""
    lane = 30
    x = Scale(0, max(extent_ns / 1e9, 1.0), LEFT, RIGHT)
    shown = list(spans.items())[:_PARTITIONS_DRAWN]
    drawn_faults = faults[:FAULTS_DRAWN]
    lanes = pack_faults(drawn_faults, x)
    above = 4 + LANE * (max(lanes.values(), default=-1) + 1) + 8
    bottom = above + lane * len(shown) + 2
    svg = Svg(WIDTH, bottom + 30, "Leader and in-sync replicas of each partition over time", "wide")
    draw_fault_bands(svg, drawn_faults, x, above - 6, bottom)
    for position, (label, own) in enumerate(shown):
        top = above + position * lane
        svg.text(LEFT - 8, top + 17, shorten(label, 11), "tick", anchor="end")
        for before, span in pairwise([None, *own[-_SPANS_DRAWN:]]):
            if span is not None:
                _draw_span(svg, span, before, nodes, x, top, lane - 6)
        for recovery in [one for one in recoveries if one.label == label][:_MARKS_DRAWN]:
            _draw_recovery(svg, recovery, x, top, lane - 6)
    draw_fault_lanes(svg, drawn_faults, lanes, x, 4)
    draw_time_axis(svg, x, bottom)
    return svg.markup()


def _draw_span(
    svg: Svg,
    span: LeaderSpan,
    before: LeaderSpan | None,
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
    epoch = "" if span.leader_epoch is None else f" e{span.leader_epoch}"
    name = f"{span.leader or 'none'}{epoch}"
    fresh = before is None or (before.leader, before.leader_epoch) != (span.leader, span.leader_epoch)
    if fresh and right - left > text_width(name) + 6:
        svg.text(left + 4, top + height - 4, name, "bar-name")
    svg.rect(left, top, right - left, height, "hit", tip=span_tip(span))


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
