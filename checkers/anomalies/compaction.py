"""Compaction (docs/anomalies.md, section 1): a tombstone deletes its key. After it is gone, too
(``delete.retention.ms``), no reader may take an older record of the key for its last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import EventBatch, Records
from wrackline.checkers.checks.explained_by import IN_ANY_ORDER
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Walk, Walked
from wrackline.checkers.inputs.runs import compacts
from wrackline.checkers.inputs.table import NONE, concatenated, place_in, values_at
from wrackline.checkers.verdict.anomaly import Family, Promise
from wrackline.history.model import TOMBSTONE, is_tombstone


class _Run:
    """The keys of what was sent, and what acks and final reads say of offsets."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self._numbers: dict[str, int] = {}
        """Key -> its number."""
        self._sent: list[Records] = []
        """``of``: the number of the key."""
        self._acked: list[Records] = []
        """``of``: the index of the event."""
        self._final: list[Records] = []
        self._ns: dict[int, int] = {}
        """Index of an event that acknowledged a tombstone -> its time."""

    def take(self, events: EventBatch) -> None:
        key = events.numbered("key", lambda key: self._numbers.setdefault(key, len(self._numbers)))
        key[~events.are("invoke", "send")] = NONE
        every = events.records
        self._sent.append(replace(every, of=key[every.of]).take(key[every.of] != NONE))
        there = (every.offset >= 0) & (every.value >= 0)
        for kind, into in (("send", self._acked), ("drain", self._final)):
            mine = every.take(there & events.are("ok", kind)[every.of])
            into.append(replace(mine, of=events.index[mine.of]))
            if kind == "send":
                rows = mine.of[mine.value & 0xF == TOMBSTONE]
                self._ns |= dict(zip(events.index[rows].tolist(), events.ns[rows].tolist(), strict=True))

    def find(self) -> Iterator[Finding]:
        sent, acked, final = (concatenated(Records, some) for some in (self._sent, self._acked, self._final))
        values, latest = np.unique(sent.value, return_index=True)
        key = sent.of[latest]
        acked, final = (one.take(place_in(values, one.value) != NONE) for one in (acked, final))
        for log in self._about.logs.values():
            if log.compacted and log.complete:
                mine, there = acked.take(acked.log == log.number), final.take(final.log == log.number)
                keys = [values_at(key, place_in(values, one.value)) for one in (mine, there)]
                yield from self._of_log(log, mine, keys[0].tolist(), there, keys[1].tolist())

    def _of_log(
        self, log: AboutLog, acked: Records, keys: list[int], final: Records, held: list[int]
    ) -> Iterator[Finding]:
        last = _last(acked, keys)
        there = _last(final, held)
        for key, (offset, value, event) in sorted(last.items()):
            at, older, read = there.get(key, (NONE, NONE, NONE))
            if is_tombstone(value) and log.start <= at < offset:
                ns = self._ns[event]
                yield Finding(
                    anomaly="lost-tombstone",
                    log=log,
                    offset=at,
                    value=older,
                    operations=[event, read],
                    sentence=f"Tombstone {self._about.value(value)} was acknowledged at offset {offset:,} of "
                    f"{log} at {seconds(ns)}; the final read does not have it, and has value "
                    f"{self._about.value(older)} of the same key at offset {at:,}",
                    since_ns=ns,
                )


def _last(records: Records, keys: list[int]) -> dict[int, tuple[int, int, int]]:
    """Key -> (offset, value, index of the event) of its record with the highest offset."""
    result: dict[int, tuple[int, int, int]] = {}
    columns = (records.offset.tolist(), records.value.tolist(), records.of.tolist())
    for key, *one in zip(keys, *columns, strict=True):
        result[key] = max(result.get(key, (NONE, NONE, NONE)), (one[0], one[1], one[2]))
    return result


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Walked:
    run = _Run(about)
    for batch in batches:
        run.take(EventBatch(batch, about))
    yield from run.find()


COMPACTION = Walk(
    name="compaction",
    needs=frozenset({"send"}),
    when=compacts,
    reads=frozenset({"send", "drain"}),
    find=find,
)

found_by(
    COMPACTION,
    Family.LOSS,
    {
        "lost-tombstone": WalkAnomaly(
            "the final read lacks an acknowledged tombstone, and has an older record of its key as the last",
            Promise.NO_LOSS,
            IN_ANY_ORDER,
            rests_on_final_read=True,
        )
    },
)
