"""Topics with keys that are compacted: a record that a later one of the same key follows may be gone, from
any replica and for any reader; the last one of a key may not.

A value's key is in the event of its send; its offsets are in acks, polls, the final read and the replicas'
own logs (below their high watermarks). A record of unknown outcome that nobody has does not count: had it
taken the place of another, it would be there itself, or one after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.inputs.arrays import Ints
from wrackline.checkers.inputs.row_groups import ints

KINDS_WITH_OFFSETS = frozenset({"send", "poll", "drain", "replica"})
"""Kinds of events that ``LastOfKeys`` reads."""


class LastOfKeys:
    """Of each key of one compacted partition the highest offset that is known of a record with it."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._keys: dict[int, str] = {}
        """Value -> its key."""
        self._highest: dict[int, int] = {}
        """Value -> its highest offset."""

    def take(self, batch: pa.RecordBatch) -> None:
        """Takes up events, of the kinds that are asked for, with the columns of the history."""
        batch = batch.filter(pc.equal(batch.column("topic"), self._topic))
        kind, f = batch.column("type").to_pylist(), batch.column("f").to_pylist()
        keys, extra = batch.column("key").to_pylist(), batch.column("extra").to_pylist()
        records = batch.column("records")
        begins = ints(records.offsets).tolist() if len(batch) else [0]
        partition, value, offset = (
            ints(records.values.field(name)) for name in ("partition", "value", "offset")
        )
        for row in range(len(batch)):
            mine = np.arange(begins[row], begins[row + 1])
            mine = mine[partition[mine] == self._partition]
            if f[row] == "send" and kind[row] == "invoke" and keys[row] is not None:
                self._keys.update(dict.fromkeys(value[mine].tolist(), keys[row]))
            elif kind[row] == "ok":
                self._place(value[mine], offset[mine], _high_watermark(f[row], extra[row]))

    def _place(self, value: Ints, offset: Ints, below: int | None) -> None:
        there = (offset >= 0) & (value >= 0)
        if below is not None:
            there &= offset < below
        for one, at in zip(value[there].tolist(), offset[there].tolist(), strict=True):
            if at > self._highest.get(one, -1):
                self._highest[one] = at

    def of_values(self, values: Iterable[int] | None = None) -> Mapping[int, int]:
        """Value -> the highest offset of its key, of these values or of all, where any is known."""
        last: dict[str, int] = {}
        for value, offset in self._highest.items():
            key = self._keys.get(value)
            if key is not None and offset > last.get(key, -1):
                last[key] = offset
        wanted = self._keys if values is None else self._keys.keys() & set(values)
        return {value: last[self._keys[value]] for value in wanted if self._keys[value] in last}


def _high_watermark(f: str, extra: str | None) -> int | None:
    if f != "replica":
        return None
    found = orjson.loads(extra or b"{}").get("hw")
    return None if found is None else int(found)
