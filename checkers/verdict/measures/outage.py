"""Outages: the times for which partitions could not be written while faults were in force. Clients sent
records then, and none was acknowledged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.measures.metrics import Figures
from wrackline.checkers.verdict.wording import partition_name, seconds

LEAST_NS: Final = 1_000_000_000
"""A shorter time is the pace of the load, or of one request."""
FAR_LONGER: Final = 2
"""A partition that was not written for so many times as long as all of them is told too."""
Span = tuple[int, int]


def outage(run: Run, figures: Figures) -> str:
    """Describes the longest outage: ``no partition could be written for 7.3 s``, ``log-1 could not be
    written for 7.3 s``, or both; empty where none lasted a second."""
    spans = _spans(run, figures)
    if not spans:
        return ""
    place, longest = max(((place, _longest(own)) for place, own in spans.items()), key=lambda found: found[1])
    common = _longest(_common([spans.get(one, []) for one in run.places])) if len(run.places) > 1 else 0
    name, alone = partition_name(place), seconds(longest)
    if longest < LEAST_NS:
        return ""
    if common < LEAST_NS:
        return f"{name} could not be written for {alone}"
    if longest < FAR_LONGER * common:
        return f"no partition could be written for {seconds(common)}"
    return f"{name} could not be written for {alone}, and no partition for {seconds(common)}"


def _spans(run: Run, figures: Figures) -> Mapping[Place, list[Span]]:
    """Returns the longest times without an acknowledgement, one for each fault, of each partition to which
    records were sent in vain while faults were in force."""
    begin, end = phases.clients_at_work(run)
    faulty = phases.faulty_segments(run)
    in_vain = {
        place
        for (place, segment), one in figures.written.items()
        if segment in faulty and one.tried > one.acked
    }
    result: dict[Place, list[Span]] = {}
    for (_, place), (last, first, _) in figures.gaps.items():
        if place in in_vain:
            span = (begin if last is None else last, end if first is None else first)
            result.setdefault(place, []).append(span)
    return result


def _longest(spans: Sequence[Span]) -> int:
    return max((end - begin for begin, end in spans), default=0)


def _common(of_places: Sequence[Sequence[Span]]) -> list[Span]:
    """The times that lie within a span of each partition."""
    common = list(of_places[0])
    for spans in of_places[1:]:
        both = ((max(one[0], other[0]), min(one[1], other[1])) for one in common for other in spans)
        common = [(begin, end) for begin, end in both if begin < end]
    return common
