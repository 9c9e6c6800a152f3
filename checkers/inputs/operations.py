"""Operations of clients as columns: invocations that have met their completions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wrackline.checkers.inputs.arrays import Bools, Ints
from wrackline.checkers.inputs.row_groups import Names

ROWS_OF_MEMBERS = ("rebalance", "crash")
"""Kinds of rows that are no operations: a member of a group is told something in the middle of a poll, or
ends."""


def of_clients(process: Ints, f: Ints, names: Names) -> Bools:
    """Which events belong to operations of clients."""
    found: Bools = process >= 0
    for name in ROWS_OF_MEMBERS:
        found &= f != names.number(name)
    return found


@dataclass(slots=True)
class Operations:
    """Operations of clients, each with the event that tells most of it (``tells``: a row of the batch)."""

    process: Ints
    f: Ints
    base: Ints
    partition: Ints
    kind: Ints
    told: Ints
    error: Ints
    tells: Ints
    invoke_index: Ints
    invoke_ns: Ints
    complete_index: Ints
    """NONE when it never completed."""
    complete_ns: Ints

    def take(self, rows: Bools | Ints) -> Operations:
        return Operations(*(getattr(self, name)[rows] for name in self.__slots__))


def both(one: Operations, other: Operations) -> Operations:
    return Operations(
        *(np.concatenate([getattr(one, name), getattr(other, name)]) for name in Operations.__slots__)
    )
