"""Evidence of incidents of a group in the logs of its coordinators: who led the group's partition of
``__consumer_offsets``, up to where, with which high watermark, and who gave it up when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from wrackline.checkers.verdict.incidents.moments import Kind, Moment, merged
from wrackline.checkers.verdict.incidents.sentences import in_full
from wrackline.checkers.verdict.wording import seconds
from wrackline.harness.run.incidents.node_lines import Line, Tells

MOST_LINES: Final = 10
BEFORE_NS: Final = 1_000_000_000
AFTER_NS: Final = 5_000_000_000
_OF_COORDINATORS: Final = (Tells.LEADS, Tells.COORDINATES, Tells.FOLLOWS, Tells.RESIGNED, Tells.CUT)


def add_coordinators(verdict: dict[str, Any], incident: dict[str, Any], lines: Sequence[Line]) -> None:
    """Adds the lines of the coordinators around the incident, and the sentences that they make."""
    before = in_full(incident)
    own = _near(incident, lines)
    incident["lines"] = [line.to_json() for line in own]
    incident["truncations"] = []
    moments = (
        Moment(line.known_ns, line.host, Kind.LEADER, line.words)
        for line in own
        if line.known_ns is not None and line.tells in (Tells.LEADS, Tells.RESIGNED)
    )
    incident["moments"] = merged(incident.get("moments", ()), moments)
    incident["mechanism"] = [*incident["mechanism"], *_sentences(incident, own)]
    after = in_full(incident)
    verdict["reasons"] = [after if reason == before else reason for reason in verdict["reasons"]]


def _near(incident: Mapping[str, Any], lines: Sequence[Line]) -> list[Line]:
    """The lines from when all was right until some time after the last answer, the first of them."""
    begin, end = incident["first_ns"] or 0, incident["last_ns"] or 0
    own = [
        line
        for line in lines
        if line.label == incident["coordinator_log"]
        and line.tells in _OF_COORDINATORS
        and line.at_ns is not None
        and begin - BEFORE_NS <= line.at_ns <= end + AFTER_NS
    ]
    return sorted(own, key=lambda line: line.at_ns or 0)[:MOST_LINES]


def _sentences(incident: Mapping[str, Any], own: Sequence[Line]) -> Iterator[str]:
    begin, end = incident["first_ns"] or 0, incident["last_ns"] or 0
    dated = [(line.at_ns, line) for line in own if line.at_ns is not None]
    leads = [(begun, line) for begun, line in dated if line.tells is Tells.LEADS and begun <= end]
    for begun, line in leads[-1:]:
        if line.end is not None and line.watermark is not None:
            yield (
                f"{line.host} began to lead {line.label} at {seconds(begun)} with the log end offset "
                f"{line.end:,} and the high watermark {line.watermark:,}."
            )
    resigned = [(ended, line) for ended, line in dated if line.tells is Tells.RESIGNED and ended >= begin]
    for ended, line in resigned[:1]:
        yield f"{line.host} coordinated the groups of {line.label} until {seconds(ended)}."
