"""The moments of an incident: when a log was cut, and when who led afterwards took over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wrackline.checkers.findings import Meaning
from wrackline.history.json_values import mapping, rows, whole

CUT: Final = "cut"
LEADER: Final = "leader"
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
        return f"{self.node} {self.kind} at {self.at_ns / 1e9:,.1f} s".strip()


def moments_of(verdict: Mapping[str, Any] | None) -> tuple[Moment, ...]:
    """Of the first incidents that break the contract, in the order of time."""
    breaking = [one for one in rows(verdict, "incidents") if one.get("meaning") in _BREAKING]
    found = [moment for one in breaking[:_OF_INCIDENTS] for moment in _of_incident(one)]
    return tuple(sorted(found, key=lambda moment: moment.at_ns))


def _of_incident(incident: Mapping[str, Any]) -> list[Moment]:
    """Cuts and leaders; those that the judge has told, or else what its other values tell."""
    told = incident.get("moments")
    found = rows(incident, "moments") if isinstance(told, list) else list(_derived(incident))
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
        for one in found
        if (at_ns := whole(one, "at_ns")) is not None and one.get("kind") in (CUT, LEADER)
    ]
    return sorted(moments, key=lambda moment: moment.at_ns)[:DRAWN]


def _derived(incident: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """As verdicts of an older judge have it."""
    name = f"{incident.get('topic')}-{incident.get('partition')}"
    for one in rows(incident, "truncations"):
        words = f"{one.get('node')} cut {name} from {_number(one, 'was')} to {_number(one, 'to')}"
        yield {"at_ns": one.get("at_ns"), "node": one.get("node"), "kind": CUT, "words": words}
    after = mapping(incident, "leader_after")
    if leader := after.get("leader"):
        words = f"{leader} became leader of {name}"
        yield {"at_ns": after.get("since_ns"), "node": leader, "kind": LEADER, "words": words}


def _number(row: Mapping[str, Any], key: str) -> str:
    value = whole(row, key)
    return "?" if value is None else f"{value:,}"


def of_partition(moments: Iterable[Moment], partition: str) -> tuple[Moment, ...]:
    return tuple(moment for moment in moments if moment.partition == partition)
