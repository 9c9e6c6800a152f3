"""Sets of offsets as intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from wrackline.checkers.engine.facts import each_group
from wrackline.checkers.inputs.table import Bools, Ints

_NOTHING = np.zeros(0, np.int64)


def apart(*keys: Ints) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Rows with the same keys: the keys, and which rows, in their order."""
    for rows in each_group(*keys):
        yield tuple(int(key[rows[0]]) for key in keys), rows


class Spans(NamedTuple):
    """A set of offsets: however long a member reads on, it is one interval."""

    begin: Ints
    end: Ints
    number: int
    """How many were put in, however often each."""

    @classmethod
    def of(cls, offsets: Ints) -> Spans:
        return cls.union([cls(offsets, offsets + 1, len(offsets))])

    @classmethod
    def union(cls, some: Iterable[Spans]) -> Spans:
        every = [cls(_NOTHING, _NOTHING, 0), *some]
        begin, end = (np.concatenate([one[side] for one in every]) for side in (0, 1))
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], np.maximum.accumulate(end[order])
        fresh = np.ones(len(begin), np.bool_)
        fresh[1:] = begin[1:] > end[:-1]
        last = np.append(fresh[1:], True)[: len(begin)]
        return cls(begin[fresh], end[last], sum(one.number for one in every))

    @property
    def size(self) -> int:
        return int((self.end - self.begin).sum())

    def has(self, offsets: Ints) -> Bools:
        at = np.searchsorted(self.begin, offsets, side="right") - 1
        result: Bools = (at >= 0) & (offsets < np.append(self.end, 0)[at])
        return result
