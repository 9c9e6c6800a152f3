"""Mechanisms by which a log loses records, or differs from another, each with the evidence that supports it
and the evidence that refutes it.

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

from wrackline.checkers.verdict.leadership import POLLED_NS, STOPPING
from wrackline.checkers.verdict.wording import seconds
from wrackline.harness.run.incidents.node_lines import Line, Tells

EXACT_NS: Final = 100_000_000
"""Times are known to within this where the hosts' clocks are on record."""
NEAR_NS: Final = 5_000_000_000
"""What the controller says so long before or after a change of leader is about it."""
KEPT: Final = "log that was not cut"
"""The one whose sentence says how far the new leader's log reached."""
_DIFFERENT: Final = {"replica-divergence", "lost-on-replica"}


class Why(Enum):
    """The reason of a replica to cut its log there, by its own words."""

    HIGH_WATERMARK = "truncated to its high watermark as it became a follower"
    LEADER = "truncated to where its leader's log differed"
    OUT_OF_RANGE = "its leader's log ended before its own"


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
    """The evidence on one incident."""

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
        result = [line for line in self.cuts_of(self.leader) if self._is_before(line)]
        return result[-1] if result else None

    def dated_cut(self) -> Line | None:
        """The same, if it is known to have been before that."""
        cut = self.own_cut()
        in_order = cut is not None and self.takeover is not None and cut.file == self.takeover.file
        return cut if cut is not None and (in_order or cut.known_ns is not None) else None

    def _is_before(self, line: Line) -> bool:
        """Tells whether the line is from before the new leader took over: by their places where one file has
        both lines."""
        if self.takeover is not None and line.file == self.takeover.file:
            return line.number < self.takeover.number
        then = self.taken_over_ns
        return then is None or line.known_ns is None or line.known_ns <= then + POLLED_NS

    def stopped(self, host: str | None, at_ns: int) -> bool:
        """Tells whether a fault had stopped the host's node then."""
        return any(
            host in fault.get("targets", ())
            and fault["fault"].startswith(STOPPING)
            and struck(fault) <= at_ns
            and (fault.get("undo_ns") is None or at_ns <= fault["undo_ns"])
            for fault in self.faults
        )

    def why(self, cut: Line) -> Why | None:
        """Returns why a replica cut its log there; Kafka says it in the line before."""
        said = [cut]
        said += [
            line
            for line in self.own
            if line.tells is Tells.CUTS and (line.host, line.end) == (cut.host, cut.end)
        ]
        return next((why for why, words in _WHYS for line in said if words.search(line.text)), None)

    def lost_bytes(self, host: str | None) -> Mapping[str, Any] | None:
        """The fault by which a host lost what it had not synced, or may have."""
        then = self.taken_over_ns
        result = [
            fault
            for fault in self.faults
            if host in (*fault["lossy"], *fault["unsure"]) and (then is None or struck(fault) <= then)
        ]
        return result[-1] if result else None

    def short(self) -> bool:
        """Tells whether the new leader's log lacked some of the records when it took over."""
        last, end = self.incident["last_offset"], None if self.takeover is None else self.takeover.end
        return last is not None and end is not None and end <= last


@dataclass(frozen=True, slots=True)
class Told:
    """A mistake of one node: ``n2`` ``acknowledged as leader until 12.3 s``. ``sentence``: how it came about,
    with a full stop; empty where other sentences say it already."""

    who: str
    did: str
    sentence: str = ""

    @property
    def mistake(self) -> str:
        return f"{self.who} {self.did}"


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``supported``: what to tell where the evidence shows it, else None. ``refuted``: whether the evidence
    shows that it was not so."""

    name: str
    supported: Callable[[Evidence], Told | None]
    refuted: Callable[[Evidence], bool]


def cut_back(cut: Line, *, was: bool = True) -> str:
    """``cut its log back from offset 1,852 to 886 at 11.1 s``. ``was``: with its old end, where that is
    known."""
    old = f"from offset {cut.was:,} to" if was and cut.was is not None else "to offset"
    return f"cut its log back {old} {cut.end:,}{when(cut)}"


def when(line: Line) -> str:
    return "" if line.known_ns is None else f" at {seconds(line.known_ns)}"


def told_of(evidence: Evidence) -> dict[str, Told]:
    """Name -> what to tell, of the mechanisms that are supported and not refuted."""
    result = {one.name: one.supported(evidence) for one in MECHANISMS if not one.refuted(evidence)}
    return {name: told for name, told in result.items() if told is not None}


# --- truncation to the high watermark -----------------------------------------------------------------------


def _to_high_watermark(evidence: Evidence) -> Told | None:
    cut = evidence.dated_cut()
    if cut is None or evidence.why(cut) is not Why.HIGH_WATERMARK:
        return None
    return Told(cut.host, "truncated to its high watermark")


def _not_to_high_watermark(evidence: Evidence) -> bool:
    cut = evidence.own_cut()
    if cut is not None:
        return evidence.why(cut) not in (None, Why.HIGH_WATERMARK)
    return evidence.takeover is not None and not evidence.short()


# --- a leader that was deposed and went on ------------------------------------------------------------------


def _deposed(evidence: Evidence) -> Told | None:
    host, taken_over = evidence.before.get("leader"), evidence.taken_over_ns
    cuts, until = evidence.cuts_of(host), followed_ns(evidence)
    lost = evidence.incident.get("lost_ns")
    if not cuts or until is None or taken_over is None or lost is None:
        return None
    if host == evidence.leader or lost <= taken_over + EXACT_NS:
        return None
    cut, epoch = cuts[-1], evidence.before.get("leader_epoch")
    newest = (evidence.incident.get("leader_after") or {}).get("leader_epoch")
    if epoch == newest:
        epoch = newest = None  # a system without leader epochs
    return Told(
        str(host),
        f"acknowledged as leader until {seconds(until)}",
        f"{host} acknowledged as leader{_of_epoch(epoch)} while {evidence.leader} led{_in_epoch(newest)}. "
        f"It then {cut_back(cut)}.",
    )


def _not_deposed(evidence: Evidence) -> bool:
    """Tells whether all that is lost had been seen before the change, or some of it after the leader before
    had learnt of that, or that had been stopped."""
    lost, taken_over, until = evidence.incident.get("lost_ns"), evidence.taken_over_ns, followed_ns(evidence)
    if lost is None or taken_over is None:
        return False
    if evidence.stopped(evidence.before.get("leader"), taken_over):
        return True
    return bool(lost < taken_over - EXACT_NS or (until is not None and until < lost - EXACT_NS))


def followed_ns(evidence: Evidence) -> int | None:
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
    return Told(str(evidence.leader), f"lost unsynced bytes in the {name} at {seconds(struck(fault))}")


def _no_lost_bytes(evidence: Evidence) -> bool:
    return evidence.lost_bytes(evidence.leader) is None or (
        evidence.takeover is not None and evidence.takeover.end is not None and not evidence.short()
    )


def _unclean(evidence: Evidence) -> Told | None:
    is_unclean = (evidence.incident.get("leader_after") or {}).get("unclean") is True
    then = evidence.taken_over_ns
    if evidence.leader is None:
        return None
    lines = [line for line in evidence.own if line.tells is Tells.ELECTED and "UNCLEAN" in line.text]
    near = [line for line in lines if then is None or abs((line.at_ns or then) - then) <= NEAR_NS]
    return Told(evidence.leader, "was elected uncleanly") if is_unclean or near else None


def _clean(evidence: Evidence) -> bool:
    """Tells whether the election was clean; None: metadata were polled, which do not show it."""
    return (evidence.incident.get("leader_after") or {}).get("unclean") is False


def _was_eligible(evidence: Evidence) -> bool:
    return evidence.leader in (*evidence.before.get("isr", ()), *evidence.before.get("elr", ()))


def _behind(evidence: Evidence) -> Told | None:
    takeover = evidence.takeover
    if takeover is None or takeover.end is None or not evidence.short() or not _was_eligible(evidence):
        return None
    which = "ISR" if evidence.leader in evidence.before.get("isr", ()) else "ELR"
    first, last = evidence.incident["first_offset"], evidence.incident["last_offset"]
    them = "it" if first == last else "them"
    them = them if first is not None and takeover.end <= first else f"some of {them}"
    return Told(takeover.host, f"was in the {which} without {them}")


def _not_behind(evidence: Evidence) -> bool:
    """Tells whether the new leader had had the records, and cut them off or lost them, or had them still; or
    whether it was in no set any more."""
    had = evidence.own_cut() is not None or evidence.lost_bytes(evidence.leader) is not None
    has = evidence.takeover is not None and evidence.takeover.end is not None and not evidence.short()
    return had or has or _unclean(evidence) is not None


# --- a leader that cuts its own log, changed files, logs that should have been cut --------------------------


def _cut_while_leading(evidence: Evidence) -> Told | None:
    for cut in evidence.cuts:
        role = _role_at(evidence, cut)
        if role is not None and role.tells is Tells.LEADS:
            return Told(cut.host, f"{cut_back(cut)} while it led{_in_epoch(role.leader_epoch)}")
    return None


def _no_leader_cut(evidence: Evidence) -> bool:
    """Tells whether every replica that cut its log was a follower then, by its own words."""
    return bool(evidence.cuts) and all(_is_of_follower(evidence, cut) for cut in evidence.cuts)


def _is_of_follower(evidence: Evidence, cut: Line) -> bool:
    role = _role_at(evidence, cut)
    return evidence.why(cut) is not None or (role is not None and role.tells is Tells.FOLLOWS)


def _role_at(evidence: Evidence, cut: Line) -> Line | None:
    """Returns the role of the replica when it cut its log, by the lines before in the same file; None where
    it had started since, or became a follower right then."""
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
    name = hit[-1]["fault"].replace("-", " ")
    return Told(f"a {name} at {seconds(struck(hit[-1]))}", f"changed files on {hosts}")


def _whole_files(evidence: Evidence) -> bool:
    return not any(fault["damaged"] for fault in evidence.faults)


def _kept(evidence: Evidence) -> Told | None:
    for follows, leads in _longer(evidence):
        if not _has_cut(evidence, follows, leads):
            host, epoch = follows.host, _in_epoch(leads.leader_epoch)
            return Told(
                host,
                f"kept what {leads.host} did not have",
                f"The log end offset of {leads.host} was {leads.end:,} when it took over. {host} followed it "
                f"in{epoch} with log end offset {follows.end:,}, and did not cut its log back to that.",
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
    Mechanism(KEPT, _kept, _not_kept),
    Mechanism("truncation to the high watermark", _to_high_watermark, _not_to_high_watermark),
    Mechanism("deposed leader", _deposed, _not_deposed),
    Mechanism("lost bytes", _lost_bytes, _no_lost_bytes),
    Mechanism("unclean election", _unclean, _clean),
    Mechanism("leader behind", _behind, _not_behind),
    Mechanism("leader that cut its log", _cut_while_leading, _no_leader_cut),
    Mechanism("changed files", _changed_files, _whole_files),
)
"""The first that is supported is the mistake that an incident's sentence names."""


def struck(fault: Mapping[str, Any]) -> int:
    """When a fault, in its form of ``verdict.json``, took effect, or began to."""
    times = (fault.get(key) for key in ("active_ns", "begin_ns", "undo_ns", "ended_ns"))
    return next((time for time in times if time is not None), 0)


def _of_epoch(epoch: int | None) -> str:
    return "" if epoch is None or epoch < 0 else f" of epoch {epoch}"


def _in_epoch(epoch: int | None) -> str:
    return "" if epoch is None or epoch < 0 else f" epoch {epoch}"
