"""The input of a check: the rows of one partition of a run, and what else is known there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.marks import Marks
from wrackline.checkers.engine.object_facts import Contradiction
from wrackline.checkers.inputs.table import Ints, rows_of
from wrackline.history.model import is_tombstone

Row = Candidate[Any]
"""One candidate: its columns are numbers, and None where NONE stands in numpy."""


class Words(NamedTuple):
    """The words of an event. ``extra`` is JSON."""

    node: str | None = None
    error: str | None = None
    extra: str | None = None


NO_WORDS = Words()


@dataclass(frozen=True)
class Places:
    """Rows of one partition of a run."""

    run: AboutRun
    log: AboutLog
    rows: Candidate[Ints]
    """Those with any mark, sorted by offset, then value, then all else."""
    contradictions: Contradiction[Ints]
    """What is wrong with the partition as a register or a queue."""
    marks: Marks
    _words: Mapping[int, Words] = field(default_factory=dict)
    _last_of_key: Mapping[int, int] = field(default_factory=dict)
    """Value -> the highest offset that is known of a record with its key."""
    anomaly: str = ""
    """What the check that is called looks for."""

    def having(self, mark: str) -> Candidate[Ints]:
        """Gives the rows that have a mark, in numpy."""
        return self.rows.take(np.flatnonzero(self.rows.marks & self.marks.bit(mark)))

    def each(self, mark: str) -> Iterator[Row]:
        """Yields the rows that have a mark, one after another."""
        return rows_of(self.having(mark))

    def finding(
        self,
        row: Row | None = None,
        *,
        offset: int | None = None,
        value: int | None = None,
        operations: Sequence[int | None],
        where: str | None = None,
        sentence: str,
        since_ns: int | None,
        until_ns: int | None = None,
    ) -> Finding:
        """Makes a finding of the check that is called, in this partition. ``row``: whose offset and value it
        has; else those that are given. The rest is as in ``Finding``."""
        return Finding(
            anomaly=self.anomaly,
            log=self.log,
            offset=offset if row is None else row.offset,
            value=value if row is None else row.value,
            operations=operations,
            where=where,
            sentence=sentence,
            since_ns=since_ns,
            until_ns=until_ns,
        )

    def words(self, index: int | None) -> Words:
        """Gives the words of an event that the check asked for (``words_of``)."""
        return NO_WORDS if index is None else self._words.get(index, NO_WORDS)

    def is_lasting(self, row: Row) -> bool:
        """Says whether the row's record must be there still. Of a compacted topic a tombstone may be gone,
        and a record that a later one of its key follows; one whose offset nobody knows may have been followed
        by any of its key."""
        if self.log.compacted and row.value is not None and is_tombstone(row.value):
            return False
        last = self._last_of_key.get(row.value)
        return last is None or not (row.offset is None or row.offset < last)
