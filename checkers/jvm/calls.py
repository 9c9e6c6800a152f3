"""Histories for Knossos and Elle as columns of int64, the form in which they cross into the JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

import numpy as np

from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns, Ints
from wrackline.checkers.exact.transactions.columns import NIL

EMPTY = NIL + 1
"""``a`` of a dequeue that found the queue empty."""


class Model(StrEnum):
    """Sequential objects that Knossos knows. With unique values ``register`` and ``fifo-queue`` have exact
    checks that need no search (wrackline.checkers.exact.register, wrackline.checkers.exact.queue)."""

    REGISTER = "register"
    CAS_REGISTER = "cas-register"
    MULTI_REGISTER = "multi-register"
    MUTEX = "mutex"
    SET = "set"
    UNORDERED_QUEUE = "unordered-queue"
    FIFO_QUEUE = "fifo-queue"
    LOG = "log"
    """Append-only, with contiguous offsets (wrackline.checkers.exact.log): all that was ever done to
    it."""
    SOME_OF_LOG = "some-of-log"
    """Some operations of such a log: others may have appended anything, at any time."""


class Shape(IntEnum):
    """The shape of an operation's value."""

    NONE = 0
    ONE = 1
    PAIR = 2
    """[a b]"""
    ELEMENTS = 3
    """The set of ``flat[a:b]``."""
    PLACED = 4
    """[a b]; b is NIL where no offset was told."""
    RECORDS = 5
    """``flat[a:b]``: the range of offsets [from, to) that a read covered whole (0, 0: none), then offset,
    value and whether nobody here appended it (0 or 1), record by record."""
    TXN = 6
    """``flat[a:b]``: whether it writes (0 or 1), key and value, one micro-operation after another."""


SHAPES: Mapping[Model, Mapping[str, Shape]] = {
    Model.REGISTER: {"write": Shape.ONE, "read": Shape.ONE},
    Model.CAS_REGISTER: {"write": Shape.ONE, "read": Shape.ONE, "cas": Shape.PAIR},
    Model.MULTI_REGISTER: {"txn": Shape.TXN},
    Model.MUTEX: {"acquire": Shape.NONE, "release": Shape.NONE},
    Model.SET: {"add": Shape.ONE, "read": Shape.ELEMENTS},
    Model.UNORDERED_QUEUE: {"enqueue": Shape.ONE, "dequeue": Shape.ONE},
    Model.FIFO_QUEUE: {"enqueue": Shape.ONE, "dequeue": Shape.ONE},
    Model.LOG: {"append": Shape.PLACED, "read": Shape.RECORDS, "end": Shape.ONE},
    Model.SOME_OF_LOG: {"append": Shape.PLACED, "read": Shape.RECORDS, "end": Shape.ONE},
}
MEMOISED = frozenset({Model.REGISTER, Model.CAS_REGISTER, Model.MUTEX})
"""Models of few states, which Knossos may number before it searches. For the others that alone can take for
ever."""


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Calls:
    """One row per operation that happened or may have happened: ``f`` is its place in ``SHAPES[model]``."""

    model: Model
    f: Ints
    a: Ints
    b: Ints
    inv: Ints
    ret: Ints
    flat: Ints = field(default_factory=_none)
    initial: int | None = None
    """What a register holds at first; a log's first offset; of several registers how many there are, each of
    which has its key and what it holds at first at the beginning of ``flat``."""

    def __len__(self) -> int:
        return len(self.f)

    def order(self) -> Ints:
        return events_in_order(self.inv, self.ret)


def events_in_order(inv: Ints, ret: Ints) -> Ints:
    """Rows in the order of their events, a completion as -1 - row. Of equal stamps invocations come first:
    operations that touch are concurrent. What never returned has no completion."""
    rows = np.arange(len(inv), dtype=np.int64)
    done = np.flatnonzero(ret != NEVER)
    stamps = np.concatenate([inv, ret[done]])
    events = np.concatenate([rows, -1 - rows[done]])
    completes = np.concatenate([np.zeros(len(rows)), np.ones(len(done))])
    return np.asarray(events[np.lexsort((completes, stamps))], dtype=np.int64)


def calls_of(table: Columns, model: Model, *, initial: int = NOTHING) -> Calls:
    """A register's or a queue's columns for Knossos; what certainly failed is left out."""
    table = table.rows(np.flatnonzero(~table.failed))
    value = table.value.copy()
    unknown = ~table.puts & (table.ret == NEVER)
    if model is not Model.REGISTER:
        value[~table.puts & (table.value == NOTHING)] = EMPTY
    value[unknown] = NIL
    return Calls(
        model,
        np.where(table.puts, 0, 1).astype(np.int64),
        value,
        np.zeros(len(value), dtype=np.int64),
        table.inv,
        table.ret,
        initial=initial if model is Model.REGISTER else None,
    )
