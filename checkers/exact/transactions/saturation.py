"""What follows from what registers were read to hold.

Who reads what another wrote comes after it. A third who wrote the same register was before the one that
wrote, or is after the one that read; where it is known to be after the first or before the second, only one
of these is left. What is known grows until nothing follows any more (as in Cobra, Tan et al., OSDI 2020).
"""

from __future__ import annotations

from collections import defaultdict

from wrackline.checkers.exact.transactions.answers import Edge
from wrackline.checkers.exact.transactions.precedence import Precedence, bits
from wrackline.checkers.exact.transactions.registers import FIRST, Reading

MOST_CLOSED = 10_000
"""Transactions of which it is worked out who comes before whom: a bit for each two of them, twice."""


def begin(graph: Precedence, reading: Reading) -> None:
    """Add what is known without knowing an order."""
    wrote = _writers(graph, reading)
    for one in graph.txns:
        for key, writer in reading.reads[one.row].items():
            if writer != FIRST:
                value = reading.writes[writer][key]
                graph.add(Edge("wr", writer, one.row, key, value))
    for (key, writer), readers in _readers(graph, reading).items():
        if writer == FIRST:
            later = wrote.get(key, []) if len(graph) <= MOST_CLOSED else []
        else:
            # It read what it wrote over.
            later = [row for row in readers if key in reading.writes[row]]
        for row in readers:
            for other in later:
                if other != row and not graph.in_time(row, other):
                    graph.add(_overwrote(reading, row, other, key, writer))


def saturate(graph: Precedence, reading: Reading) -> bool:
    """Add what follows; False as soon as there is a cycle. Of too many transactions nothing is worked out."""
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
        if len(graph) > MOST_CLOSED:
            return True
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
    """Of each transaction the set of those that come after it, and of those that come before it, as bits."""
    n, size = len(graph), len(graph.after)
    later, earlier = [0] * size, [0] * size
    for node in reversed(order):
        found = 0
        for after in graph.after[node]:
            found |= later[after] | (1 << after if after < n else 0)
        later[node] = found
    for node in order:
        mine = earlier[node] | (1 << node if node < n else 0)
        for after in graph.after[node]:
            earlier[after] |= mine
    return later[:n], earlier[:n]


def _overwrote(reading: Reading, before: int, after: int, key: int, writer: int) -> Edge:
    value = None if writer == FIRST else reading.writes[writer][key]
    return Edge("rw", before, after, key, value, reading.writes[after][key])


def _writers(graph: Precedence, reading: Reading) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for one in graph.txns:
        for key in reading.writes[one.row]:
            found[key].append(one.row)
    return found


def _readers(graph: Precedence, reading: Reading) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for one in graph.txns:
        for key, writer in reading.reads[one.row].items():
            found[key, writer].append(one.row)
    return found


def _mask(graph: Precedence, rows: list[int]) -> int:
    found = 0
    for row in rows:
        found |= 1 << graph.node[row]
    return found
