"""Evidence of incidents in the nodes' own files: which replicas cut their logs, how far the log of the new
leader reached, and the lines that a person wants to see, with file and number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from wrackline.checkers.verdict.anomaly import Anomaly
from wrackline.checkers.verdict.incidents.joining import INCONSISTENT_OFFSET
from wrackline.checkers.verdict.incidents.moments import Kind, Moment, merged
from wrackline.checkers.verdict.incidents.sentences import Gone, capital, in_full
from wrackline.checkers.verdict.wording import listed, seconds
from wrackline.harness.run.incidents.coordinator_lines import add_coordinators
from wrackline.harness.run.incidents.incident_moments import moments_of
from wrackline.harness.run.incidents.loss import How, how_of
from wrackline.harness.run.incidents.mechanisms import KEPT, Evidence, Told, cut_back, told_of
from wrackline.harness.run.incidents.node_lines import Line, Tells, lines_of

MOST_LINES: Final = 10
"""Of one incident."""
BEFORE_NS: Final = 2_000_000_000
AFTER_NS: Final = 5_000_000_000
EXACT_NS: Final = 100_000_000
"""Times are known to within this where the hosts' clocks are on record."""


def add_lines(
    run_dir: Path,
    verdict: dict[str, Any],
    started_at: str = "",
    nodes: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Add to each incident of a partition its ``lines`` and ``truncations``, and what they say of its
    mechanism. ``started_at``: when the run began, by our time of day, for a run that has not put down the
    hosts' clocks. ``nodes``: the host of each id. Returns whether any were found. Raises OSError."""
    incidents = [one for one in verdict.get("incidents", ()) if one["topic"] is not None]
    if not incidents:
        return False
    from wrackline.checkers.checks.registry import anomalies  # imports every check, which takes a second

    known = anomalies()
    expected = {f"{one['topic']}-{one['partition']}" for one in incidents}
    expected |= {one["coordinator_log"] for one in incidents if one.get("coordinator_log")}
    result = list(lines_of(run_dir, expected, started_at))
    for one in incidents:
        if one.get("coordinator_log"):
            add_coordinators(verdict, one, result)
            continue
        own = [line for line in result if line.label == f"{one['topic']}-{one['partition']}"]
        seen = [known[each["anomaly"]] for each in one["anomalies"] if each["anomaly"] in known]
        cuts = _cuts(own, one, is_lasting=any(_is_of_cuts(each) for each in seen))
        takeover = _takeover(own, one, is_loss=bool(seen) and all(each.is_loss for each in seen))
        of_leader = [] if takeover is None else [takeover, *_loaded(own, one, takeover)]
        left = list(_left_unclean(result, one, nodes))
        chosen = _chosen(own, one, [*of_leader, *(line for _, *lines in left for line in lines), *cuts])
        one["lines"] = [line.to_json() for line in chosen]
        one["truncations"] = [
            {"node": line.host, "at_ns": line.known_ns, "to": line.end, "was": line.was}
            for line in cuts[:MOST_LINES]
        ]
        leader = (one["leader_after"] or {}).get("leader") if takeover is None else takeover.host
        evidence = Evidence(one, own, cuts, takeover, verdict.get("faults", ()))
        registered = [
            Moment(when, host, Kind.UNCLEAN, f"{host} registers after an unclean shutdown")
            for host, line, _ in left
            if (when := line.known_ns) is not None
        ]
        one["moments"] = merged(one.get("moments", ()), [*moments_of(evidence), *registered])
        told = told_of(evidence)
        how = how_of(evidence, told) if one.get("gone") else How()
        said = [
            *_said_of_unclean(result, left),
            *(each.sentence for each in told.values() if each.sentence),
            *_said_of_leader(evidence, leader, is_told=bool(how.clause or KEPT in told)),
            *_said_of_epochs(own, takeover),
            *_said_of_ends(own, takeover),
            *_said_of_others(leader, cuts),
        ]
        _retold(verdict, one, said, how, list(told.values()))
    return any(one["lines"] for one in incidents)


def _is_near(line: Line, incident: Mapping[str, Any]) -> bool:
    begin, end = incident["first_ns"], max(incident["last_ns"] or 0, incident["at_ns"] or 0)
    if line.at_ns is None or begin is None:
        return True
    return bool(begin - BEFORE_NS <= line.at_ns <= end + AFTER_NS)


def _is_of_cuts(anomaly: Anomaly) -> bool:
    """Tells whether the anomaly is that one replica cut off what another kept. Who was cut off or without
    power then learns of it when it is back, which may be long after."""
    return anomaly.is_loss or anomaly.rests_on_replicas or anomaly.name == INCONSISTENT_OFFSET


def _cuts(own: Sequence[Line], incident: Mapping[str, Any], *, is_lasting: bool) -> list[Line]:
    """Lines of replicas that cut off offsets of the incident, in the order of time: of each node from the
    first event that is cited until its log has none of them any more. ``is_lasting``: however long after."""
    first, last = incident["first_offset"], incident["last_offset"]
    if last is None:
        return []
    result: list[Line] = []
    done: set[str] = set()
    for line in sorted((line for line in own if line.tells is Tells.CUT), key=lambda line: line.at_ns or 0):
        if line.end is None or line.end > last or line.host in done:
            continue
        if line.was is not None and line.was <= max(first, line.end):
            continue
        if _is_before(line, incident) or not (is_lasting or _is_near(line, incident)):
            continue
        result.append(line)
        if line.end <= first:
            done.add(line.host)
    return result


def _takeover(own: Sequence[Line], incident: Mapping[str, Any], *, is_loss: bool) -> Line | None:
    """The line in which the new leader begins to lead, if there is one. ``is_loss``: the incident is one and
    nothing else."""
    leads = [line for line in own if line.tells is Tells.LEADS and line.leader_epoch is not None]
    after = incident["leader_after"]
    if after is None:
        return _first_without(leads, incident) if is_loss else None
    expected = after.get("leader"), after.get("leader_epoch")
    return next((line for line in leads if (line.host, line.leader_epoch) == expected), None)


def _first_without(leads: Sequence[Line], incident: Mapping[str, Any]) -> Line | None:
    """Returns the first to lead after the records were last seen whose log has none of them, where the leader
    changed more than once. Whoever led between had them all."""
    seen, first, last = incident["last_ns"], incident["first_offset"], incident["last_offset"]
    if seen is None or first is None:
        return None
    for line in sorted(leads, key=lambda line: line.known_ns or 0):
        if line.known_ns is None or line.end is None or (line.known_ns >= seen and first < line.end <= last):
            return None
        if line.known_ns >= seen and line.end <= first:
            return line
    return None


def _loaded(own: Sequence[Line], incident: Mapping[str, Any], takeover: Line) -> list[Line]:
    """The line in which the new leader had loaded its log before, where that lacked some of the records."""
    result = [
        line
        for line in own
        if line.tells is Tells.LOADED
        and (line.host, line.file) == (takeover.host, takeover.file)
        and line.number < takeover.number
        and _matters(line, incident)
    ]
    return result[-1:]


def _left_unclean(
    found: Sequence[Line], incident: Mapping[str, Any], nodes: Mapping[str, str]
) -> Iterator[tuple[str, Line, Line]]:
    """(host, the line that calls its shutdown unclean, the line in which it registers) of those who could
    have led, in the order of time: therefore they left the ELR."""
    before, change_ns = incident.get("leader_before") or {}, incident["at_ns"]
    could = {before.get("leader"), *before.get("isr", ()), *before.get("elr", ())}
    brokers = [line for line in found if line.broker is not None and line.at_ns is not None]
    for line, after in pairwise(brokers):
        host = nodes.get(str(line.broker))
        pair = (line.tells, after.tells, after.broker) == (Tells.UNCLEAN, Tells.REGISTERS, line.broker)
        if not pair or host is None or host not in could or not _is_near(line, incident):
            continue
        if change_ns is None or (line.at_ns or 0) <= change_ns + (EXACT_NS if line.is_exact else BEFORE_NS):
            yield host, line, after


def _chosen(own: Sequence[Line], incident: Mapping[str, Any], first: Sequence[Line]) -> list[Line]:
    """``first``, and then what else was near: whom the controller elected before what replicas say, and lines
    near the change of leader before those far from it. Those chosen are in the order of time."""
    around = incident["at_ns"] or incident["last_ns"] or 0
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
    others.sort(key=lambda line: (order.index(line.tells), abs((line.at_ns or around) - around)))
    chosen = [*first, *_once(others)][:MOST_LINES]
    return sorted(chosen, key=lambda line: (line.at_ns or around, line.file, line.number))


def _once(lines: Sequence[Line]) -> Iterator[Line]:
    """An election is told by one controller: the others of the quorum repeat it, word for word."""
    told: set[str] = set()
    for line in lines:
        words = line.text.partition("] UNCLEAN ")[2] if line.tells is Tells.ELECTED else ""
        if words not in told:
            yield line
        told |= {words} if words else set()


def _matters(line: Line, incident: Mapping[str, Any]) -> bool:
    """Tells whether a log that ends there, or is to, lacks offsets that the incident is about, and which it
    could have had."""
    if line.tells not in (Tells.BELOW, Tells.CUTS, Tells.LOADED) or line.end is None:
        return True
    last = incident["last_offset"]
    return last is not None and line.end <= last and not _is_before(line, incident)


def _is_before(line: Line, incident: Mapping[str, Any]) -> bool:
    """Tells whether there was none of what the incident is about yet."""
    begin, slack = incident["first_ns"], EXACT_NS if line.is_exact else BEFORE_NS
    return line.at_ns is not None and begin is not None and line.at_ns < begin - slack


def _said_of_unclean(found: Sequence[Line], left: Sequence[tuple[str, Line, Line]]) -> Iterator[str]:
    """Yields why a replica left the ELR."""
    for host, unclean, registers in left:
        epochs = ""
        if registers.broker_epoch is not None:
            fenced = [one for one in found if one.broker == registers.broker and one.tells is Tells.FENCED]
            earlier = [one for one in fenced if (one.at_ns or 0) <= (registers.at_ns or 0)]
            was = f", {earlier[-1].broker_epoch} before" if earlier else ""
            epochs = f" in broker epoch {registers.broker_epoch}{was}"
        when = "" if unclean.known_ns is None else f" at {seconds(unclean.known_ns)}"
        yield f"{host} registered{when}{epochs}, and the controller took its shutdown for unclean."


def _said_of_epochs(own: Sequence[Line], takeover: Line | None) -> Iterator[str]:
    """Yields which partition epoch the takeover began."""
    if takeover is None or takeover.partition_epoch is None:
        return
    elections = [line for line in own if line.tells is Tells.ELECTED]
    was = [one.partition_epoch_was for one in elections if one.partition_epoch == takeover.partition_epoch]
    after = f", after {was[0]}" if was and was[0] is not None else ""
    yield f"{takeover.host} led from partition epoch {takeover.partition_epoch} on{after}."


def _said_of_ends(own: Sequence[Line], takeover: Line | None) -> Iterator[str]:
    """Yields where each replica's log ended when the new leader took over."""
    if takeover is None or takeover.end is None:
        return
    epoch = takeover.leader_epoch
    if any(
        line.host != takeover.host and (line.tells, line.leader_epoch) == (Tells.LEADS, epoch) for line in own
    ):
        return  # a system without leader epochs
    ends = {
        line.host: line.end
        for line in own
        if line.tells is Tells.FOLLOWS and line.leader_epoch == epoch and line.end is not None
    }
    if ends:
        ends[takeover.host] = takeover.end
        told = listed([f"{ends[host]:,} on {host}" for host in sorted(ends)])
        yield f"When leader epoch {epoch} began, the log end offsets were {told}."


def _said_of_leader(evidence: Evidence, leader: object, *, is_told: bool) -> Iterator[str]:
    """Yields why the new leader lacked the records: it had cut them off, or its log ended before them.
    ``is_told``: the incident's sentence says it."""
    takeover, last = evidence.takeover, evidence.incident["last_offset"]
    if evidence.incident["at_ns"] is None and takeover is not None and takeover.known_ns is not None:
        when = "" if is_told else f" at {seconds(takeover.known_ns)}"
        epoch = takeover.leader_epoch
        yield f"The records were gone when {leader} took over{when}, in leader epoch {epoch}."
    if is_told:
        return
    cut = evidence.dated_cut()
    if cut is not None:
        why = evidence.why(cut)
        yield f"{leader} {cut_back(cut)}{'' if why is None else f' ({why.value})'}."
    elif takeover is not None and takeover.end == 0:
        yield f"The log of {leader} was empty when it took over."
    elif takeover is not None and takeover.end is not None and last is not None and takeover.end <= last:
        yield f"The log end offset of {leader} was {takeover.end:,} when it took over."


def _said_of_others(leader: object, cuts: Sequence[Line]) -> list[str]:
    """Returns how far the other replicas have cut their logs."""
    ends: dict[str, int] = {}
    for line in cuts:
        if line.host != leader and line.end is not None:
            ends[line.host] = min(ends.get(line.host, line.end), line.end)
    said = []
    for end in sorted(set(ends.values())):
        hosts = sorted(host for host, own in ends.items() if own == end)
        logs = "its log" if len(hosts) == 1 else "their logs"
        said.append(f"{listed(hosts)} cut {logs} back to offset {end:,}.")
    return said


def _retold(
    verdict: dict[str, Any], incident: dict[str, Any], said: Sequence[str], how: How, told: Sequence[Told]
) -> None:
    """Adds the evidence to the incident's sentences. Of a loss the sentence says how it came about; another
    ends with the first mistake."""
    before, sentence = in_full(incident), incident["sentence"]
    left = [one for one in told if one not in how.told]
    if how.clause:
        incident["sentence"] = Gone(**incident["gone"]).sentence(f": {how.clause}")
    elif left:
        incident["sentence"] = f"{sentence}; {left.pop(0).mistake}"
    incident["mechanism"] = [*incident["mechanism"], *said]
    incident["mechanism"] += [f"{_begun(one.mistake)}." for one in left]
    headline = str(verdict.get("headline", ""))
    for old, new in ((sentence, incident["sentence"]), (capital(sentence), capital(incident["sentence"]))):
        headline = headline.replace(old, new, 1) if old != new and new not in headline else headline
    verdict["headline"] = headline
    now = in_full(incident)
    verdict["reasons"] = [now if reason == before else reason for reason in verdict["reasons"]]


def _begun(clause: str) -> str:
    """Capitalizes a clause, unless it begins with the name of a host."""
    return capital(clause) if clause.startswith("a ") else clause
