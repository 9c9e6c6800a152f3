"""The answers of Knossos and Elle, as data.

An operation or a transaction is named by its row in what was asked (``Calls``, ``Transactions``); keys and
values are the numbers that were given.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.answers import Case


@dataclass(frozen=True, slots=True)
class State:
    """The state of a search when it got stuck: one way to order the operations as far as any way gets."""

    holds: tuple[int, ...]
    """What the object holds then, by its model: a register's value, keys and values of several registers, the
    elements of a set or a queue from its head on, 1 for a mutex that is held, the records of a log; the first
    32. NIL stands for nil."""
    size: int
    """How much it holds."""
    placed: tuple[int, ...]
    """Rows that were open when the search got stuck and have their place in this order; the first 32."""
    waiting: tuple[int, ...]
    """Those that have none. The operation for which there was no place is one of them."""


@dataclass(frozen=True, slots=True)
class Judgement:
    answer: Answer
    why: str = ""
    """For UNKNOWN: what limit was hit."""
    row: int | None = None
    """Knossos, for INVALID: the first operation for which there was no place."""
    states: tuple[State, ...] = ()
    """Knossos, for INVALID: in which states it was when it got stuck, at most 8."""
    anomalies: dict[str, tuple[int, tuple[Case, ...]]] = field(default_factory=dict)
    """Elle: type (G0, G1c, G-single-item-realtime, ...) -> (how many, the first few)."""
    refuted: tuple[str, ...] = ()
    """Elle: the weakest consistency models that do not hold."""
