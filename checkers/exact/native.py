"""Functions over arrays of integers, compiled to native code when they are first called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Words = NDArray[np.int32]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def native(function: _Function) -> _Function:
    """Compiled once per machine: what came of it is kept beside the source, or in the user's own cache, or
    where NUMBA_CACHE_DIR says. Where none of these can be written, it is compiled in each process (some 4
    s)."""
    try:
        return cast(_Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba finds no such folder
        return cast(_Function, numba.njit(nogil=True)(function))


@contextmanager
def no_linear_algebra() -> Iterator[None]:
    """What numba loads inside, with the first function that it calls, is without scipy's linear algebra, of
    which it only looks whether it is there: half of the time until then, and of no use to a search."""
    name = "scipy.linalg"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = cast(Any, None)  # so Python says that there is no such module
    try:
        yield
    finally:
        del sys.modules[name]
