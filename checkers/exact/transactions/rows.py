"""Transactions one by one, out of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wrackline.checkers.exact.transactions.columns import NIL, OUTCOMES, Act, Transactions
from wrackline.checkers.models.protocol import Outcome


class Mop(NamedTuple):
    """A micro-operation."""

    writes: bool
    key: int
    value: int
    """Of a register, NIL for nothing; of a list what is appended."""
    elements: tuple[int, ...] = ()
    """Of a list that was read."""


@dataclass(frozen=True, slots=True)
class Txn:
    row: int
    process: int
    inv: int
    ret: int
    """NEVER where the outcome is unknown."""
    outcome: Outcome
    mops: tuple[Mop, ...]

    @property
    def known(self) -> bool:
        """Tells whether the result of the transaction's reads is known."""
        return self.outcome is Outcome.OK


def rows(history: Transactions) -> list[Txn]:
    acts, keys, a, b, flat, starts = (
        column.tolist()
        for column in (history.act, history.key, history.a, history.b, history.flat, history.starts)
    )
    mops = [
        _mop(Act(act), key, first, last, flat) for act, key, first, last in zip(acts, keys, a, b, strict=True)
    ]
    heads = zip(
        *(column.tolist() for column in (history.process, history.inv, history.ret, history.outcome)),
        strict=True,
    )
    return [
        Txn(row, process, inv, ret, OUTCOMES[outcome], tuple(mops[starts[row] : starts[row + 1]]))
        for row, (process, inv, ret, outcome) in enumerate(heads)
    ]


def _mop(act: Act, key: int, a: int, b: int, flat: Sequence[int]) -> Mop:
    if act is not Act.READ_LIST:
        return Mop(act is not Act.READ, key, a)
    return Mop(False, key, NIL, () if a == NIL else tuple(flat[a:b]))
