"""A search for an order of transactions over registers.

Nothing is placed that writes over what somebody without a place has yet to read. So it is known what each
register holds that anybody has yet to read, and a state of the search is no more than the set of those that
have their place: with c transactions open at once there are at most 2^c of these at a time.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.answers import Impasse
from wrackline.checkers.exact.transactions.levels import Order
from wrackline.checkers.exact.transactions.precedence import Precedence
from wrackline.checkers.exact.transactions.registers import FIRST, Reading
from wrackline.checkers.exact.transactions.saturation import MOST_CLOSED, closure, windows

_PER_STATE = 120
"""Bytes of a set that was looked at."""
_STEPS = 200
"""States between two looks at the clock."""
_MOST_SHOWN = 12
PROGRESS_S = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    deadline_s: float
    memory_bytes: int


class Placement:
    """Nodes are those of the graph, which has no cycle."""

    def __init__(self, graph: Precedence, reading: Reading) -> None:
        self._graph = graph
        node = graph.node | {FIRST: FIRST}
        self._reads = [
            {key: node[writer] for key, writer in reading.reads[one.row].items()} for one in graph.txns
        ]
        self._values = [reading.writes[one.row] for one in graph.txns]
        self._writes = [tuple(values) for values in self._values]
        self._left: dict[tuple[int, int], int] = defaultdict(int)
        """Of (key, who wrote it): how many have yet to read that."""
        for reads in self._reads:
            for version in reads.items():
                self._left[version] += 1
        self._rivals = self._all_rivals()
        self._holds: dict[int, int] = defaultdict(lambda: FIRST)
        self._waits = [0] * len(graph.after)
        for many in graph.after:
            for after in many:
                self._waits[after] += 1
        self._placed = bytearray(len(graph))
        draw = random.Random(0).getrandbits
        self._names = [draw(128) for _ in graph.txns]
        self._name = 0
        """Of the set of those that have their place: two sets share one as good as never."""
        self._ready: set[int] = set()
        self._trail: list[tuple[int, list[int]]] = []
        """(who was placed, what its keys held)."""
        for at, count in enumerate(list(self._waits)):
            if not count:
                self._is_ready(at)

    def _all_rivals(self) -> list[list[int]]:
        """Returns the rivals of each transaction: those that may come before it and write what others read
        of it."""
        graph = self._graph
        writers: dict[int, list[int]] = defaultdict(list)
        for at, keys in enumerate(self._writes):
            for key in keys:
                writers[key].append(at)
        result: list[list[int]] = []
        near = self._near(writers) if graph.order is Order.REALTIME else (lambda key, _at: writers[key])
        for at, keys in enumerate(self._writes):
            read = [key for key in keys if self._left[key, at]]
            result.append(sorted({other for key in read for other in near(key, at)} - {at}))
        # Each is in two windows, in the second with half a window before it and as much after it.
        for window in [graph] if len(graph) <= MOST_CLOSED else windows(graph):
            order = window.sorted()
            assert order is not None
            after, _ = closure(window, order)
            for at, one in enumerate(window.txns):
                node = graph.node[one.row]
                result[node] = [
                    other
                    for other in result[node]
                    if not after[at] >> window.node.get(graph.txns[other].row, len(window)) & 1
                ]
        return result

    def _near(self, writers: dict[int, list[int]]) -> Callable[[int, int], list[int]]:
        """Returns a function from a key and a transaction to those that wrote the key and of which real
        time does not say whether they are before or after the transaction."""
        txns = self._graph.txns
        ends = [one.ret for one in txns]
        for at, reads in enumerate(self._reads):
            for writer in reads.values():
                if writer != FIRST:
                    ends[writer] = min(ends[writer], txns[at].ret)
        begins = {key: [txns[at].inv for at in each] for key, each in writers.items()}
        latest = {key: list(accumulate((ends[at] for at in each), max)) for key, each in writers.items()}

        def near(key: int, at: int) -> list[int]:
            first = bisect_left(latest[key], txns[at].inv)
            last = bisect_right(begins[key], ends[at])
            return [other for other in writers[key][first:last] if ends[other] >= txns[at].inv]

        return near

    def _is_ready(self, node: int) -> None:
        """A completion in time is passed at once."""
        n = len(self._graph)
        todo = [node]
        while todo:
            one = todo.pop()
            if one < n:
                self._ready.add(one)
                continue
            for after in self._graph.after[one]:
                self._waits[after] -= 1
                if not self._waits[after]:
                    todo.append(after)

    def _is_blocked(self, node: int) -> int | None:
        """The key that it would write over too early."""
        reads = self._reads[node]
        for key in self._writes[node]:
            version = key, self._holds[key]
            if self._left[version] > (key in reads):
                return key
        return None

    def _is_safe(self, node: int) -> bool:
        """Tells whether the transaction can be moved to here in every order that has it later."""
        placed = self._placed
        return all(placed[rival] for rival in self._rivals[node])

    def _place(self, node: int) -> None:
        held = []
        for version in self._reads[node].items():
            self._left[version] -= 1
        for key in self._writes[node]:
            held.append(self._holds[key])
            self._holds[key] = node
        self._trail.append((node, held))
        self._ready.discard(node)
        self._placed[node] = 1
        self._name ^= self._names[node]
        for after in self._graph.after[node]:
            self._waits[after] -= 1
            if not self._waits[after]:
                self._is_ready(after)

    def _take_back(self) -> None:
        node, held = self._trail.pop()
        n = len(self._graph)
        todo = [node]
        while todo:
            for after in self._graph.after[todo.pop()]:
                if not self._waits[after]:
                    if after < n:
                        self._ready.discard(after)
                    else:
                        todo.append(after)
                self._waits[after] += 1
        for key, before in zip(self._writes[node], held, strict=True):
            self._holds[key] = before
        for version in self._reads[node].items():
            self._left[version] += 1
        self._placed[node] = 0
        self._name ^= self._names[node]
        self._ready.add(node)

    def _place_safe(self) -> None:
        grew = True
        while grew:
            grew = False
            for node in list(self._ready):
                if self._is_safe(node) and self._is_blocked(node) is None:
                    self._place(node)
                    grew = True

    def search(self, limits: Limits, progress: Callable[[str], None]) -> tuple[Answer, str, Impasse | None]:
        """The answer, of UNKNOWN why, of INVALID where it got stuck."""
        txns, until = self._graph.txns, time.monotonic() + limits.deadline_s
        show_at = time.monotonic() + PROGRESS_S
        seen: set[int] = set()
        steps, best, impasse = 0, -1, None
        choices: list[tuple[int, list[int], int]] = []
        """(length of the trail, what is left to try there, the set that was placed)."""
        while True:
            self._place_safe()
            if len(self._trail) == len(txns):
                return Answer.VALID, "", None
            state = self._name
            options: list[int] = []
            if state not in seen:
                options = [node for node in self._ready if self._is_blocked(node) is None]
                options.sort(key=lambda node: -txns[node].ret)
            if not options and len(self._trail) > best:
                best, impasse = len(self._trail), self._impasse()
            choices.append((len(self._trail), options, state))
            while choices and not choices[-1][1]:
                _, _, done = choices.pop()
                seen.add(done)
            if not choices:
                return Answer.INVALID, "", impasse
            length, left, _ = choices[-1]
            while len(self._trail) > length:
                self._take_back()
            self._place(left.pop())
            steps += 1
            if steps % _STEPS:
                continue
            now = time.monotonic()
            so_far = f"{best:,} of {len(txns):,} have a place, {len(seen):,} sets of them were tried"
            if now > until:
                return Answer.UNKNOWN, f"no answer within {limits.deadline_s:g} s: {so_far}", None
            if len(seen) * _PER_STATE > limits.memory_bytes:
                why = f"{limits.memory_bytes >> 20} MB of memory are used up: {so_far}"
                return Answer.UNKNOWN, why, None
            if now > show_at:
                show_at = now + PROGRESS_S
                progress(so_far)

    def _impasse(self) -> Impasse:
        txns, blocked = self._graph.txns, []
        for node in sorted(self._ready, key=lambda one: txns[one].ret):
            key = self._is_blocked(node)
            if key is None:
                continue
            version = self._holds[key]
            reader = next(
                at
                for at, reads in enumerate(self._reads)
                if reads.get(key) == version and at != node and not self._placed[at]
            )
            held = None if version == FIRST else self._values[version][key]
            blocked.append((txns[node].row, key, held, txns[reader].row))
        open_ones = [one for at, one in enumerate(txns) if not self._placed[at]]
        return Impasse(
            min(open_ones, key=lambda one: (one.ret, one.inv)).row,
            tuple(txns[node].row for node, _ in self._trail[-_MOST_SHOWN:]),
            tuple(blocked[:_MOST_SHOWN]),
        )
