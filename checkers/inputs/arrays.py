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
