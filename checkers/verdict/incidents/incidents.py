"""The incidents of a run: from its findings, its history and its cluster's own history."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from wrackline.checkers.findings import WORST_FIRST, Meaning
from wrackline.checkers.inputs.cited import epochs_at, read_cited
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.checkers.inputs.runs import Fault, Run
from wrackline.checkers.verdict.anomaly import Anomaly
from wrackline.checkers.verdict.contracts import Ruling
from wrackline.checkers.verdict.incidents.causes import between, hold_against_epochs, limit
from wrackline.checkers.verdict.incidents.joining import Joined, joined
from wrackline.checkers.verdict.incidents.moments import Moment, moments_of_history
from wrackline.checkers.verdict.incidents.parts import Part, Rules, cited_indexes, parts_of
from wrackline.checkers.verdict.incidents.same_change import Loss, headline_of, is_loss, said_of, together
from wrackline.checkers.verdict.incidents.sentences import Gone, bounds, gone_of, headline, mechanism
from wrackline.checkers.verdict.leadership import Change, Leadership

MOST: Final = 20
"""Incidents of each meaning that verdict.json tells; it counts all."""
MOST_OPERATIONS: Final = 16
OFFSETS: Final = "__consumer_offsets"
MARGIN_NS: Final = 1_000_000_000
"""A fault that ended within a second before an incident belongs to it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One anomaly of an incident."""

    anomaly: str
    meaning: Meaning
    count: int
    first_offset: int | None
    last_offset: int | None
    rows: tuple[tuple[int, int], ...] = ()
    """Its findings: (first, last) row of ``findings.parquet``, counted from 0, in order."""


@dataclass(frozen=True, slots=True)
class Incident:
    """The findings that have one cause, with what is known of how they came about. Times in nanoseconds
    from the start of the run; None: not known."""

    id: str
    """The same whenever the run is judged again."""
    meaning: Meaning
    """The strongest of its anomalies'."""
    sentence: str
    """What happened, without a full stop."""
    mechanism: tuple[str, ...]
    same_change: tuple[str, ...]
    """Ids of the incidents of other partitions that came with the same change of leaders, ``MOST`` at
    most."""
    topic: str | None
    partition: int | None
    first_offset: int | None
    last_offset: int | None
    at_ns: int | None
    """When the leader changed that it came with."""
    first_ns: int | None
    """The earliest cited event, and ..."""
    last_ns: int | None
    """... the last, without those of final reads."""
    lost_ns: int | None
    """When what is lost was acknowledged or read last."""
    leader_before: LeaderSpan | None
    leader_after: LeaderSpan | None
    is_unclean: bool | None
    """Whether the leader after was elected uncleanly; None: not known."""
    anomalies: tuple[Seen, ...]
    faults: tuple[str, ...]
    """Ids, from before the cause until the last cited event."""
    operations: tuple[int, ...]
    """Indexes of some of the cited events."""
    moments: tuple[Moment, ...] = ()
    """What happened when, in the order of time."""
    coordinator_log: str = ""
    """The partition of ``__consumer_offsets`` whose leader coordinated the group; empty where it is about no
    coordinator."""
    gone: Gone | None = None
    """What its sentence says is gone; None where it says something else."""

    def to_json(self) -> dict[str, Any]:
        result = asdict(self)
        result["meaning"] = str(self.meaning)
        result["moments"] = [one.to_json() for one in self.moments]
        result["anomalies"] = [{**asdict(one), "meaning": str(one.meaning)} for one in self.anomalies]
        for key, span in (("leader_before", self.leader_before), ("leader_after", self.leader_after)):
            result[key] = None if span is None else _leader(span)
        unclean = result.pop("is_unclean")
        if result["leader_after"] is not None:
            result["leader_after"]["unclean"] = unclean
        return result


@dataclass(frozen=True, slots=True)
class Incidents:
    """The first ``MOST`` of each meaning, violations first, and how many there are."""

    shown: tuple[Incident, ...] = ()
    counts: Mapping[Meaning, int] = field(default_factory=dict)
    within: Mapping[str, int] = field(default_factory=dict)
    """Anomaly -> how many findings that are no violation belong to an incident that is one."""
    at_once: Mapping[Meaning, str] = field(default_factory=dict)
    """What happened, where all of a meaning came with one change of leaders of several partitions."""
    rulings: Mapping[str, Mapping[Ruling, int]] = field(default_factory=dict)
    """Anomaly -> what its findings mean, and why -> how many of them."""

    def of(self, meaning: Meaning) -> list[Incident]:
        return [one for one in self.shown if one.meaning is meaning]


NONE_FOUND: Final = Incidents()


def incidents_of(
    run: Run,
    findings: Path,
    anomalies: Mapping[str, Anomaly],
    rules: Rules,
) -> Incidents:
    """``findings``: the run's file of them. ``anomalies``: all, by name. ``rules``: of the contract. Raises
    OSError or ValueError."""
    indexes = cited_indexes(findings)
    leadership = Leadership(run)
    cited = read_cited(run.files, indexes)
    parts = parts_of(findings, cited, anomalies, rules, leadership.before)
    for part in parts:
        limit(leadership, part)
    hold_against_epochs(run.files, leadership, parts)
    result = joined(parts, lambda ones: _pin(run, leadership, ones))
    by_meaning: dict[Meaning, list[Joined]] = {one: [] for one in WORST_FIRST}
    for one in result:
        by_meaning[_meaning(one)].append(one)
    groups = together(list(_losses(leadership, result)))
    beside = {id(one.incident): (one, group) for group in groups for one in group}
    shown = [
        _incident(run, leadership, one, of, beside.get(id(one)))
        for of, ones in by_meaning.items()
        for one in ones[:MOST]
    ]
    within: Counter[str] = Counter()
    for one in by_meaning[Meaning.VIOLATION]:
        for part in one.parts:
            within[part.anomaly.name] += part.count if part.meaning is not Meaning.VIOLATION else 0
    at_once = {of: said for of, ones in by_meaning.items() if (said := _at_once(of, ones, groups))}
    counts = {of: len(ones) for of, ones in by_meaning.items()}
    return Incidents(tuple(shown), counts, +within, at_once, _rulings(parts))


def _rulings(parts: Sequence[Part]) -> dict[str, dict[Ruling, int]]:
    result: dict[str, Counter[Ruling]] = {}
    for part in parts:
        result.setdefault(part.anomaly.name, Counter()).update(part.rulings)
    return {name: dict(counted) for name, counted in result.items()}


def _losses(leadership: Leadership, found: Sequence[Joined]) -> Iterator[Loss]:
    for one in found:
        if one.place is None or one.pinned is None:
            continue
        if any(part.anomaly.is_loss for part in one.parts):
            yield Loss(one, leadership.of(one.place).changes[one.pinned - 1], one.place)


def _at_once(meaning: Meaning, ones: Sequence[Joined], groups: Sequence[Sequence[Loss]]) -> str:
    """Empty where they did not all come with one change, or where one of them is more than a loss."""
    if len(ones) < 2 or not all(is_loss(one, meaning) for one in ones):
        return ""
    expected = {id(one) for one in ones}
    own = ([one for one in group if id(one.incident) in expected] for group in groups)
    return next((headline_of(group, meaning) for group in own if len(group) == len(ones)), "")


def _meaning(one: Joined) -> Meaning:
    result = {part.meaning for part in one.parts}
    return next(meaning for meaning in WORST_FIRST if meaning in result)


def _pin(run: Run, leadership: Leadership, found: Sequence[Joined]) -> None:
    """The change of leader is known where only one can be it. Where several can, it is that of the leader who
    gave the offset to another record: the final read has its epoch."""
    open_now: dict[tuple[int, int, int], list[Joined]] = {}
    for one in found:
        if not one.is_of_a_cut or one.place is None:
            continue
        if one.until - one.after == 1 and not one.may_be_deposed:
            one.pinned = one.until
            continue
        lost = [part for part in one.parts if part.anomaly.is_loss and part.place == one.place]
        lost = [part for part in lost if part.first is not None and part.final]
        for part in lost[:1] if one.until - one.after > 1 else []:
            for event in part.final:
                open_now.setdefault((event, one.place[1], part.first or 0), []).append(one)
    if open_now:
        for key, epoch in epochs_at(run.files, list(open_now)).items():
            for one in open_now[key]:
                change = leadership.of(one.place).of_epoch(epoch)
                if change is not None and one.after < change <= one.until:
                    one.pinned = change


def _incident(
    run: Run,
    leadership: Leadership,
    one: Joined,
    meaning: Meaning,
    beside: tuple[Loss, Sequence[Loss]] | None,
) -> Incident:
    """``beside``: those that came with the same change of leaders, where there are any."""
    leaders = leadership.of(one.place)
    change = leaders.changes[one.pinned - 1] if one.pinned is not None else None
    first_ns = min((part.first_ns for part in one.parts if part.first_ns is not None), default=None)
    last_ns = max((part.last_ns for part in one.parts if part.last_ns is not None), default=None)
    operations = sorted({index for part in one.parts for index in part.operations})[:MOST_OPERATIONS]
    topic, partition = one.place or (None, None)
    lost_ns = max(_lost_ns(one), default=None)
    return Incident(
        id=_id(one),
        meaning=meaning,
        sentence=headline(one, meaning, change),
        mechanism=(
            *mechanism(one, change, leaders, between(leadership, one)),
            *(() if beside is None else (said_of(*beside),)),
        ),
        same_change=tuple(
            _id(other.incident)
            for other in (() if beside is None else beside[1])
            if other.incident is not one
        )[:MOST],
        topic=topic,
        partition=partition,
        first_offset=one.first,
        last_offset=one.last,
        at_ns=None if change is None else change.at_ns,
        first_ns=first_ns,
        last_ns=last_ns,
        lost_ns=lost_ns,
        leader_before=None if change is None else change.before,
        leader_after=None if change is None else change.after,
        is_unclean=None if change is None or not change.is_exact else change.may_be_unclean,
        anomalies=tuple(_seen(one)),
        faults=tuple(fault.id for fault in _faults(run, one, change)),
        operations=tuple(operations),
        moments=()
        if one.place is None
        else moments_of_history(f"{topic}-{partition}", bounds(one.lost()), lost_ns, change),
        coordinator_log=next((part.where or "" for part in one.parts if _of_coordinators(part)), ""),
        gone=gone_of(one, meaning),
    )


def _of_coordinators(part: Part) -> bool:
    return part.where is not None and part.where.startswith(f"{OFFSETS}-")


def _lost_ns(one: Joined) -> Iterator[int]:
    """When what is lost was seen."""
    for part in one.parts:
        if part.anomaly.is_loss and part.last_ns is not None:
            yield part.last_ns


def _seen(one: Joined) -> Iterator[Seen]:
    by_name: dict[tuple[str, Meaning], list[Part]] = {}
    for part in one.parts:
        by_name.setdefault((part.anomaly.name, part.meaning), []).append(part)
    for (name, meaning), parts in by_name.items():
        first = min((part.first for part in parts if part.first is not None), default=None)
        last = max((part.last for part in parts if part.last is not None), default=None)
        yield Seen(name, meaning, sum(part.count for part in parts), first, last, tuple(_rows(parts)))


def _rows(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """Yields the findings as intervals of their numbers; adjacent ones are one interval."""
    begin = end = 0
    for part in sorted(parts, key=lambda part: part.found_at):
        if part.found_at != end:
            if begin != end:
                yield begin, end - 1
            begin = part.found_at
        end = part.found_at + part.count
    yield begin, end - 1


def _id(one: Joined) -> str:
    first = one.parts[0]
    signature = (
        one.place,
        one.first,
        one.last,
        sorted({part.anomaly.name for part in one.parts}),
        first.operations,
    )
    return f"i-{hashlib.sha256(repr(signature).encode()).hexdigest()[:10]}"


def _faults(run: Run, one: Joined, change: Change | None) -> list[Fault]:
    """Returns the faults in force from the last time that all was right (that what was lost was seen)
    until the last cited event; where nothing is cited after the cause, until the change of leader, or the
    end."""
    lost = [part.last_ns for part in one.parts if part.anomaly.is_loss and part.last_ns is not None]
    seen = [part.first_ns for part in one.parts if part.first_ns is not None]
    since = min(lost or seen, default=0)
    last = max((part.last_ns for part in one.parts if part.last_ns is not None), default=run.end_ns)
    wrong_later = any(not part.anomaly.is_loss and part.last_ns is not None for part in one.parts)
    until = last if wrong_later else run.end_ns
    if change is not None:
        until = max(change.at_ns, last)
        since = min(since, change.at_ns)
    return [
        fault
        for fault in run.faults
        if fault.struck_ns <= until and (fault.ended_ns is None or fault.ended_ns + MARGIN_NS >= since)
    ]


def _leader(span: LeaderSpan) -> dict[str, Any]:
    return {
        "leader": span.leader,
        "leader_epoch": span.leader_epoch,
        "since_ns": span.begin_ns,
        "isr": list(span.isr),
        "elr": list(span.elr),
        "replicas": list(span.replicas),
    }
