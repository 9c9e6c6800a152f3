"""Marks in a segment at which a search begins: by offset, and by time.

Kafka keeps this in the files of the offset and the time index. Here it is in memory only, since recovery
walks every header anyway, and does not depend on a topic's index.interval.bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

_MARK_BYTES = 4_096
"""From mark to mark, so that no walk along headers is longer than that and a batch."""


class Marks:
    """Every so many bytes of a segment a batch: where it begins, its last offset, and the newest time up to
    it."""

    __slots__ = ("_last_offsets", "_newest", "_newest_so_far", "_positions")

    def __init__(self) -> None:
        self._positions = array("q")
        self._last_offsets = array("q")
        self._newest = array("q")
        self._newest_so_far = -1

    def add(self, position: int, last_offset: int, newest: int) -> None:
        """The next batch of the segment."""
        self._newest_so_far = max(self._newest_so_far, newest)
        if not self._positions or position - self._positions[-1] >= _MARK_BYTES:
            self._positions.append(position)
            self._last_offsets.append(last_offset)
            self._newest.append(self._newest_so_far)

    def before_offset(self, offset: int) -> tuple[int, int]:
        """(the byte of a batch that ends before ``offset``, the newest time up to and with that batch); (0,
        -1) when the search must begin at the beginning."""
        at = bisect_left(self._last_offsets, offset) - 1
        return (self._positions[at], self._newest[at]) if at >= 0 else (0, -1)

    def before_time(self, timestamp: int) -> int:
        """The byte of a batch up to which every record is older."""
        at = bisect_left(self._newest, timestamp) - 1
        return self._positions[at] if at >= 0 else 0

    def truncate(self, size_bytes: int, newest: int) -> None:
        """Forget the batches at or past byte ``size_bytes``; ``newest`` is the newest time of those that
        stay."""
        keep = bisect_left(self._positions, size_bytes)
        for column in (self._positions, self._last_offsets, self._newest):
            del column[keep:]
        self._newest_so_far = newest
