"""What the nodes' own files say of incidents: which replicas cut their logs, how far the log of the new
leader reached, and the lines that a person wants to see, with file and number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wrackline.checkers.verdict.anomaly import Anomaly
from wrackline.checkers.verdict.incidents.joining import INCONSISTENT_OFFSET
from wrackline.checkers.verdict.incidents.sentences import in_full, listed
from wrackline.harness.run.node_lines import Line, Tells, lines_of

MOST_LINES: Final = 6
"""Of one incident."""
BEFORE_NS: Final = 2_000_000_000
AFTER_NS: Final = 5_000_000_000
EXACT_NS: Final = 100_000_000
"""Times are known to within this where the hosts' clocks are on record."""


def add_lines(run_dir: Path, verdict: dict[str, Any], started_at: str = "") -> bool:
    """Add to each incident of a partition its ``lines`` and ``truncations``, and what they say of its
    mechanism. ``started_at``: when the run began, by our time of day, for a run that has not put down the
    hosts' clocks. Returns whether any were found. Raises OSError."""
    incidents = [one for one in verdict.get("incidents", ()) if one["topic"] is not None]
    if not incidents:
        return False
    wanted = {f"{one['topic']}-{one['partition']}" for one in incidents}
    found = list(lines_of(run_dir, wanted, started_at))
    for one in incidents:
        own = [line for line in found if line.label == f"{one['topic']}-{one['partition']}"]
        cuts = _cuts(own, one)
        takeover = _takeover(own, one)
        chosen = _chosen(own, one, [*takeover, *_loaded(own, one, takeover), *cuts])
        one["lines"] = [line.to_json() for line in chosen]
        one["truncations"] = [
            {"node": line.host, "at_ns": line.known_ns, "to": line.end, "was": line.was}
            for line in cuts[:MOST_LINES]
        ]
        _retold(verdict, one, [*_said_of_leader(one, cuts, takeover), *_said_of_others(one, cuts)])
    return any(one["lines"] for one in incidents)


def _is_near(line: Line, incident: Mapping[str, Any]) -> bool:
    begin, end = incident["first_ns"], max(incident["last_ns"] or 0, incident["at_ns"] or 0)
    if line.at_ns is None or begin is None:
        return True
    return bool(begin - BEFORE_NS <= line.at_ns <= end + AFTER_NS)


def _cuts(own: Sequence[Line], incident: Mapping[str, Any]) -> list[Line]:
    """Lines of replicas that cut off offsets of the incident, in the order of time: of each node from the
    first event that is cited until its log has none of them any more."""
    first, last = incident["first_offset"], incident["last_offset"]
    if last is None:
        return []
    is_lasting = any(_is_of_cuts(one) for one in incident["anomalies"])
    found: list[Line] = []
    done: set[str] = set()
    for line in sorted((line for line in own if line.tells is Tells.CUT), key=lambda line: line.at_ns or 0):
        if line.end is None or line.end > last or line.host in done:
            continue
        if line.was is not None and line.was <= max(first, line.end):
            continue
        if _is_before(line, incident) or not (is_lasting or _is_near(line, incident)):
            continue
        found.append(line)
        if line.end <= first:
            done.add(line.host)
    return found


def _is_of_cuts(seen: Mapping[str, Any]) -> bool:
    """Whether one replica cut off what another kept. Who was cut off or without power then learns of it when
    it is back, which may be long after."""
    found = _anomalies().get(seen["anomaly"])
    return found is not None and (
        found.is_loss or found.rests_on_replicas or found.name == INCONSISTENT_OFFSET
    )


def _anomalies() -> Mapping[str, Anomaly]:
    from wrackline.checkers.anomalies.registry import anomalies  # imports every check, which takes a second

    return anomalies()


def _takeover(own: Sequence[Line], incident: Mapping[str, Any]) -> list[Line]:
    """The line in which the new leader begins to lead, if there is one."""
    after = incident["leader_after"] or {}
    return [
        line
        for line in own
        if line.tells is Tells.LEADS
        and line.host == after.get("leader")
        and line.leader_epoch is not None
        and line.leader_epoch == after.get("leader_epoch")
    ][:1]


def _loaded(own: Sequence[Line], incident: Mapping[str, Any], takeover: Sequence[Line]) -> list[Line]:
    """The line in which the new leader had loaded its log before, where that lacked some of the records."""
    found = [
        line
        for leads in takeover
        for line in own
        if line.tells is Tells.LOADED
        and (line.host, line.file) == (leads.host, leads.file)
        and line.number < leads.number
        and _matters(line, incident)
    ]
    return found[-1:]


def _chosen(own: Sequence[Line], incident: Mapping[str, Any], first: Sequence[Line]) -> list[Line]:
    """``first``, and then what else was near: whom the controller elected before what replicas say, and lines
    near the change of leader before those far from it. Those chosen are in the order of time."""
    at = incident["at_ns"] or incident["last_ns"] or 0
    cutting = {line.host for line in first if line.tells is Tells.CUT}
    order = [Tells.ELECTED, Tells.BELOW, Tells.CUTS, Tells.LOADED, Tells.LEADS, Tells.FOLLOWS]
    others = [
        line
        for line in own
        if line.tells in order
        and (line.tells not in (Tells.BELOW, Tells.CUTS) or line.host in cutting)
        and line not in first
        and _is_near(line, incident)
        and _matters(line, incident)
    ]
    others.sort(key=lambda line: (order.index(line.tells), abs((line.at_ns or at) - at)))
    chosen = [*first, *_once(others)][:MOST_LINES]
    return sorted(chosen, key=lambda line: (line.at_ns or at, line.file, line.number))


def _once(lines: Sequence[Line]) -> Iterator[Line]:
    """An election is told by one controller: the others of the quorum repeat it, word for word."""
    told: set[str] = set()
    for line in lines:
        words = line.text.partition("] UNCLEAN ")[2] if line.tells is Tells.ELECTED else ""
        if words not in told:
            yield line
        told |= {words} if words else set()


def _matters(line: Line, incident: Mapping[str, Any]) -> bool:
    """Whether a log that ends there, or is to, lacks offsets that the incident is about, and which it could
    have had."""
    if line.tells not in (Tells.BELOW, Tells.CUTS, Tells.LOADED) or line.end is None:
        return True
    last = incident["last_offset"]
    return last is not None and line.end <= last and not _is_before(line, incident)


def _is_before(line: Line, incident: Mapping[str, Any]) -> bool:
    """Whether there was none of what the incident is about yet."""
    begin, slack = incident["first_ns"], EXACT_NS if line.is_exact else BEFORE_NS
    return line.at_ns is not None and begin is not None and line.at_ns < begin - slack


def _said_of_leader(incident: Mapping[str, Any], cuts: Sequence[Line], takeover: Sequence[Line]) -> list[str]:
    """Why the new leader lacked the records: it had cut them off, or its log ended before them."""
    leader, at, last = _leader(incident), incident["at_ns"], incident["last_offset"]
    own = [line for line in cuts if line.host == leader and line.known_ns is not None]
    before = [line for line in own if at is None or (line.known_ns or 0) <= at + AFTER_NS]
    if before:
        cut = before[-1]
        ended = "" if cut.was is None else f"from offset {cut.was:,} "
        return [f"{leader} had cut its log {ended}to {cut.end:,} at {(cut.known_ns or 0) / 1e9:,.3f} s."]
    for line in takeover:
        if line.end == 0:
            return [f"The log of {leader} was empty when it took over."]
        if line.end is not None and last is not None and line.end <= last:
            return [f"The log of {leader} ended before offset {line.end:,} when it took over."]
    return []


def _said_of_others(incident: Mapping[str, Any], cuts: Sequence[Line]) -> list[str]:
    """How far the other replicas have cut their logs."""
    ends: dict[str, int] = {}
    for line in cuts:
        if line.host != _leader(incident) and line.end is not None:
            ends[line.host] = min(ends.get(line.host, line.end), line.end)
    said = []
    for end in sorted(set(ends.values())):
        hosts = sorted(host for host, own in ends.items() if own == end)
        have_cut = "has cut its log" if len(hosts) == 1 else "have cut their logs"
        said.append(f"{listed(hosts)} {have_cut} to {end:,}.")
    return said


def _leader(incident: Mapping[str, Any]) -> object:
    return (incident["leader_after"] or {}).get("leader")


def _retold(verdict: dict[str, Any], incident: dict[str, Any], said: Sequence[str]) -> None:
    """What was found is part of how it came about."""
    before = in_full(incident)
    incident["mechanism"] = [*incident["mechanism"], *said]
    now = in_full(incident)
    verdict["reasons"] = [now if reason == before else reason for reason in verdict["reasons"]]
