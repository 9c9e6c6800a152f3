"""Columns of integers in few bytes: how facts travel through Spark's shuffles.

A row of a shuffle is a *packet*: some hundred to some hundred thousand facts of one kind about one place of a
log, as one binary value. Spark sorts, spills and moves packets; what is in them only numpy looks at. A column
is stored as its distance from its smallest value, in as few bytes as that needs, so that a column that says
nothing costs nothing. ``NONE`` is the null.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

import numpy as np
import pyarrow as pa

from wrackline.checkers.inputs.arrays import NONE, Bools, Ints

VALUES, AGAIN = -(1 << 60), 1 - (1 << 60)
"""Owners of what is found by value; of what was found in a second round."""
SENDERS = -(1 << 59)
"""Owners from here down: of what each process sent (wrackline.checkers.engine.unacknowledged)."""

SCHEMA = "owner bigint, chunk bigint, kind int, n bigint, data binary"
ARROW = pa.schema(
    [
        ("owner", pa.int64()),
        ("chunk", pa.int64()),
        ("kind", pa.int32()),
        ("n", pa.int64()),
        ("data", pa.binary()),
    ]
)
_COLUMN = struct.Struct("<qB")
_TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_HAS_NONE = 16


class Kind(IntEnum):
    """What a packet holds. ``COLUMNS`` says which columns."""

    META = 0
    FINAL = 1
    POLL = 2
    REPLICA = 3
    ACK = 4
    END = 5
    ASKED = 6
    JUMP = 7
    SESSION = 8
    FLOOR = 9
    EPOCH = 10
    EDGE = 11
    GAP = 12
    TALLY = 13
    HOMELESS = 14
    SENT = 15
    SUSPECT = 16
    SUMMARY = 17
    PUT = 18
    """Kinds from here on are of registers and queues (wrackline.checkers.engine.object_values,
    wrackline.checkers.engine.object_times)."""
    GET = 19
    UNSURE = 20
    EMPTY = 21
    ZONE = 22
    LIFE = 23
    REACH = 24
    SOONEST = 25
    LEFT = 26
    BREACH = 27
    MATE = 28
    """Records in the order of their sends (wrackline.checkers.engine.unacknowledged)."""
    UNTOLD = 29


TIMES = ("invoke_index", "invoke_ns", "complete_index", "complete_ns")
SEND = ("log", "value", "process", "outcome", "sent_offset", "rank", *TIMES)
"""``rank``: the place of a record in its send."""
CALL = ("inv", "ret", "inv_ns", "ret_ns", "process")
"""An operation on an object. ``ret`` and ``ret_ns`` are NONE where it did not return, or nobody knows whether
it happened."""


def calls(*names: str) -> tuple[str, ...]:
    """The columns of several operations: ``put_inv``, ..."""
    return tuple(f"{name}_{part}" for name in names for part in CALL)


BELOW = ("below", "below_ns", "below_done", "below_done_ns", "below_offset", "below_value")
"""Of the acknowledged records that lie below one in the final read that which was sent last: when it was
invoked, when it was acknowledged, and its place."""
SLOTS = 8
"""Operations that a breach tells."""
_ZONE = ("value", *calls("write", "first", "last"))
_LIFE = ("value", "role", *calls("put", "got"))
COLUMNS: Mapping[Kind, tuple[str, ...]] = {
    Kind.FINAL: ("offset", "value", "index", "ns"),
    Kind.POLL: ("offset", "value", "index", "ns"),
    Kind.REPLICA: ("offset", "value", "index", "epoch", "bit", "committed"),
    Kind.ACK: ("offset", "value", "process", *TIMES),
    Kind.END: ("offset", "process", *TIMES),
    Kind.ASKED: ("offset", "process", *TIMES),
    Kind.JUMP: ("offset", "told", "process", "invoke_index", "complete_index", "complete_ns"),
    Kind.SESSION: ("offset", "value", "earlier_offset", "earlier_value", "earlier_index"),
    Kind.FLOOR: ("offset",),
    Kind.EPOCH: ("node", "epoch", "first", "last", "index", "last_index"),
    Kind.EDGE: ("what", "last", "process", "order", "offset", "next", "value", "index", "ns"),
    Kind.GAP: ("fault", "before", "at"),
    Kind.TALLY: ("key", "n", "slowest"),
    Kind.HOMELESS: SEND,
    Kind.SENT: SEND,
    Kind.MATE: ("log", "offset", "value", "process", "rank", *TIMES),
    Kind.UNTOLD: (
        *("log", "offset", "value", "process", "outcome", "rank", *TIMES, "final_index", "told", "late"),
        *BELOW,
    ),
    Kind.PUT: ("log", "value", "failed", *CALL),
    Kind.GET: ("log", "value", *CALL),
    Kind.UNSURE: ("inv",),
    Kind.EMPTY: ("pieces", *CALL),
    Kind.ZONE: _ZONE,
    Kind.LIFE: _LIFE,
    Kind.REACH: ("chunk", *dict.fromkeys((*_ZONE, *_LIFE))),
    Kind.SOONEST: ("chunk", *_LIFE),
    Kind.LEFT: ("chunk", "count", *_LIFE),
    Kind.BREACH: (
        *("log", "rule", "value", "other", "contradicted", "key", "order", "pieces"),
        *calls(*(f"c{slot}" for slot in range(SLOTS))),
    ),
}


class Rows:
    """Columns of one length, by name."""

    def __init__(self, columns: Mapping[str, Ints], size: int | None = None) -> None:
        self.columns = dict(columns)
        self.size = size if size is not None else len(next(iter(self.columns.values())))

    def __getattr__(self, name: str) -> Ints:
        if name == "columns":
            raise AttributeError(name)  # pickle asks before they are there
        try:
            return self.columns[name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return self.size

    def take(self, rows: Ints | Bools) -> Rows:
        return Rows(
            {name: column[rows] for name, column in self.columns.items()},
            int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows),
        )

    def completed(self, names: Sequence[str]) -> Rows:
        """With all the columns named, in their order; those that are not there are NONE."""
        there = {
            name: self.columns[name] if name in self.columns else np.full(self.size, NONE) for name in names
        }
        return Rows(there, self.size)


def together(parts: Sequence[Rows], names: Sequence[str]) -> Rows:
    """One after another; columns that a part lacks are NONE."""
    if not parts:
        return Rows({name: np.zeros(0, dtype=np.int64) for name in names}, 0)
    whole = [part.completed(names) for part in parts]
    return Rows({name: np.concatenate([part.columns[name] for part in whole]) for name in names})


def pack(columns: Sequence[Ints]) -> bytes:
    parts = []
    for column in columns:
        if not len(column):
            parts.append(_COLUMN.pack(0, 0))
            continue
        low, high = int(column.min()), int(column.max())
        flag = 0
        if low == NONE:
            known = column[column != NONE]
            if not len(known):
                parts.append(_COLUMN.pack(NONE, 0))
                continue
            flag, low, high = _HAS_NONE, int(known.min()) - 1, int(known.max())
            column = np.where(column == NONE, low, column)
        width = next(w for w in (0, 1, 2, 4, 8) if high - low < 1 << (8 * w))
        parts.append(_COLUMN.pack(low, width | flag))
        if width:
            parts.append((column - low).astype(_TYPES[width]).tobytes())
    return b"".join(parts)


def unpack(data: bytes, n: int, names: Sequence[str]) -> Rows:
    found, at = {}, 0
    for name in names:
        low, flags = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        width = flags & ~_HAS_NONE
        if not width:
            column = np.full(n, low, dtype=np.int64)
        else:
            raw = np.frombuffer(data, _TYPES[width], n, at)
            at += n * width
            column = raw.astype(np.int64) + low
            if flags & _HAS_NONE:
                column[raw == 0] = NONE
        found[name] = column
    return Rows(found, n)


class Writer:
    """Gathers packets and gives them as Arrow batches of a bounded size."""

    def __init__(self, limit_bytes: int = 4 << 20) -> None:
        self.limit = limit_bytes
        self._rows: list[tuple[int, int, int, int, bytes]] = []
        self._bytes = 0

    def put(self, owner: int, chunk: int, kind: Kind, n: int, data: bytes) -> None:
        self._rows.append((owner, chunk, int(kind), n, data))
        self._bytes += len(data) + 64

    def rows(
        self, owner: int, chunk: int, kind: Kind, rows: Rows, names: Sequence[str] | None = None
    ) -> None:
        """One packet of rows that all belong to one chunk."""
        if len(rows):
            wanted = names if names is not None else COLUMNS[kind]
            self.put(owner, chunk, kind, len(rows), pack([rows.columns[name] for name in wanted]))

    def spread(self, kind: Kind, owner: Ints, chunk: Ints, columns: Sequence[Ints]) -> None:
        """A packet for each (owner, chunk) that occurs; within one the order of rows stays."""
        if not len(owner):
            return
        order = np.lexsort((chunk, owner))
        owner, chunk = owner[order], chunk[order]
        new = np.flatnonzero(np.diff(owner).astype(bool) | np.diff(chunk).astype(bool)) + 1
        bounds = [0, *new.tolist(), len(order)]
        straight = len(bounds) == 2
        data = [column if straight else column[order] for column in columns]
        for lo, hi in itertools.pairwise(bounds):
            self.put(int(owner[lo]), int(chunk[lo]), kind, hi - lo, pack([column[lo:hi] for column in data]))

    def batches(self, *, everything: bool = False) -> Iterator[pa.RecordBatch]:
        if self._rows and (everything or self._bytes >= self.limit):
            for rows in _portions(self._rows, self.limit):
                columns = list(zip(*rows, strict=True))
                yield pa.RecordBatch.from_arrays(
                    [pa.array(column, field.type) for column, field in zip(columns, ARROW, strict=True)],
                    schema=ARROW,
                )
            self._rows, self._bytes = [], 0


def _portions(
    rows: Sequence[tuple[int, int, int, int, bytes]], limit: int
) -> Iterator[list[tuple[int, int, int, int, bytes]]]:
    portion, size = [], 0
    for row in rows:
        portion.append(row)
        size += len(row[-1])
        if size >= limit:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


Packet = tuple[int, int, Kind, int, bytes]


def packets(batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
    """(owner, chunk, kind, n, data) of each packet, one batch at a time."""
    for batch in batches:
        owners, chunks, kinds, sizes = (
            batch.column(at).to_numpy(zero_copy_only=False).tolist() for at in range(4)
        )
        data = batch.column(4)
        for at, (owner, chunk, kind, n) in enumerate(zip(owners, chunks, kinds, sizes, strict=True)):
            yield owner, chunk, Kind(kind), n, data[at].as_buffer().to_pybytes()


def grouped(*keys: Ints) -> tuple[Ints, Bools, Bools]:
    """(order, starts, ends): a stable order by the keys, and where in it each group begins and ends."""
    order = np.lexsort(keys[::-1])
    changes = np.zeros(max(0, len(order) - 1), dtype=bool)
    for key in keys:
        changes |= np.diff(key[order]) != 0
    edge = np.ones(min(1, len(order)), dtype=bool)
    return order, np.concatenate([edge, changes]), np.concatenate([changes, edge])
