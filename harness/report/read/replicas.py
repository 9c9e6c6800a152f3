"""The replicas of an incident's log: how far each had it, and what each cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wrackline.history.json_values import mapping, rows, texts, whole


@dataclass(frozen=True, slots=True)
class Cut:
    """The log went on to ``was``, and ends at ``to`` since."""

    at_ns: int
    to: int
    was: int


@dataclass(frozen=True, slots=True)
class Replica:
    node: str
    cut: Cut | None
    """The first that took lost records; where none did, the first there is."""
    more_cuts: int
    led_until_ns: int | None
    leads_from_ns: int | None


@dataclass(frozen=True, slots=True)
class ReplicaLogs:
    partition: str
    first: int
    """Offset of the first lost record."""
    end: int
    """Behind the last one."""
    replicas: tuple[Replica, ...]


def replica_logs(incident: Mapping[str, Any]) -> ReplicaLogs | None:
    """Returns the replicas' logs in an incident; None where no node is known to have cut records that are
    lost."""
    first, last = whole(incident, "first_offset"), whole(incident, "last_offset")
    if first is None or last is None:
        return None
    cuts: dict[str, list[Cut]] = {}
    for row in rows(incident, "truncations"):
        at_ns, to, was = whole(row, "at_ns"), whole(row, "to"), whole(row, "was")
        if at_ns is not None and to is not None and was is not None and to < was:
            cuts.setdefault(str(row.get("node", "?")), []).append(Cut(at_ns, to, was))
    if not any(_takes(cut, first, last) for own in cuts.values() for cut in own):
        return None
    before, after = mapping(incident, "leader_before"), mapping(incident, "leader_after")
    changed = whole(after, "since_ns")
    nodes = sorted({*cuts, *texts(before, "replicas"), *texts(after, "replicas")})
    return ReplicaLogs(
        f"{incident.get('topic')}-{incident.get('partition')}",
        first,
        last + 1,
        tuple(
            Replica(
                node,
                _chosen(cuts.get(node, ()), first, last),
                max(len(cuts.get(node, ())) - 1, 0),
                changed if node == before.get("leader") else None,
                changed if node == after.get("leader") else None,
            )
            for node in nodes
        ),
    )


def _takes(cut: Cut, first: int, last: int) -> bool:
    return cut.to <= last and cut.was > first


def _chosen(cuts: Sequence[Cut], first: int, last: int) -> Cut | None:
    in_time = sorted(cuts, key=lambda cut: cut.at_ns)
    return next((cut for cut in in_time if _takes(cut, first, last)), next(iter(in_time), None))
