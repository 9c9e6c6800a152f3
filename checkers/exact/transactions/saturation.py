"""The order that follows from what registers were read to hold.

Who reads what another wrote comes after it. A third who wrote the same register was before the one that
wrote, or is after the one that read; where it is known to be after the first or before the second, only one
of these is left. What is known grows until nothing follows any more (as in Cobra, Tan et al., OSDI 2020).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from wrackline.checkers.exact.operations import BEFORE, NEVER
from wrackline.checkers.exact.transactions.answers import Edge
from wrackline.checkers.exact.transactions.levels import Order
from wrackline.checkers.exact.transactions.precedence import Precedence, bits
from wrackline.checkers.exact.transactions.registers import FIRST, Reading

MOST_CLOSED = 10_000
"""Transactions of which it is worked out who comes before whom: a bit for each two of them, twice. Of more
it is worked out in windows."""
WINDOW = 2_000
"""Transactions of a window, in order of invocation. Each has half of the one before it."""


def add_reads(graph: Precedence, reading: Reading) -> None:
    for (key, writer), readers in _readers(graph, reading).items():
        if writer != FIRST:
            value = reading.writes[writer][key]
            for row in readers:
                graph.add(Edge("wr", writer, row, key, value))


def begin(graph: Precedence, reading: Reading) -> None:
    """Add what is known of who wrote over what was read, as far as it needs no more than real time."""
    wrote = _writers(graph, reading)
    by_end = {key: sorted(rows, key=graph.ret) for key, rows in wrote.items()}
    for (key, writer), readers in _readers(graph, reading).items():
        # It read what it wrote over.
        later = (
            wrote.get(key, []) if writer == FIRST else [row for row in readers if key in reading.writes[row]]
        )
        if graph.order is Order.REALTIME:
            later = [*later] if writer != FIRST else []
            end = BEFORE if writer == FIRST else min(map(graph.ret, (writer, *readers)))
            later += _next(graph, wrote.get(key, []), end)
            if writer != FIRST:
                _add_earlier(graph, reading, key, writer, readers, by_end[key])
        for row in readers:
            for other in later:
                if row != other != writer and not graph.in_time(row, other):
                    assumed = writer != FIRST and other not in readers
                    graph.add(_overwrote(reading, row, other, key, writer), assumed=assumed)


def _next(graph: Precedence, rows: list[int], end: int) -> list[int]:
    """Returns those of ``rows``, in order of invocation, that were invoked after ``end``; without those
    that come after one of these anyway."""
    result, until = [], NEVER
    for row in rows[bisect_right(rows, end, key=graph.inv) :]:
        if graph.inv(row) > until:
            break
        until = min(until, graph.ret(row))
        result.append(row)
    return result


def _add_earlier(
    graph: Precedence, reading: Reading, key: int, writer: int, readers: list[int], by_end: list[int]
) -> None:
    """Adds a ww edge to ``writer`` from each transaction that wrote ``key`` before somebody read what
    ``writer`` wrote: it wrote before that one."""
    last = max(readers, key=graph.inv)
    since = BEFORE
    for other in reversed(by_end[: bisect_left(by_end, graph.inv(last), key=graph.ret)]):
        if graph.ret(other) < since:
            break
        since = max(since, graph.inv(other))
        if other not in (writer, last) and not graph.in_time(other, writer):
            values = reading.writes[other][key], reading.writes[writer][key]
            graph.add(Edge("ww", other, writer, key, *values), assumed=True)


def saturate(graph: Precedence, reading: Reading) -> bool:
    """Add what follows; False as soon as there is a cycle."""
    if graph.sorted() is None:
        return False
    if len(graph) <= MOST_CLOSED:
        return _saturate(graph, reading)
    for window in windows(graph):
        add_reads(window, reading)
        begin(window, reading)
        in_order = _saturate(window, reading)
        for at, edge in window.why.items():
            graph.add(edge, assumed=at in window.assumed)
        if not in_order:
            return False
    return graph.sorted() is not None


def windows(graph: Precedence) -> Iterator[Precedence]:
    for start in range(0, len(graph), WINDOW // 2):
        yield Precedence(graph.txns[start : start + WINDOW], graph.order)


def _saturate(graph: Precedence, reading: Reading) -> bool:
    wrote = {key: _mask(graph, rows) for key, rows in _writers(graph, reading).items() if len(rows) > 1}
    readers = [
        (key, writer, [graph.node[row] for row in rows])
        for (key, writer), rows in _readers(graph, reading).items()
        if key in wrote and writer != FIRST
    ]
    while True:
        order = graph.sorted()
        if order is None:
            return False
        later, earlier = closure(graph, order)
        grew = False
        for key, writer, nodes in readers:
            at = graph.node[writer]
            behind, not_before = wrote[key] & later[at], wrote[key] & ~earlier[at] & ~(1 << at)
            for node in nodes:
                me = 1 << node
                for other in bits(behind & ~later[node] & ~me):
                    edge = _overwrote(reading, graph.txns[node].row, graph.txns[other].row, key, writer)
                    grew |= graph.add(edge, assumed=True)
                for other in bits(earlier[node] & not_before & ~me):
                    row = graph.txns[other].row
                    values = reading.writes[row][key], reading.writes[writer][key]
                    grew |= graph.add(Edge("ww", row, writer, key, *values), assumed=True)
        if not grew:
            return True


def closure(graph: Precedence, order: list[int]) -> tuple[list[int], list[int]]:
    """Returns for each transaction the set of those that come after it, and of those that come before it,
    as bits."""
    n, size = len(graph), len(graph.after)
    later, earlier = [0] * size, [0] * size
    for node in reversed(order):
        result = 0
        for after in graph.after[node]:
            result |= later[after] | (1 << after if after < n else 0)
        later[node] = result
    for node in order:
        mine = earlier[node] | (1 << node if node < n else 0)
        for after in graph.after[node]:
            earlier[after] |= mine
    return later[:n], earlier[:n]


def _overwrote(reading: Reading, before: int, after: int, key: int, writer: int) -> Edge:
    value = None if writer == FIRST else reading.writes[writer][key]
    return Edge("rw", before, after, key, value, reading.writes[after][key])


def _writers(graph: Precedence, reading: Reading) -> dict[int, list[int]]:
    result: dict[int, list[int]] = defaultdict(list)
    for one in graph.txns:
        for key in reading.writes[one.row]:
            result[key].append(one.row)
    return result


def _readers(graph: Precedence, reading: Reading) -> dict[tuple[int, int], list[int]]:
    result: dict[tuple[int, int], list[int]] = defaultdict(list)
    for one in graph.txns:
        for key, writer in reading.reads[one.row].items():
            if writer == FIRST or writer in graph.node:
                result[key, writer].append(one.row)
    return result


def _mask(graph: Precedence, rows: list[int]) -> int:
    result = 0
    for row in rows:
        result |= 1 << graph.node[row]
    return result
