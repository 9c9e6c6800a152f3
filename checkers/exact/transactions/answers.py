"""The decisions about transactions, as data.

A transaction is named by its row in what was asked (``Transactions``), keys and values by the numbers that
were given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.checkers.exact.judgement import Answer

MOST_CASES = 3


@dataclass(frozen=True, slots=True)
class Edge:
    """The reason why one transaction of a cycle comes before the next."""

    kind: str
    """ww, wr, rw, realtime or process, as in Adya's and Elle's papers."""
    before: int
    after: int
    """Rows of the two transactions."""
    key: int | None = None
    value: int | None = None
    """What ``before`` wrote or read; None for the state before the first write."""
    next_value: int | None = None
    """What ``after`` wrote, for ww and rw."""
    process: int | None = None
    """Of both, for process."""


@dataclass(frozen=True, slots=True)
class Case:
    """One example of an anomaly."""

    rows: tuple[int, ...]
    """The transactions that it names, at most 16."""
    text: str
    """Elle's own words, cut short."""
    cycle: tuple[Edge, ...] = ()
    """Edges from transaction to transaction; the last leads back to the first. Empty for an anomaly that is
    no cycle, such as G1a."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of what is no cycle: Elle's own data, such as the key, the element and the operations. A transaction is
    {"operation": its row}."""


Anomalies = dict[str, tuple[int, tuple[Case, ...]]]
"""Type (G0, G1c, G-single-item-realtime, ...) -> (how many, the first few)."""


@dataclass(frozen=True, slots=True)
class Impasse:
    """The point where the longest order that was found ends."""

    row: int
    """Of the transactions that have no place, the first to complete."""
    placed: tuple[int, ...]
    """The end of the order."""
    blocked: tuple[tuple[int, int, int | None, int], ...]
    """(a transaction that could be next, a key that it writes, what that holds, who has yet to read this)."""


@dataclass(frozen=True, slots=True)
class Decision:
    answer: Answer
    searched: bool = False
    """Whether it took a search for an order."""
    why: str = ""
    """Of UNKNOWN: what stands in the way."""
    anomalies: Anomalies = field(default_factory=dict)
    refuted: tuple[str, ...] = ()
    """The weakest levels that do not hold."""
    impasse: Impasse | None = None
    repeated: tuple[int, int, tuple[int, ...]] | None = None
    """(key, value, rows): a value that these wrote to one key and that somebody read. Whose it was is not
    known, so nobody can decide."""


def operation(row: int) -> dict[str, int]:
    return {"operation": row}


def grouped(found: Sequence[tuple[str, Case]]) -> Anomalies:
    kinds = dict.fromkeys(kind for kind, _ in found)
    of_kind = {kind: [case for name, case in found if name == kind] for kind in kinds}
    return {kind: (len(cases), tuple(cases[:MOST_CASES])) for kind, cases in of_kind.items()}
