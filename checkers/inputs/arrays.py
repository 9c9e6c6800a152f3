"""Columns of integers, as everything of the judge that counts in numpy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NONE = int(np.iinfo(np.int64).min)
"""Stands for what is not known, or is not there."""
NEVER = int(np.iinfo(np.int64).max)
"""An index later than all others: that of what did not happen."""


def bools(comparison: Any) -> Bools:
    """What numpy's comparisons give, which its type stubs do not say."""
    found: Bools = comparison
    return found


def place_in(ascending: Ints, values: Ints) -> Ints:
    """The place of each value; NONE where it is not there."""
    if not len(ascending):
        return np.full(len(values), NONE)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.where(ascending[at] == values, at, NONE)


def values_at(column: Ints, rows: Ints) -> Ints:
    """What a column has in these rows; NONE where the row is."""
    found = np.full(len(rows), NONE)
    known = rows != NONE
    found[known] = column[rows[known]]
    return found
