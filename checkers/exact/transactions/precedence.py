"""The precedence of transactions, as a graph, and its cycles: where there is a cycle, there is no order of
all transactions."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from wrackline.checkers.exact.operations import NEVER
from wrackline.checkers.exact.transactions.answers import Edge
from wrackline.checkers.exact.transactions.levels import Order
from wrackline.checkers.exact.transactions.rows import Txn

_MOST_BEGUN = 200
"""Transactions from which a shortest cycle is looked for."""


class Precedence:
    """The transactions are nodes 0, 1, ..., in order of invocation. Real time is a chain of nodes behind
    them, one for each completion: a transaction leads to its own, and each leads to the next one and to what
    was invoked then. So there are few edges, where there would be one for each two transactions."""

    def __init__(self, txns: Iterable[Txn], order: Order) -> None:
        self.txns = sorted(txns, key=lambda one: (one.inv, one.row))
        self.node = {one.row: at for at, one in enumerate(self.txns)}
        self.why: dict[tuple[int, int], Edge] = {}
        self.assumed: set[tuple[int, int]] = set()
        """Edges that follow from others only because there must be an order of all transactions."""
        self.after: list[list[int]] = [[] for _ in self.txns]
        self.order = order
        if order is Order.REALTIME:
            self._add_time()
        elif order is Order.PROCESS:
            self._add_processes()

    def __len__(self) -> int:
        """Returns the number of transactions."""
        return len(self.txns)

    def add(self, edge: Edge, *, assumed: bool = False) -> bool:
        """Adds an edge; tells whether it is new."""
        at = self.node[edge.before], self.node[edge.after]
        if at in self.why:
            if not assumed and at in self.assumed:
                self.assumed.discard(at)
                self.why[at] = edge
            return False
        self.why[at] = edge
        self.after[at[0]].append(at[1])
        if assumed:
            self.assumed.add(at)
        return True

    def inv(self, row: int) -> int:
        return self.txns[self.node[row]].inv

    def ret(self, row: int) -> int:
        return self.txns[self.node[row]].ret

    def in_time(self, before: int, after: int) -> bool:
        """Tells whether real time alone has the one transaction before the other."""
        one, other = self.txns[self.node[before]], self.txns[self.node[after]]
        return self.order is Order.REALTIME and one.ret < other.inv

    def _add_time(self) -> None:
        completed = sorted((one.ret, at) for at, one in enumerate(self.txns) if one.ret != NEVER)
        n, times = len(self.txns), [ret for ret, _ in completed]
        self.after += [[n + at + 1] for at in range(len(completed))]
        if completed:
            self.after[-1] = []
        for time, (_, node) in enumerate(completed):
            self.after[node].append(n + time)
        for node, one in enumerate(self.txns):
            before = bisect_left(times, one.inv)
            if before:
                self.after[n + before - 1].append(node)

    def _add_processes(self) -> None:
        last: dict[int, Txn] = {}
        for one in self.txns:
            if one.process in last:
                self.add(Edge("process", last[one.process].row, one.row, process=one.process))
            last[one.process] = one

    def sorted(self) -> list[int] | None:
        """All nodes in order; None where there is a cycle."""
        waits = [0] * len(self.after)
        for many in self.after:
            for node in many:
                waits[node] += 1
        result = [node for node, count in enumerate(waits) if not count]
        for node in result:
            for after in self.after[node]:
                waits[after] -= 1
                if not waits[after]:
                    result.append(after)
        return result if len(result) == len(self.after) else None

    def cycle(self) -> tuple[str, list[Edge]]:
        """The worst kind of cycle that there is, by Elle's name, and one of the shortest of that kind. There
        must be one."""
        certain = [at for at in self.why if at not in self.assumed]
        for kinds in (("ww",), ("ww", "wr"), ("ww", "wr", "rw")):
            result = self._shortest([at for at in certain if self.why[at].kind in kinds])
            if result:
                return _name(result), result
        if self.order is Order.NONE:
            result = self._shortest(list(self.why))
            return _name(result), result
        everything = [(node, after) for node, many in enumerate(self.after) for after in many]
        # What was read says more than what was written and never read.
        read = [at for at in everything if at not in self.assumed or self.why[at].kind == "rw"]
        result = (
            self._shortest([at for at in read if at not in self.assumed])
            or self._shortest(read)
            or self._shortest(everything)
        )
        return f"{_name(result)}-{self.order}", result

    def _shortest(self, edges: Sequence[tuple[int, int]]) -> list[Edge]:
        """Empty where these have no cycle."""
        if not edges:
            return []
        size = len(self.after)
        before, after = np.array(edges, dtype=np.int32).T
        matrix = coo_array((np.ones(len(edges), np.int8), (before, after)), shape=(size, size))
        count, part = connected_components(matrix.tocsr(), directed=True, connection="strong")
        sizes = np.bincount(part, minlength=count)
        cyclic = np.flatnonzero(sizes > 1)
        if not len(cyclic):
            return []
        inside = (part[before] == part[after]) & (sizes[part[before]] > 1)
        reach: dict[int, list[int]] = {}
        for one, other in zip(before[inside].tolist(), after[inside].tolist(), strict=True):
            reach.setdefault(one, []).append(other)
        best: list[int] = []
        begun = sorted(
            (node for node in reach if node < len(self)), key=lambda node: (sizes[part[node]], node)
        )
        for node in begun[:_MOST_BEGUN]:
            result = self._back_to(node, reach, len(best) or size)
            if result and (not best or len(result) < len(best)):
                best = result
            if len(best) == 2:
                break
        return [self._edge(one, other) for one, other in zip(best, [*best[1:], best[0]], strict=True)]

    def _back_to(self, start: int, reach: dict[int, list[int]], most: int) -> list[int]:
        """The transactions on a shortest way from one back to itself, if they are fewer than ``most``; a step
        in time costs nothing."""
        n, far, came = len(self), {start: 0}, dict[int, int]()
        todo = deque([start])
        while todo:
            node = todo.popleft()
            for other in reach.get(node, ()):
                if other == start:
                    way = [node]
                    while way[-1] != start:
                        way.append(came[way[-1]])
                    return [one for one in reversed(way) if one < n]
                cost = far[node] + (other < n)
                if cost < far.get(other, most):
                    far[other], came[other] = cost, node
                    (todo.append if other < n else todo.appendleft)(other)
        return []

    def _edge(self, before: int, after: int) -> Edge:
        result = self.why.get((before, after))
        return result or Edge("realtime", self.txns[before].row, self.txns[after].row)


def _name(cycle: Sequence[Edge]) -> str:
    reads = [edge.kind == "rw" for edge in cycle]
    if not any(reads):
        return "G1c" if any(edge.kind == "wr" for edge in cycle) else "G0"
    if sum(reads) == 1:
        return "G-single-item"
    near = any(one and other for one, other in zip(reads, [*reads[1:], reads[0]], strict=True))
    return "G2-item" if near else "G-nonadjacent-item"


def bits(mask: int) -> Iterator[int]:
    """The places of the ones."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
