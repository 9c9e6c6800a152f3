"""The windows of time around the operations of a finding, with what clients did in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from wrackline.checkers.explain.model import FaultNear, Operation, Window
from wrackline.checkers.explain.operations import pair
from wrackline.history.excerpts import History

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
    found: dict[Window, list[Operation]] = {}
    for members in merged:
        begin, end = members[0].begin_ns, max(window.end_ns for window in members)
        limit = _WINDOW_ROWS * min(len(members), 3)
        excerpts = history.between(begin, end, limit)
        operations = pair(excerpts, complete=len(excerpts) < limit)
        for window in members:
            found[window] = [op for op in operations if window.holds(op.begin_ns, op.end_ns)]
    return found


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
