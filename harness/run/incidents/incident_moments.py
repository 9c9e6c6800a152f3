"""The moments of an incident that the nodes' files and the faults show."""

from __future__ import annotations

from collections.abc import Iterator

from wrackline.checkers.verdict.incidents.moments import Kind, Moment
from wrackline.harness.run.incidents.mechanisms import Evidence, followed_ns, struck


def moments_of(evidence: Evidence) -> Iterator[Moment]:
    """Yields the moments of an incident by the nodes' lines and the faults, in no order. What has no known
    time is left out."""
    incident = evidence.incident
    name = f"{incident['topic']}-{incident['partition']}"
    for cut in evidence.cuts:
        if cut.known_ns is not None and cut.end is not None:
            yield Moment(cut.known_ns, cut.host, Kind.CUT, f"{cut.host} cut {name} at {cut.end:,}")
    leader, taken_over = evidence.leader, evidence.taken_over_ns
    if incident["at_ns"] is None and leader is not None and taken_over is not None:
        yield Moment(taken_over, leader, Kind.LEADER, f"{leader} leads {name}")
    before, followed = evidence.before.get("leader"), followed_ns(evidence)
    if before is not None and followed is not None:
        yield Moment(followed, before, Kind.FOLLOWS, f"{before} follows {leader}")
    yield from _moments_of_faults(evidence)


def _moments_of_faults(evidence: Evidence) -> Iterator[Moment]:
    spans = (evidence.before, evidence.incident.get("leader_after") or {})
    replicas = {evidence.leader, *(host for span in spans for host in span.get("replicas", ()))}
    last_of_leader = evidence.lost_bytes(evidence.leader)
    for fault in evidence.faults:
        if fault.get("id") not in evidence.incident.get("faults", ()) and fault is not last_of_leader:
            continue
        words = ((Kind.LOST, "lossy", "lost unsynced bytes"), (Kind.DAMAGED, "damaged", "has changed files"))
        for kind, key, what in words:
            for host in fault[key]:
                if host in replicas:
                    yield Moment(struck(fault), host, kind, f"{host} {what}")
