"""What went wrong in the nodes: mechanisms by which a log loses records, or differs from another, each with
the evidence that supports it and the evidence that refutes it.

One that is refuted is not told, nor is one on which the evidence is silent. What a mechanism goes by are the
incident as the judge made it (leaders, ISR, when what is lost was seen last), the nodes' lines about the
partition, and the faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from wrackline.checkers.verdict.incidents.moments import Kind, Moment
from wrackline.checkers.verdict.leadership import POLLED_NS, STOPPING
from wrackline.harness.run.node_lines import Line, Tells

EXACT_NS: Final = 100_000_000
"""Times are known to within this where the hosts' clocks are on record."""
NEAR_NS: Final = 5_000_000_000
"""What the controller says so long before or after a change of leader is about it."""
_DIFFERENT: Final = {"replica-divergence", "lost-on-replica"}


class Why(Enum):
    """Where a replica cut its log, by its own words."""

    HIGH_WATERMARK = "its high watermark"
    LEADER = "where its leader's log differs"
    OUT_OF_RANGE = "its leader's end, which lies before its own"


_WHYS: Final = (
    (Why.HIGH_WATERMARK, re.compile(r"\bwhy became follower\b|due to local high watermark")),
    (
        Why.LEADER,
        re.compile(r"\bwhy (?:diverging at epoch|the leader's epoch)|due to leader epoch and offset"),
    ),
    (Why.OUT_OF_RANGE, re.compile(r"\bwhy out of range")),
)
"""Of our broker's traces, and of Apache Kafka's logs."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one incident."""

    incident: Mapping[str, Any]
    own: Sequence[Line]
    """The nodes' lines about its partition."""
    cuts: Sequence[Line]
    """Those in which a replica cut off some of its offsets, in the order of time."""
    takeover: Line | None
    """The line in which the new leader begins to lead."""
    faults: Sequence[Mapping[str, Any]] = ()
    """As ``verdict.json`` has them."""

    @property
    def leader(self) -> str | None:
        """The new one."""
        if self.takeover is not None:
            return self.takeover.host
        return (self.incident.get("leader_after") or {}).get("leader")

    @property
    def before(self) -> Mapping[str, Any]:
        """The leader before."""
        return self.incident.get("leader_before") or {}

    @property
    def taken_over_ns(self) -> int | None:
        known = None if self.takeover is None else self.takeover.known_ns
        return self.incident["at_ns"] if known is None else known

    @property
    def anomalies(self) -> set[str]:
        return {one["anomaly"] for one in self.incident["anomalies"]}

    def cuts_of(self, host: str | None) -> list[Line]:
        return [line for line in self.cuts if line.host == host]

    def own_cut(self) -> Line | None:
        """The new leader's last cut before it took over."""
        found = [line for line in self.cuts_of(self.leader) if self._is_before(line)]
        return found[-1] if found else None

    def _is_before(self, line: Line) -> bool:
        """Before the new leader took over: by their places where one file has both lines."""
        if self.takeover is not None and line.file == self.takeover.file:
            return line.number < self.takeover.number
        at = self.taken_over_ns
        return at is None or line.known_ns is None or line.known_ns <= at + POLLED_NS

    def stopped(self, host: str | None, at_ns: int) -> bool:
        """Whether a fault had stopped the host's node then."""
        return any(
            host in fault.get("targets", ())
            and fault["fault"].startswith(STOPPING)
            and _struck(fault) <= at_ns
            and (fault.get("undo_ns") is None or at_ns <= fault["undo_ns"])
            for fault in self.faults
        )

    def why(self, cut: Line) -> Why | None:
        """Why a replica cut its log there; Kafka says it in the line before."""
        said = [cut]
        said += [
            line
            for line in self.own
            if line.tells is Tells.CUTS and (line.host, line.end) == (cut.host, cut.end)
        ]
        return next((why for why, words in _WHYS for line in said if words.search(line.text)), None)

    def lost_bytes(self, host: str | None) -> Mapping[str, Any] | None:
        """The fault by which a host lost what it had not synced, or may have."""
        at = self.taken_over_ns
        found = [
            fault
            for fault in self.faults
            if host in (*fault["lossy"], *fault["unsure"]) and (at is None or _struck(fault) <= at)
        ]
        return found[-1] if found else None

    def short(self) -> bool:
        """Whether the new leader's log lacked some of the records when it took over."""
        last, end = self.incident["last_offset"], None if self.takeover is None else self.takeover.end
        return last is not None and end is not None and end <= last


@dataclass(frozen=True, slots=True)
class Told:
    """``mistake``: a clause that an incident's sentence ends with. ``sentence``: how it came about, with a
    full stop; empty where other sentences say it already."""

    mistake: str
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``supported``: what to tell where the evidence shows it, else None. ``refuted``: whether the evidence
    shows that it was not so."""

    name: str
    supported: Callable[[Evidence], Told | None]
    refuted: Callable[[Evidence], bool]


def told_of(evidence: Evidence) -> Iterator[Told]:
    """Of the mechanisms that are supported and not refuted."""
    for one in MECHANISMS:
        if not one.refuted(evidence) and (told := one.supported(evidence)) is not None:
            yield told


def moments_of(evidence: Evidence) -> Iterator[Moment]:
    """What the nodes' lines and the faults show, in no order. What has no known time is left out."""
    incident = evidence.incident
    name = f"{incident['topic']}-{incident['partition']}"
    for cut in evidence.cuts:
        if cut.known_ns is not None and cut.end is not None:
            yield Moment(cut.known_ns, cut.host, Kind.CUT, f"{cut.host} cut {name} at {cut.end:,}")
    leader, taken_over = evidence.leader, evidence.taken_over_ns
    if incident["at_ns"] is None and leader is not None and taken_over is not None:
        yield Moment(taken_over, leader, Kind.LEADER, f"{leader} leads {name}")
    before, followed = evidence.before.get("leader"), _followed_ns(evidence)
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
                    yield Moment(_struck(fault), host, kind, f"{host} {what}")


# --- truncation to the high watermark -----------------------------------------------------------------------


def _to_high_watermark(evidence: Evidence) -> Told | None:
    cut = evidence.own_cut()
    if cut is None or evidence.why(cut) is not Why.HIGH_WATERMARK:
        return None
    return Told(f"{cut.host} had truncated to its high watermark")


def _not_to_high_watermark(evidence: Evidence) -> bool:
    cut = evidence.own_cut()
    if cut is not None:
        return evidence.why(cut) not in (None, Why.HIGH_WATERMARK)
    return evidence.takeover is not None and not evidence.short()


# --- a leader that was deposed and went on ------------------------------------------------------------------


def _deposed(evidence: Evidence) -> Told | None:
    host, taken_over = evidence.before.get("leader"), evidence.taken_over_ns
    cuts, until = evidence.cuts_of(host), _followed_ns(evidence)
    lost = evidence.incident.get("lost_ns")
    if not cuts or until is None or taken_over is None or lost is None:
        return None
    if host == evidence.leader or lost <= taken_over + EXACT_NS:
        return None
    cut, epoch = cuts[-1], evidence.before.get("leader_epoch")
    newest = (evidence.incident.get("leader_after") or {}).get("leader_epoch")
    if epoch == newest:
        epoch = newest = None  # a system without leader epochs
    was = "" if cut.was is None else f"from {cut.was:,} "
    return Told(
        f"{host} acknowledged as leader until {until / 1e9:,.1f} s",
        f"{host} acknowledged as leader{_of_epoch(epoch)} until {until / 1e9:,.1f} s, when {evidence.leader} "
        f"led{_in_epoch(newest)} since {taken_over / 1e9:,.1f} s; it then cut its log {was}to {cut.end:,}.",
    )


def _not_deposed(evidence: Evidence) -> bool:
    """Whether all that is lost had been seen before the change, or some of it after the leader before had
    learnt of that, or that had been stopped."""
    lost, taken_over, until = evidence.incident.get("lost_ns"), evidence.taken_over_ns, _followed_ns(evidence)
    if lost is None or taken_over is None:
        return False
    if evidence.stopped(evidence.before.get("leader"), taken_over):
        return True
    return bool(lost < taken_over - EXACT_NS or (until is not None and until < lost - EXACT_NS))


def _followed_ns(evidence: Evidence) -> int | None:
    """When the leader before began to follow the new one, or one after that."""
    newest = (evidence.incident.get("leader_after") or {}).get("leader_epoch")
    times = [
        line.known_ns
        for line in evidence.own
        if (line.tells, line.host) == (Tells.FOLLOWS, evidence.before.get("leader"))
        and line.known_ns is not None
        and line.known_ns >= (evidence.taken_over_ns or 0) - EXACT_NS
        and line.leader_epoch is not None
        and newest is not None
        and line.leader_epoch >= newest
    ]
    return min(times, default=None)


# --- unsynced bytes, unclean elections, members of the ISR that are behind ----------------------------------


def _lost_bytes(evidence: Evidence) -> Told | None:
    fault = evidence.lost_bytes(evidence.leader)
    if fault is None or not evidence.short():
        return None
    name = fault["fault"].replace("-", " ")
    at = f"{_struck(fault) / 1e9:,.1f} s"
    return Told(f"{evidence.leader} had lost unsynced bytes in the {name} at {at}")


def _no_lost_bytes(evidence: Evidence) -> bool:
    return evidence.lost_bytes(evidence.leader) is None or (
        evidence.takeover is not None and evidence.takeover.end is not None and not evidence.short()
    )


def _unclean(evidence: Evidence) -> Told | None:
    is_unclean = (evidence.incident.get("leader_after") or {}).get("unclean") is True
    at = evidence.taken_over_ns
    lines = [line for line in evidence.own if line.tells is Tells.ELECTED and "UNCLEAN" in line.text]
    near = [line for line in lines if at is None or abs((line.at_ns or at) - at) <= NEAR_NS]
    return Told(f"{evidence.leader} was elected uncleanly") if is_unclean or near else None


def _clean(evidence: Evidence) -> bool:
    """None: metadata were polled, which do not show it."""
    return (evidence.incident.get("leader_after") or {}).get("unclean") is False


def _was_eligible(evidence: Evidence) -> bool:
    return evidence.leader in (*evidence.before.get("isr", ()), *evidence.before.get("elr", ()))


def _behind(evidence: Evidence) -> Told | None:
    takeover = evidence.takeover
    if takeover is None or takeover.end is None or not evidence.short() or not _was_eligible(evidence):
        return None
    which = "ISR" if evidence.leader in evidence.before.get("isr", ()) else "ELR"
    return Told(f"{takeover.host} was in the {which}, though its log ended before offset {takeover.end:,}")


def _not_behind(evidence: Evidence) -> bool:
    """Whether it had had them, and cut them off or lost them, or had them still; or whether it was in no set
    any more."""
    had = evidence.own_cut() is not None or evidence.lost_bytes(evidence.leader) is not None
    has = evidence.takeover is not None and evidence.takeover.end is not None and not evidence.short()
    return had or has or _unclean(evidence) is not None


# --- a leader that cuts its own log, changed files, logs that should have been cut --------------------------


def _cut_while_leading(evidence: Evidence) -> Told | None:
    for cut in evidence.cuts:
        role = _role_at(evidence, cut)
        if role is not None and role.tells is Tells.LEADS:
            was = "" if cut.was is None else f"from {cut.was:,} "
            told = f"{cut.host} cut its log {was}to {cut.end:,} while it led{_in_epoch(role.leader_epoch)}"
            return Told(told)
    return None


def _no_leader_cut(evidence: Evidence) -> bool:
    """Whether every replica that cut its log was a follower then, by its own words."""
    return bool(evidence.cuts) and all(_is_of_follower(evidence, cut) for cut in evidence.cuts)


def _is_of_follower(evidence: Evidence, cut: Line) -> bool:
    role = _role_at(evidence, cut)
    return evidence.why(cut) is not None or (role is not None and role.tells is Tells.FOLLOWS)


def _role_at(evidence: Evidence, cut: Line) -> Line | None:
    """What the replica was when it cut its log, by the lines before in the same file; None where it had
    started since, or became a follower right then."""
    if evidence.why(cut) is not None:
        return None
    roles = [
        line
        for line in evidence.own
        if line.tells in (Tells.LEADS, Tells.FOLLOWS, Tells.LOADED)
        and line.file == cut.file
        and line.number < cut.number
    ]
    return max(roles, key=lambda line: line.number, default=None)


def _changed_files(evidence: Evidence) -> Told | None:
    hit = [
        fault
        for fault in evidence.faults
        if fault["damaged"] and fault["id"] in evidence.incident.get("faults", ())
    ]
    if not hit:
        return None
    hosts = " and ".join(sorted(hit[-1]["damaged"]))
    name, at = hit[-1]["fault"].replace("-", " "), f"{_struck(hit[-1]) / 1e9:,.1f} s"
    return Told(f"a {name} at {at} had changed files on {hosts}")


def _whole_files(evidence: Evidence) -> bool:
    return not any(fault["damaged"] for fault in evidence.faults)


def _kept(evidence: Evidence) -> Told | None:
    for follows, leads in _longer(evidence):
        if not _has_cut(evidence, follows, leads):
            host, led = follows.host, f"{leads.host} in{_in_epoch(leads.leader_epoch)}"
            return Told(
                f"{host} kept what {leads.host} did not have",
                f"{host} followed {led} with a log that ended at {follows.end:,}; that of {leads.host} had "
                f"ended at {leads.end:,} when it took over, and {host} did not cut its own to that.",
            )
    return None


def _not_kept(evidence: Evidence) -> bool:
    if not evidence.anomalies & _DIFFERENT:
        return True
    longer = list(_longer(evidence))
    return bool(longer) and all(_has_cut(evidence, *pair) for pair in longer)


def _longer(evidence: Evidence) -> Iterator[tuple[Line, Line]]:
    """(line of a follower, line of its leader) where the follower's log was the longer one."""
    leads = [line for line in evidence.own if line.tells is Tells.LEADS and line.end is not None]
    for line in evidence.own:
        if line.tells is not Tells.FOLLOWS or line.end is None or line.at_ns is None:
            continue
        led = [
            one
            for one in leads
            if (one.leader_epoch, one.host != line.host) == (line.leader_epoch, True)
            and one.at_ns is not None
            and one.at_ns <= line.at_ns + EXACT_NS
        ]
        leader = max(led, key=lambda one: one.at_ns or 0, default=None)
        if leader is not None and line.end > (leader.end or 0):
            yield line, leader


def _has_cut(evidence: Evidence, follows: Line, leads: Line) -> bool:
    return any(
        line.tells is Tells.CUT
        and line.file == follows.file
        and line.number > follows.number
        and line.end is not None
        and line.end <= (leads.end or 0)
        for line in evidence.own
    )


MECHANISMS: Final = (
    Mechanism("log that was not cut", _kept, _not_kept),
    Mechanism("truncation to the high watermark", _to_high_watermark, _not_to_high_watermark),
    Mechanism("deposed leader", _deposed, _not_deposed),
    Mechanism("lost bytes", _lost_bytes, _no_lost_bytes),
    Mechanism("unclean election", _unclean, _clean),
    Mechanism("leader behind", _behind, _not_behind),
    Mechanism("leader that cut its log", _cut_while_leading, _no_leader_cut),
    Mechanism("changed files", _changed_files, _whole_files),
)
"""The first that is supported is the mistake that an incident's sentence names."""


def _struck(fault: Mapping[str, Any]) -> int:
    times = (fault.get(key) for key in ("active_ns", "begin_ns", "undo_ns", "ended_ns"))
    return next((time for time in times if time is not None), 0)


def _of_epoch(epoch: int | None) -> str:
    return "" if epoch is None or epoch < 0 else f" of epoch {epoch}"


def _in_epoch(epoch: int | None) -> str:
    return "" if epoch is None or epoch < 0 else f" epoch {epoch}"
