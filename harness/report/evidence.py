"""Findings with what proves them: sentence, operations, offset neighbourhood, per-process timelines.

Everything is bounded: ``PER_PARTITION`` findings per anomaly and partition, ``DETAILED`` of them in all with
a drawing, ``EXPLAINED`` with an explanation and the neighbourhood, ``GROUPS`` groups in all. Where there are
more, every anomaly has its turn. The history is read four times at most plus once per window, and windows
that overlap are read together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from wrackline.harness.report.draw.explanation_drawing import explanation_drawing, version_strip
from wrackline.harness.report.draw.process_lanes import Timeline, Window, process_timeline
from wrackline.harness.report.explanation import Explanation, explanation
from wrackline.harness.report.neighbourhood import Grid, grid, reach, with_readings
from wrackline.harness.report.read.cluster import LeaderSpan
from wrackline.harness.report.read.excerpts import Excerpt, History, Sightings
from wrackline.harness.report.read.faults import Fault, active_between
from wrackline.harness.report.read.files import Finding, FindingGroup
from wrackline.harness.report.read.operations import Operation, operation, pair
from wrackline.harness.report.text import partition_label
from wrackline.history.model import Record, Type

DETAILED: Final = 60
EXPLAINED: Final = 200
PER_GROUP_DETAILED: Final = 5
GROUPS: Final = 80
_WINDOW_ROWS: Final = 6_000
_BARS_WANTED: Final = 1_500
_S: Final = 1_000_000_000
_APART_NS: Final = 4 * _S
"""Cited operations further apart than this are drawn in windows of their own."""
_WINDOWS_EACH: Final = 2
_ABSENCES: Final = ("lost-write", "vanished-read", "lost-committed", "commit-beyond-end")
_END: Final = 1 << 43
"""Stands for the end of a log, where an offset is asked for."""
_ADDED: Final = 2
_LOSSES: Final = ("lost-write", "vanished-read", "lost-committed", "lost-on-replica", "replica-divergence")


@dataclass(frozen=True, slots=True)
class Evidence:
    finding: Finding
    operations: tuple[Operation, ...] = ()
    absent: tuple[int, ...] = ()
    """Indexes of rows that the finding cites and the history does not hold."""
    grid: Grid | None = None
    """What each log and reader has around the finding's offset, and what each poll that proves it was
    given."""
    timelines: tuple[Timeline, ...] = ()
    drawn_at: int | None = None
    """Offset of an earlier finding of the group with the same operations, whose timeline serves both."""
    faults: tuple[Fault, ...] = ()
    """The faults in force near the operations."""
    explained: Explanation | None = None
    witness: Markup | None = None
    strip: Markup | None = None

    @property
    def ends(self) -> tuple[Operation, ...]:
        """The first and the last operation of the run itself among those that prove it."""
        own = [op for op in self.operations if op.of_a_client] or list(self.operations)
        return tuple(dict.fromkeys((own[0], own[-1]))) if own else ()

    @property
    def has_nodes(self) -> bool:
        """Whether any operation names the node that answered; Kafka's clients seldom know it."""
        return any(op.node for op in self.operations)


@dataclass(frozen=True, slots=True)
class EvidenceGroup:
    group: FindingGroup
    items: tuple[Evidence, ...]

    @property
    def more(self) -> int:
        return self.group.count - len(self.items)

    @property
    def where(self) -> str:
        return partition_label(self.group.topic, self.group.partition)

    @property
    def unbroken(self) -> bool:
        """Whether the findings fill a range of offsets without a hole."""
        low, high = self.group.first_offset, self.group.last_offset
        return low is not None and high is not None and self.group.count == high - low + 1 > 1


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the whole run was doing, for the drawings around one finding."""

    faults: Sequence[Fault]
    leaders: Mapping[str, Sequence[LeaderSpan]]
    rate_at: Callable[[int], float]
    """Operations per second around a time."""


def evidence(
    groups: Sequence[FindingGroup], history: History | None, around: Surroundings
) -> list[EvidenceGroup]:
    """The evidence of each group, in the order given; without a history only the findings' sentences."""
    if history is None:
        return [EvidenceGroup(g, tuple(Evidence(f) for f in g.sample)) for g in fair(groups, GROUPS)]
    groups = fair(groups, GROUPS)
    shown = [finding for group in groups for finding in group.sample]
    seen = history.around(_offsets(shown))
    cited = {id(finding): cited_by(finding, seen) for finding in shown}
    rows, ends = _events(history, {index for own in cited.values() for index in own})
    chosen = detailed(groups, DETAILED)
    made = {
        id(finding): _without_drawing(finding, cited[id(finding)], rows, ends, around.faults)
        for finding in shown
    }
    windows = {id(f): _windows(f.anomaly, made[id(f)].operations, around) for f in chosen}
    excerpts = _read_windows(history, [window for own in windows.values() for window in own])
    explained = detailed(groups, EXPLAINED)
    whys = _explanations(explained, made, rows, history, seen)
    for finding in explained:
        item, why = made[id(finding)], whys[id(finding)]
        table = _grid(finding, seen)
        beside = with_readings(table, why.readings) if table is not None else None
        made[id(finding)] = replace(item, explained=why, grid=beside)
    for finding in chosen:
        item = made[id(finding)]
        leaders = around.leaders.get(partition_label(finding.topic, finding.partition), ())
        drawn = tuple(
            process_timeline(excerpts[window], item.operations, window, around.faults, leaders)
            for window in windows[id(finding)]
        )
        strip = version_strip(item.grid) if item.grid is not None else None
        witness = explanation_drawing(whys[id(finding)]) if whys[id(finding)].edges else None
        made[id(finding)] = replace(item, timelines=drawn, witness=witness, strip=strip)
    for finding, earlier in _repeated(groups):
        if made[id(earlier)].timelines:
            made[id(finding)] = replace(made[id(finding)], drawn_at=earlier.offset)
    return [EvidenceGroup(g, tuple(made[id(f)] for f in g.sample)) for g in groups]


def fair(groups: Sequence[FindingGroup], limit: int) -> list[FindingGroup]:
    """At most ``limit`` groups, in their order; every anomaly has as many as any other that has them."""
    turns: dict[str, int] = {}
    ranked = []
    for at, group in enumerate(groups):
        turns[group.anomaly] = turn = turns.get(group.anomaly, 0) + 1
        ranked.append((turn, at))
    return [groups[at] for _, at in sorted(sorted(ranked)[:limit], key=lambda item: item[1])]


def detailed(groups: Sequence[FindingGroup], limit: int) -> list[Finding]:
    """At most ``limit`` findings, in their order: of each group the first few that rest on different
    operations. The first of every group is taken before the second of any, and the anomalies take turns."""
    turns: dict[str, int] = {}
    ranked: list[tuple[int, int, int, Finding]] = []
    for group in groups:
        turns[group.anomaly] = turn = turns.get(group.anomaly, 0) + 1
        first = {finding.operations: finding for finding in reversed(group.sample)}
        distinct = [finding for finding in group.sample if first[finding.operations] is finding]
        ranked += [
            (rank, turn, len(ranked) + rank, finding)
            for rank, finding in enumerate(distinct[:PER_GROUP_DETAILED])
        ]
    chosen = sorted(ranked, key=lambda item: item[:3])[:limit]
    return [finding for *_, finding in sorted(chosen, key=lambda item: item[2])]


def cited_by(finding: Finding, seen: Sightings) -> tuple[int, ...]:
    """The events that a finding cites. Where a record is lost there are also the rows that should hold it and
    do not: those of the final read, or of the replicas that lack it, that reach its offset. Where replicas
    disagree there is one row for each record that they hold there."""
    if finding.topic is None or finding.partition is None:
        return finding.operations
    offset = _END if finding.offset is None else finding.offset
    lacking: list[str | None] = []
    if finding.anomaly == "lost-on-replica":
        lacking = list((finding.where or "").split(" and "))
    elif finding.anomaly == "replica-divergence":
        lacking = _disagreeing(finding, seen)
    elif finding.anomaly in _ABSENCES:
        lacking = [None]
    there = [seen.chunks.get((finding.topic, finding.partition, log, offset)) for log in lacking]
    added = [index for index in there if index is not None and index not in finding.operations]
    return (*finding.operations, *added[:_ADDED])


def _disagreeing(finding: Finding, seen: Sightings) -> list[str | None]:
    """One replica for each record that replicas hold at the offset."""
    if finding.topic is None or finding.partition is None or finding.offset is None:
        return []
    there = seen.at(finding.topic, finding.partition, finding.offset)
    holders: dict[tuple[int, int], str | None] = {}
    for s in sorted(there, key=lambda s: s.node or ""):
        if s.f == "replica":
            holders.setdefault((s.value, s.leader_epoch), s.node)
    return list(holders.values())


def _events(history: History, indexes: Collection[int]) -> tuple[dict[int, Excerpt], dict[int, Excerpt]]:
    """(the events with these indexes, and the invocations and completions that belong to them; by the index
    of each the other half of its operation)."""
    rows = history.by_index(indexes)
    ends = history.completions([row.event for row in rows.values() if row.event.type == Type.INVOKE])
    done = [row.event for row in rows.values() if row.event.type != Type.INVOKE and row.event.process >= 0]
    begins = history.invocations(done)
    begun = history.by_index(set(begins.values()) - rows.keys())
    rows |= {row.event.index: row for row in ends.values()} | begun
    halves = dict(ends)
    halves |= {done: rows[invoke] for done, invoke in begins.items() if invoke in rows}
    return rows, halves


def _explanations(
    findings: Sequence[Finding],
    made: Mapping[int, Evidence],
    rows: Mapping[int, Excerpt],
    history: History,
    seen: Sightings,
) -> dict[int, Explanation]:
    near = _records_near(findings, made, rows, history)
    reaching: dict[tuple[str | None, int | None, int | None], set[int]] = {}
    for (topic, partition, _, offset), index in seen.chunks.items():
        reaching.setdefault((topic, partition, offset), set()).add(index)
    return {
        id(f): explanation(
            f, made[id(f)].operations, rows, near, reaching.get((f.topic, f.partition, f.offset), ())
        )
        for f in findings
    }


def _records_near(
    findings: Sequence[Finding], made: Mapping[int, Evidence], rows: Mapping[int, Excerpt], history: History
) -> dict[int, list[Record]]:
    """Index of an event that a finding cites -> the event's records near the finding's offset, and those of
    the values that the cited operations sent."""
    indexes = {i for f in findings for op in made[id(f)].operations for i in op.indexes}
    places = {
        (f.partition, o)
        for f in findings
        if f.partition is not None and f.offset is not None
        for o in reach(f.offset)
    }
    values = {f.value for f in findings if f.value is not None}
    values |= {
        record.value
        for index in indexes
        if index in rows and rows[index].event.f == "send"
        for record in rows[index].event.records
    }
    return history.records_of(indexes, places, values)


def _repeated(groups: Sequence[FindingGroup]) -> Iterator[tuple[Finding, Finding]]:
    """(finding, the first one of its group that rests on the same operations)."""
    for group in groups:
        first: dict[tuple[int, ...], Finding] = {}
        for finding in group.sample:
            earlier = first.setdefault(finding.operations, finding)
            if earlier is not finding:
                yield finding, earlier


def _offsets(findings: Sequence[Finding]) -> dict[tuple[str, int], set[int]]:
    wanted: dict[tuple[str, int], set[int]] = {}
    for finding in findings:
        if finding.topic is not None and finding.partition is not None:
            own = reach(finding.offset) if finding.offset is not None else (_END,)
            wanted.setdefault((finding.topic, finding.partition), set()).update(own)
    return wanted


def _without_drawing(
    finding: Finding,
    cited: Sequence[int],
    rows: Mapping[int, Excerpt],
    halves: Mapping[int, Excerpt],
    faults: Sequence[Fault],
) -> Evidence:
    made: list[Operation] = []
    for index in cited:
        if index not in rows:
            continue
        row, half = rows[index], halves.get(index)
        if row.event.type != Type.INVOKE and half is not None:
            row, half = half, row
        op = operation(row, half)
        # an invocation and its completion may both be cited: they are one operation
        if not any(set(op.indexes) & set(known.indexes) for known in made):
            made.append(op)
    made.sort(key=lambda op: op.indexes)
    near = [op for op in made if op.of_a_client] or made
    active: list[Fault] = []
    if near:
        first, last = min(op.begin_ns for op in near), max(op.end_ns or op.begin_ns for op in near)
        active = active_between(faults, first - _S, last + 2 * _S)
    return Evidence(
        finding=finding,
        operations=tuple(made),
        absent=tuple(index for index in finding.operations if index not in rows),
        faults=tuple(active),
    )


def _grid(finding: Finding, seen: Sightings) -> Grid | None:
    if finding.topic is None or finding.partition is None or finding.offset is None:
        return None
    return grid(finding.topic, finding.partition, finding.offset, seen)


def _windows(anomaly: str, operations: Sequence[Operation], around: Surroundings) -> list[Window]:
    """The windows of time to draw: the cited operations with some room around them; for a loss they reach to
    the fault."""
    own = sorted((op for op in operations if op.of_a_client), key=lambda op: op.begin_ns)
    clusters: list[list[Operation]] = []
    for op in own:
        if clusters and op.begin_ns - max(o.end_ns or o.begin_ns for o in clusters[-1]) < _APART_NS:
            clusters[-1].append(op)
        else:
            clusters.append([op])
    faults = around.faults if anomaly in _LOSSES else ()
    return [_window(cluster, faults, around.rate_at) for cluster in clusters[:_WINDOWS_EACH]]


def _window(cluster: Sequence[Operation], faults: Sequence[Fault], rate_at: Callable[[int], float]) -> Window:
    first = cluster[0].begin_ns
    last = max(op.end_ns if op.end_ns is not None else op.begin_ns for op in cluster)
    room = max(int(_BARS_WANTED / max(rate_at(first), 1.0) * _S), _S // 20)
    air = min(max((last - first) // 2, _S // 40), max(room // 4, _S // 50))
    begin, end = first - air, last + air
    for fault in faults:
        if fault.begin_ns is not None and last <= fault.begin_ns <= first + min(_APART_NS, room):
            reach = (fault.begin_ns - first) // 5
            begin, end = begin - reach // 2, max(end, fault.begin_ns + max(air, reach))
            break
    return Window(max(begin, 0), max(end, begin + _S // 50))


def _read_windows(history: History, windows: Sequence[Window]) -> dict[Window, list[Operation]]:
    """The operations of each window; windows that overlap are read together."""
    merged: list[list[Window]] = []
    reached = -1
    for window in sorted(set(windows), key=lambda w: w.begin_ns):
        if merged and window.begin_ns <= reached and window.end_ns - merged[-1][0].begin_ns < 10 * _S:
            merged[-1].append(window)
            reached = max(reached, window.end_ns)
        else:
            merged.append([window])
            reached = window.end_ns
    found: dict[Window, list[Operation]] = {}
    for members in merged:
        begin, end = members[0].begin_ns, max(window.end_ns for window in members)
        limit = _WINDOW_ROWS * min(len(members), 3)
        excerpts = history.between(begin, end, limit)
        operations = pair(excerpts, complete=len(excerpts) < limit)
        for window in members:
            found[window] = [op for op in operations if window.holds(op.begin_ns, op.end_ns)]
    return found
