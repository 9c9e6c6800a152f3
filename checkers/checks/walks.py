"""Walks: one pass over some of a run's events, in the order of the history, by a state machine.

What a group or a transaction may do next depends on all that it did before, so such anomalies are found by
going through its events once. A walk says which kinds of events it reads and how they are divided into parts;
each part is gone through in one task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.inputs.runs import Run
from wrackline.checkers.inputs.table import Ints


@dataclass(frozen=True, slots=True)
class Figure:
    """A count that a walk makes."""

    kind: str
    """``group`` or ``transaction``."""
    name: str
    """Of the group, or the transactional id."""
    counts: Any
    """What JSON can say."""


Walked: TypeAlias = Iterator[Finding | Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """``find`` is given the events of one part in the order of their index, as Arrow batches with the columns
    of the history (wrackline.history.store.schema), and gives findings and figures. It runs in Spark's
    workers, so it and ``parts`` are functions at the top of a module."""

    name: str
    needs: frozenset[str]
    """A run with none of these kinds of operations (f) is not walked."""
    transactional: bool = False
    """Only runs with transactions are walked."""
    when: Callable[[Run], bool] | None = None
    """Which runs are walked; None: all. A function at the top of a module."""
    reads: frozenset[str]
    """The kinds of events that it is given, of clients and of the final read."""
    find: Callable[[Iterable[pa.RecordBatch], AboutRun], Walked]
    parts: Callable[[pa.RecordBatch, AboutRun], Ints] | None = None
    """The part of each event of a batch, below 0 for none; None: a run is one part."""
