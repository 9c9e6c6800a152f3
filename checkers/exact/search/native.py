"""Functions over arrays of integers, compiled to native code when they are first called."""

from __future__ import annotations

import gc
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
def lean_start() -> Iterator[None]:
    """Around the first call, with which numba loads most of itself: without scipy's linear algebra, of which
    it only looks whether it is there, and without looking for garbage among what stays. Together that is
    more than half of the time."""
    name, collects = "scipy.linalg", gc.isenabled()
    unknown = name not in sys.modules
    if unknown:
        sys.modules[name] = cast(Any, None)  # so Python says that there is no such module
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        if unknown:
            del sys.modules[name]
