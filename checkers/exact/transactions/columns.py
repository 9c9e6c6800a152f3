"""Transactions as columns of int64: what the decisions of this folder read, and Elle is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from wrackline.checkers.exact.operations import Ints
from wrackline.checkers.models.protocol import Outcome

NIL = int(np.iinfo(np.int64).min)
"""``a`` of what is not known, and of a register or a list that was read and holds nothing."""


OUTCOMES = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
"""Their numbers are their places."""


class Act(IntEnum):
    """The kind of a micro-operation."""

    APPEND = 0
    WRITE = 1
    READ = 2
    """A register: ``a``."""
    READ_LIST = 3
    """A list: ``flat[a:b]``."""


@dataclass(frozen=True, slots=True)
class Transactions:
    """One row per transaction; row n has the micro-operations [starts[n], starts[n + 1])."""

    inv: Ints
    ret: Ints
    process: Ints
    outcome: Ints
    starts: Ints
    act: Ints
    key: Ints
    a: Ints
    b: Ints
    flat: Ints

    def __len__(self) -> int:
        return len(self.inv)


@dataclass(slots=True)
class TransactionsBuilder:
    """Collects transactions one by one. A micro-operation is (act, key, value); value is None or, for a list
    that was read, a sequence."""

    _txns: list[tuple[int, int, int, int]] = field(default_factory=list)
    _starts: list[int] = field(default_factory=lambda: [0])
    _mops: list[tuple[int, int, int, int]] = field(default_factory=list)
    _flat: list[int] = field(default_factory=list)

    def add(
        self,
        process: int,
        inv: int,
        ret: int,
        outcome: Outcome,
        mops: Sequence[tuple[Act, int, int | Sequence[int] | None]],
    ) -> None:
        for act, key, value in mops:
            match value:
                case None:
                    self._mops.append((act, key, NIL, NIL))
                case int():
                    self._mops.append((act, key, value, NIL))
                case _:
                    begin = len(self._flat)
                    self._flat += value
                    self._mops.append((act, key, begin, len(self._flat)))
        self._txns.append((inv, ret, process, OUTCOMES.index(outcome)))
        self._starts.append(len(self._mops))

    def build(self) -> Transactions:
        txns = np.array(self._txns, dtype=np.int64).reshape(-1, 4)
        mops = np.array(self._mops, dtype=np.int64).reshape(-1, 4)
        starts, flat = np.array(self._starts, dtype=np.int64), np.array(self._flat, dtype=np.int64)
        inv, ret, process, outcome = (np.ascontiguousarray(column) for column in txns.T)
        act, key, a, b = (np.ascontiguousarray(column) for column in mops.T)
        return Transactions(inv, ret, process, outcome, starts, act, key, a, b, flat)
