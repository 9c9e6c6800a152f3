"""Topics with keys that are compacted: a record that a later one of the same key follows may be gone, from
any replica and for any reader; the last one of a key may not.

A value's key is in the event of its send; its offsets are in acks, polls, the final read and the replicas'
own logs (below their high watermarks). What an aborted transaction wrote takes no other record's place. A
record of unknown outcome that nobody has does not count: had it taken the place of another, it would be there
itself, or one after it.
"""

from __future__ import annotations

import numpy as np
import orjson

from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import EventBatch, Records
from wrackline.checkers.inputs.table import NEVER, NONE, Ints, concatenated, place_in, values_at

KINDS_WITH_OFFSETS = frozenset({"send", "poll", "drain", "replica"})
"""Kinds of events that ``LastOfKeys`` reads."""


class LastOfKeys:
    """Keeps the highest known offset of a record of each key of compacted partitions."""

    def __init__(self, about: AboutRun) -> None:
        self._logs = np.array([log.number for log in about.logs.values() if log.compacted], np.int64)
        self._numbers: dict[str, int] = {}
        """Key -> its number."""
        self._sent: list[Records] = []
        """``of``: the number of the key."""
        self._read: list[Records] = []
        self._failed: list[Ints] = []
        """Values that are not in the log for readers: their sends failed, or were aborted."""

    def take(self, events: EventBatch) -> None:
        """Takes up events, of the kinds that are asked for."""
        if not len(self._logs):
            return
        mine = events.records.take(np.isin(events.records.log, self._logs))
        key = events.numbered("key", lambda key: self._numbers.setdefault(key, len(self._numbers)))
        key[~events.are("invoke", "send")] = NONE
        sent = Records(mine.log, mine.value, mine.offset, key[mine.of])
        self._sent.append(sent.take(sent.of != NONE))
        self._failed.append(mine.value[events.are("fail", "send")[mine.of]])
        below = np.where(events.are("ok"), NEVER, NONE)
        replicas = np.flatnonzero(events.are("ok", "replica"))
        for row, extra in zip(replicas.tolist(), events.texts("extra", replicas), strict=True):
            high_watermark = orjson.loads(extra or b"{}").get("hw")
            below[row] = NEVER if high_watermark is None else int(high_watermark)
        there = (mine.offset >= 0) & (mine.value >= 0) & (mine.offset < below[mine.of])
        self._read.append(mine.take(there))

    def of_values(self, log: int, values: Ints) -> Ints:
        """Gives the highest offset of each value's key; NONE where none is known."""
        self._sent, self._read = [concatenated(Records, self._sent)], [concatenated(Records, self._read)]
        self._failed = [np.concatenate([*self._failed, np.zeros(0, np.int64)])]
        sent, read = (some.take(some.log == log) for (some,) in (self._sent, self._read))
        read = read.take(~np.isin(read.value, self._failed[0]))
        ranked, latest = np.unique(sent.value[::-1], return_index=True)
        key, last = sent.of[::-1][latest], np.full(len(self._numbers), NONE)
        at = place_in(ranked, read.value)
        np.maximum.at(last, key[at[at != NONE]], read.offset[at != NONE])
        return values_at(last, values_at(key, place_in(ranked, values)))
