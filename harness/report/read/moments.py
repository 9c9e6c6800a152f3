"""The moments of incidents that pictures mark: when a log was cut, when its new leader took over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wrackline.checkers.findings import Meaning
from wrackline.checkers.verdict.incidents.moments import Kind
from wrackline.checkers.verdict.wording import seconds
from wrackline.history.json_values import rows, whole

LABELS: Final = {
    Kind.SEEN: "last seen",
    Kind.CUT: "cut",
    Kind.LEADER: "leader",
    Kind.LOST: "lost bytes",
    Kind.DAMAGED: "files damaged",
}
"""The kinds that pictures mark; the incident's sentences tell of the others."""
DRAWN: Final = 6
"""Moments of one incident in a picture."""
_OF_INCIDENTS: Final = 3
_BREAKING: Final = (Meaning.VIOLATION, Meaning.EXPECTED)


@dataclass(frozen=True, slots=True)
class Moment:
    at_ns: int
    node: str
    kind: str
    words: str
    """What happened, in one sentence without a full stop."""
    incident: str
    partition: str

    @property
    def label(self) -> str:
        """``n3 cut at 11.1 s``, ``n3 leader at 14.7 s``."""
        return f"{self.node} {LABELS[Kind(self.kind)]} at {seconds(self.at_ns)}".strip()


def moments_of(verdict: Mapping[str, Any] | None) -> tuple[Moment, ...]:
    """Returns the moments of the first incidents that break the contract, in the order of time."""
    breaking = [one for one in rows(verdict, "incidents") if one.get("meaning") in _BREAKING]
    result = [moment for one in breaking[:_OF_INCIDENTS] for moment in _of_incident(one)]
    return tuple(sorted(result, key=lambda moment: moment.at_ns))


def _of_incident(incident: Mapping[str, Any]) -> list[Moment]:
    name, partition = str(incident.get("id", "?")), f"{incident.get('topic')}-{incident.get('partition')}"
    moments = [
        Moment(
            at_ns,
            str(one.get("node") or ""),
            str(one.get("kind", "?")),
            str(one.get("words") or ""),
            name,
            partition,
        )
        for one in rows(incident, "moments")
        if (at_ns := whole(one, "at_ns")) is not None and one.get("kind") in list(LABELS)
    ]
    return sorted(moments, key=lambda moment: moment.at_ns)[:DRAWN]


def of_partition(moments: Iterable[Moment], partition: str) -> tuple[Moment, ...]:
    return tuple(moment for moment in moments if moment.partition == partition)
