"""Operations of clients as columns: invocations that have met their completions."""

from __future__ import annotations

from dataclasses import dataclass

from wrackline.checkers.inputs.arrays import Bools, Ints
from wrackline.checkers.inputs.row_groups import Names
from wrackline.checkers.inputs.table import Table

ROWS_OF_MEMBERS = ("rebalance", "crash")
"""Kinds of rows that are no operations: a member of a group learns something in the middle of a poll, or
ends."""


def of_clients(process: Ints, f: Ints, names: Names) -> Bools:
    """Which events belong to operations of clients."""
    found: Bools = process >= 0
    for name in ROWS_OF_MEMBERS:
        found &= f != names.number(name)
    return found


@dataclass(frozen=True, slots=True)
class Operations(Table[Ints]):
    """Operations of clients, each with the event that says most of it."""

    process: Ints
    f: Ints
    base: Ints
    """The log of partition 0 of its topic; NONE where it has none."""
    partition: Ints
    kind: Ints
    """OK, FAIL or INFO."""
    shown_end: Ints
    """How far the answer said that the log goes; NONE where it did not say."""
    error: Ints
    event: Ints
    """The row, in its batch, of the event that says most."""
    invoke_index: Ints
    invoke_ns: Ints
    complete_index: Ints
    """NONE when it never completed."""
    complete_ns: Ints
