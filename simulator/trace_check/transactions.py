"""The steps of a broker that rest on a transaction of ZooKeeper, and the other way round.

A broker's trace says what it asks ZooKeeper to write (``zk_ask``, by session and path) and the newest
transaction that an answer has told it of (``zk``). ZooKeeper's own log has the transactions (``zk_write``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence

from wrackline.broker.model.types import NodeId
from wrackline.simulator.trace_check.lines import Line, Step

ASK, HEARD, WRITE = "zk_ask", "zk", "zk_write"
Key = tuple[int, str]
"""Session, path."""


class Transactions:
    """The transactions that have been taken, and the writes that were asked for."""

    def __init__(self, streams: Mapping[NodeId, Sequence[Step]]) -> None:
        self._zxids: list[int] = []
        self._turns: dict[tuple[int, str], int] = {}
        """(transaction, path) -> which of the writes that this session has done there."""
        self._all: Counter[Key] = Counter()
        self._asked: Counter[Key] = Counter()
        self._done = 0
        """The last transaction taken."""
        writes: Counter[Key] = Counter()
        for line in (line for steps in streams.values() for step in steps for line in step.lines):
            if line.kind == ASK:
                self._all[_key(line)] += 1
            elif line.kind == WRITE:
                zxid, key = line.fields["zxid"], _key(line)
                writes[key] += 1
                self._turns[zxid, key[1]] = writes[key]
                self._zxids.append(zxid)
        self._zxids.sort()

    def caused(self, line: Line) -> bool:
        """Tells whether all that the line rests on has been taken. The n-th write of a session at a path
        rests on the n-th time that it asked, if the trace has that."""
        fields = line.fields
        match line.kind:
            case "zk":
                at = bisect_right(self._zxids, fields["zxid"])
                return at == 0 or self._done >= self._zxids[at - 1]
            case "zk_write":
                key, turn = _key(line), self._turns[fields["zxid"], fields["path"]]
                return not key[0] or self._all[key] < turn or self._asked[key] >= turn
            case _:
                return True

    def took(self, line: Line) -> None:
        if line.kind == ASK:
            self._asked[_key(line)] += 1
        elif line.kind == WRITE:
            self._done = max(self._done, line.fields["zxid"])


def _key(line: Line) -> Key:
    return line.fields["session"], line.fields["path"]
