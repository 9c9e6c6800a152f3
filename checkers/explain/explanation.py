"""The findings that are shown, each with what explains it, from the rows that they cite.

The history is read four times at most plus once per window of time, and windows that overlap are read
together; only the rows asked for become Python objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from wrackline.checkers.checks.explained_by import BY_ORDER, ExplainedBy, FurtherRows
from wrackline.checkers.explain.contradiction import contradiction
from wrackline.checkers.explain.model import (
    DETAILED,
    EXPLAINED,
    GROUPS,
    VERSION,
    Explanation,
    Explanations,
    FaultNear,
    Finding,
    Operation,
    Window,
)
from wrackline.checkers.explain.neighbourhood import neighbourhood, reach, with_readings
from wrackline.checkers.explain.observations import Observations, observations, records_of
from wrackline.checkers.explain.operations import operation, pair
from wrackline.checkers.explain.selection import Sample, detailed, fair, repeated
from wrackline.history.excerpts import Excerpt, History
from wrackline.history.model import Record, Type

LANES: Final = 12
"""Processes whose operations a window has."""
_WINDOW_ROWS: Final = 6_000
_BARS_WANTED: Final = 1_500
_S: Final = 1_000_000_000
_APART_NS: Final = 4 * _S
"""Cited operations further apart than this have windows of their own."""
_WINDOWS_EACH: Final = 2


def windows_around(
    operations: Sequence[Operation], faults: Sequence[FaultNear], rate_at: Callable[[int], float]
) -> list[Window]:
    """The windows of time to show, still empty: the cited operations with some room around them, as far as
    the first of the ``faults`` soon after them. ``rate_at``: operations per second around a time."""
    own = sorted((op for op in operations if op.of_a_client), key=lambda op: op.begin_ns)
    clusters: list[list[Operation]] = []
    for op in own:
        if clusters and op.begin_ns - max(o.end_ns or o.begin_ns for o in clusters[-1]) < _APART_NS:
            clusters[-1].append(op)
        else:
            clusters.append([op])
    return [_window(cluster, faults, rate_at) for cluster in clusters[:_WINDOWS_EACH]]


def _window(
    cluster: Sequence[Operation], faults: Sequence[FaultNear], rate_at: Callable[[int], float]
) -> Window:
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


def operations_in(history: History, windows: Collection[Window]) -> dict[Window, list[Operation]]:
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
    result: dict[Window, list[Operation]] = {}
    for members in merged:
        begin, end = members[0].begin_ns, max(window.end_ns for window in members)
        limit = _WINDOW_ROWS * min(len(members), 3)
        excerpts = history.between(begin, end, limit)
        operations = pair(excerpts, complete=len(excerpts) < limit)
        for window in members:
            result[window] = [op for op in operations if window.holds(op.begin_ns, op.end_ns)]
    return result


def filled(
    window: Window,
    there: Sequence[Operation],
    cited: Sequence[Operation],
    positions: dict[Operation, int],
) -> Window:
    """The window with the operations of at most ``LANES`` processes. ``positions``: where each operation is
    in ``Explanations.operations``; new ones are added."""
    shown = [op for op in there if op.of_a_client]
    known = {index for op in shown for index in op.indexes}
    shown += [
        op
        for op in cited
        if op.of_a_client and not known & set(op.indexes) and window.holds(op.begin_ns, op.end_ns)
    ]
    lanes = _lanes(shown, cited)
    own = tuple(positions.setdefault(op, len(positions)) for op in shown if op.process in lanes)
    return Window(window.begin_ns, window.end_ns, own, len({op.process for op in shown}) - len(lanes))


def _lanes(shown: Sequence[Operation], cited: Sequence[Operation]) -> set[int]:
    """Processes: those of the cited operations are chosen first, then those that worked on their partitions,
    then the others."""
    indexes = {index for op in cited for index in op.indexes}
    places = {(op.topic, op.partition) for op in cited}
    rank: dict[int, int] = {}
    for op in shown:
        mine = 0 if indexes & set(op.indexes) else 1 if (op.topic, op.partition) in places else 2
        rank[op.process] = min(rank.get(op.process, 2), mine)
    return set(sorted(rank, key=lambda process: (rank[process], process))[:LANES])


_END: Final = 1 << 43
"""Stands for the end of a log, where an offset is asked for."""
_ADDED: Final = 2


@dataclass(frozen=True, slots=True)
class Around:
    """The context of the findings: what is known of the whole run and of its anomalies."""

    explained_by: Mapping[str, ExplainedBy]
    """By anomaly. One that is not there is explained by order."""
    faults: Sequence[FaultNear]
    rate_at: Callable[[int], float]
    """Operations per second around a time."""

    def how(self, finding: Finding) -> ExplainedBy:
        return self.explained_by.get(finding.anomaly, BY_ORDER)


@dataclass(frozen=True, slots=True)
class _Read:
    """The parts of the history that were read."""

    rows: Mapping[int, Excerpt]
    """Cited events, and the other halves of their operations, by index."""
    halves: Mapping[int, Excerpt]
    """Index of an event -> the other half of its operation."""
    seen: Observations


def explanations(samples: Sequence[Sample], history: History | None, around: Around) -> Explanations:
    """Explains the findings, in the order given; without a history only by their sentences. Raises
    pyarrow.ArrowException or OSError when the history is broken."""
    chosen = fair(samples, GROUPS)
    made = {id(f): Explanation(f) for sample in chosen for f in sample.findings}
    operations: tuple[Operation, ...] = ()
    if history is not None and made:
        operations = _explain(chosen, made, history, around)
    shown = {id(sample): tuple(made[id(f)] for f in sample.findings) for sample in chosen}
    groups = (replace(sample.group, explanations=shown.get(id(sample), ())) for sample in samples)
    return Explanations(VERSION, tuple(groups), operations)


def _explain(
    samples: Sequence[Sample], made: dict[int, Explanation], history: History, around: Around
) -> tuple[Operation, ...]:
    """Completes ``made`` (by identity of the finding); returns the operations of all windows."""
    shown = [finding for sample in samples for finding in sample.findings]
    seen = observations(history, _offsets(shown))
    cited = {id(finding): _cited(finding, around.how(finding), seen) for finding in shown}
    read = _Read(*_events(history, {index for own in cited.values() for index in own}), seen)
    for finding in shown:
        made[id(finding)] = _with_operations(finding, cited[id(finding)], read, around.faults)
    explained = detailed(samples, EXPLAINED)
    records = _records_near(explained, made, read, history)
    reaching = _reaching(seen)
    for finding in explained:
        made[id(finding)] = _with_reasons(made[id(finding)], around.how(finding), read, records, reaching)
    positions = _add_windows(samples, made, history, around)
    for finding, earlier in repeated(samples):
        if made[id(earlier)].windows:
            made[id(finding)] = replace(made[id(finding)], same_as=earlier.offset)
    return tuple(positions)


def _offsets(findings: Iterable[Finding]) -> dict[tuple[str, int], set[int]]:
    expected: dict[tuple[str, int], set[int]] = {}
    for finding in findings:
        if finding.topic is not None and finding.partition is not None:
            own = reach(finding.offset) if finding.offset is not None else (_END,)
            expected.setdefault((finding.topic, finding.partition), set()).update(own)
    return expected


def _cited(finding: Finding, how: ExplainedBy, seen: Observations) -> tuple[int, ...]:
    """The events that a finding cites, and further rows that prove it."""
    if finding.topic is None or finding.partition is None:
        return finding.operations
    offset = _END if finding.offset is None else finding.offset
    logs: list[str | None] = []
    match how.further_rows:
        case FurtherRows.FINAL_READ:
            logs = [None]
        case FurtherRows.NAMED_LOGS:
            logs = list((finding.where or "").split(" and "))
        case FurtherRows.HOLDERS:
            logs = _holders(finding, seen)
        case FurtherRows.NONE:
            pass
    there = [seen.reached.get((finding.topic, finding.partition, log, offset)) for log in logs]
    added = [index for index in there if index is not None and index not in finding.operations]
    return (*finding.operations, *added[:_ADDED])


def _holders(finding: Finding, seen: Observations) -> list[str | None]:
    """One replica for each record that replicas hold at the offset."""
    if finding.place is None:
        return []
    there = seen.at(*finding.place)
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


def _with_operations(
    finding: Finding, cited: Sequence[int], read: _Read, faults: Sequence[FaultNear]
) -> Explanation:
    made: list[Operation] = []
    for index in cited:
        if index not in read.rows:
            continue
        row, half = read.rows[index], read.halves.get(index)
        if row.event.type != Type.INVOKE and half is not None:
            row, half = half, row
        op = operation(row, half)
        # an invocation and its completion may both be cited: they are one operation
        if not any(set(op.indexes) & set(known.indexes) for known in made):
            made.append(op)
    made.sort(key=lambda op: op.indexes)
    return Explanation(
        finding,
        operations=tuple(made),
        absent=tuple(index for index in finding.operations if index not in read.rows),
        faults=_faults_near(made, faults),
    )


def _faults_near(operations: Sequence[Operation], faults: Sequence[FaultNear]) -> tuple[FaultNear, ...]:
    near = [op for op in operations if op.of_a_client] or operations
    if not near:
        return ()
    first, last = min(op.begin_ns for op in near), max(op.end_ns or op.begin_ns for op in near)
    return tuple(fault for fault in faults if fault.in_force(first - _S, last + 2 * _S))


def _reaching(seen: Observations) -> dict[tuple[str, int, int], set[int]]:
    """Topic, partition and offset -> rows of final read and replicas that were the first to come to it."""
    reaching: dict[tuple[str, int, int], set[int]] = {}
    for (topic, partition, _, offset), index in seen.reached.items():
        reaching.setdefault((topic, partition, offset), set()).add(index)
    return reaching


def _with_reasons(
    explanation: Explanation,
    how: ExplainedBy,
    read: _Read,
    records: Mapping[int, Sequence[Record]],
    reaching: Mapping[tuple[str, int, int], set[int]],
) -> Explanation:
    finding = explanation.finding
    place = finding.place
    first = reaching.get(place, set()) if place is not None else set()
    why = contradiction(finding, how, explanation.operations, read.rows, records, first)
    near = neighbourhood(*place, read.seen) if place is not None else None
    return replace(
        explanation,
        cycle=why.cycle,
        edges=why.edges,
        facts=why.facts,
        neighbourhood=with_readings(near, why.readings) if near is not None else None,
    )


def _records_near(
    findings: Sequence[Finding], made: Mapping[int, Explanation], read: _Read, history: History
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
        if index in read.rows and read.rows[index].event.f == "send"
        for record in read.rows[index].event.records
    }
    return records_of(history, indexes, places, values)


def _add_windows(
    samples: Sequence[Sample], made: dict[int, Explanation], history: History, around: Around
) -> dict[Operation, int]:
    """Returns where each operation of the windows is in ``Explanations.operations``, in that order."""
    windows = {
        id(finding): windows_around(
            made[id(finding)].operations,
            around.faults if around.how(finding).until_fault else (),
            around.rate_at,
        )
        for finding in detailed(samples, DETAILED)
    }
    there = operations_in(history, set(chain.from_iterable(windows.values())))
    positions: dict[Operation, int] = {}
    for key, own in windows.items():
        cited = made[key].operations
        shown = tuple(filled(window, there[window], cited, positions) for window in own)
        made[key] = replace(made[key], detailed=True, windows=shown)
    return positions
