"""Sets of offsets of one partition, as witnesses of a log have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

# NumPy is imported where it is used: workloads and systems import this module when they are looked up.

Intervals = list[list[int]]
"""[first, last] each, ascending, with a gap between them."""
_MOST = 1 << 30


class Offsets:
    """A set of offsets from 0 on: a byte for each up to the largest."""

    def __init__(self, offsets: Iterable[int] = ()) -> None:
        self._there = bytearray()
        for offset in offsets:
            self.add(offset)

    def add(self, offset: int) -> None:
        """An offset below 0, or so large that nobody can have written up to it, is left out."""
        if not 0 <= offset < _MOST:
            return
        if offset >= len(self._there):
            self._there.extend(bytes(max(1_024, len(self._there), offset + 1 - len(self._there))))
        self._there[offset] = 1

    def __contains__(self, offset: int) -> bool:
        return 0 <= offset < len(self._there) and self._there[offset] == 1

    def __bool__(self) -> bool:
        return 1 in self._there

    def __len__(self) -> int:
        return self._there.count(1)

    def __or__(self, other: Offsets) -> Offsets:
        mine, others = self._beside(other)
        return _of(mine | others)

    def __sub__(self, other: Offsets) -> Offsets:
        import numpy as np

        mine, others = self._beside(other)
        return _of(np.bitwise_and(mine, np.bitwise_xor(others, np.uint8(1))))

    def from_on(self, start: int) -> Offsets:
        """Returns the offsets that are not below ``start``."""
        result = Offsets()
        result._there = bytearray(max(0, min(start, len(self._there)))) + self._there[max(start, 0) :]
        return result

    def intervals(self) -> Intervals:
        import numpy as np

        edges = np.diff(np.frombuffer(bytes(1) + bytes(self._there) + bytes(1), dtype=np.int8))
        first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
        return [[int(one), int(other)] for one, other in zip(first, last, strict=True)]

    def _beside(self, other: Offsets) -> tuple[Bytes, Bytes]:
        """Both, of the same length."""
        import numpy as np

        size = max(len(self._there), len(other._there))
        mine, others = (bytes(one._there).ljust(size, bytes(1)) for one in (self, other))
        return np.frombuffer(mine, dtype=np.uint8), np.frombuffer(others, dtype=np.uint8)


def _of(there: Bytes) -> Offsets:
    result = Offsets()
    result._there = bytearray(there.tobytes())
    return result


def spelt(intervals: Intervals, most: int = 3) -> str:
    """``offset 57``, ``offsets 3 to 5 and 9``."""
    texts = [f"{one:,}" if one == last else f"{one:,} to {last:,}" for one, last in intervals[:most]]
    if len(intervals) > most:
        texts.append(f"more up to {intervals[-1][1]:,}")
    listed = " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
    single = len(intervals) == 1 and intervals[0][0] == intervals[0][1]
    return f"{'offset' if single else 'offsets'} {listed}"
