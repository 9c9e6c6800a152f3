"""Reads become facts: polls, final reads and replicas' own logs.

Each record goes to the range of the log that it was in. Where a consumer went on elsewhere than it stood is
found here within a part of the history that is read at once; where it stood at the edges of the part is sent
on to whoever sees all parts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import orjson

from wrackline.checkers.engine.context import Context
from wrackline.checkers.engine.fact_codec import AS_A_WHOLE, Writer
from wrackline.checkers.engine.facts import Epoch, Final, Held, Poll, Position, Read
from wrackline.checkers.engine.ingest.per_process import Sequence, Walk, is_elsewhere, put_steps
from wrackline.checkers.inputs.row_groups import OK, Batch, Names
from wrackline.checkers.inputs.table import NONE, Bools, Ints, concatenated, constant
from wrackline.history.model import POLLS, REPLICA


class Reads:
    """The reads of one split, batch by batch."""

    def __init__(self, context: Context, names: Mapping[str, Names], writer: Writer) -> None:
        self._context, self._names, self._writer = context, names, writer
        self._polled = Sequence(Walk.POLLED)

    def take(self, batch: Batch, base: Ints) -> None:
        """``base``: to each event the log of its topic's partition 0, NONE where it has none."""
        self._seen(batch, base)
        self._followed_on(batch, base)

    def edges(self) -> None:
        """Handles the end of the split: writes where each process began and stopped."""
        self._polled.edges(self._writer)

    def _number(self, f: str) -> int:
        return self._names["f"].number(f)

    def _seen(self, batch: Batch, base: Ints) -> None:
        answered = (batch.events.kind == OK) & (base != NONE) & (batch.events.size > 0)
        polls = np.isin(batch.events.f, [self._number(f) for f in POLLS])
        self._given(batch, base, answered & polls, Poll)
        self._given(batch, base, answered & (batch.events.f == self._number("drain")), Final)
        of_replicas = (
            answered & (batch.events.f == self._number("replica")) & (batch.events.process == REPLICA)
        )
        self._held(batch, base, of_replicas)

    def _given(self, batch: Batch, base: Ints, of: Bools, kind: type[Read]) -> None:
        """Records that clients were given by these events."""
        event, _, rows = _records(batch, np.flatnonzero(of))
        if not len(rows):
            return
        records, index = batch.records.take(rows), batch.events.index[event]
        log, offset = base[event] + records.partition, records.offset
        result = kind(offset, records.value, index, batch.events.ns[event])
        self._writer.spread(log, offset // self._context.width, result)
        if kind is Final:
            self._epochs(log, constant(-1, len(rows)), records.epoch, offset, index)

    def _held(self, batch: Batch, base: Ints, of: Bools) -> None:
        """Records that replicas have."""
        events = np.flatnonzero(of)
        event, which, rows = _records(batch, events)
        if not len(rows):
            return
        records, index = batch.records.take(rows), batch.events.index[event]
        log, offset, epoch = base[event] + records.partition, records.offset, records.epoch
        number, hw, bit = self._replicas(batch, events, base)
        committed = (offset < hw[which]).astype(np.int64)
        result = Held(offset, records.value, index, epoch, bit[which], committed)
        self._writer.spread(log, offset // self._context.width, result)
        self._epochs(log, number[which], epoch, offset, index)

    def _replicas(self, batch: Batch, events: Ints, base: Ints) -> tuple[Ints, Ints, Ints]:
        """(number, high watermark, bit) of the replica that each event is of."""
        hosts = self._names["node"].names
        result = np.zeros((len(events), 3), dtype=np.int64)
        for at, event in enumerate(events.tolist()):
            host = hosts[batch.events.node[event]] if batch.events.node[event] != NONE else ""
            about = self._context.replicas.get((int(base[event] + batch.events.partition[event]), host))
            result[at] = (about.number, about.hw, about.bit) if about else (-2, 0, 0)
        return result[:, 0], result[:, 1], result[:, 2]

    def _epochs(self, log: Ints, node: Ints, epoch: Ints, offset: Ints, index: Ints) -> None:
        """Writes where each leader epoch begins and ends: few rows, however many records."""
        known = epoch >= 0
        if not known.any():
            return
        log, node, epoch, offset, index = (one[known] for one in (log, node, epoch, offset, index))
        change = (np.diff(log) != 0) | (np.diff(node) != 0) | (np.diff(epoch) != 0)
        starts = np.append(0, np.flatnonzero(change) + 1)
        result = Epoch(
            node=node[starts],
            epoch=epoch[starts],
            first=np.minimum.reduceat(offset, starts),
            last=np.maximum.reduceat(offset, starts),
            index=np.minimum.reduceat(index, starts),
            last_index=np.maximum.reduceat(index, starts),
        )
        self._writer.spread(log[starts], AS_A_WHOLE, result)

    def _followed_on(self, batch: Batch, base: Ints) -> None:
        """Reads that do not follow on the one before in their process and partition."""
        ok = (batch.events.kind == OK) & (base != NONE)
        events = np.flatnonzero(ok & (batch.events.f == self._number("poll")) & (batch.events.size > 0))
        which, rows = batch.records_of(events)
        event = events[which]
        offset = batch.records.offset[rows]
        reads = Position(
            process=batch.events.process[event],
            log=base[event] + batch.records.partition[rows],
            order=batch.events.index[event],
            offset=offset,
            next=offset + 1,
            value=constant(NONE, len(rows)),
            index=batch.events.index[event],
            ns=batch.events.ns[event],
        )
        moved = np.array(self._moves(batch, base, ok), dtype=np.int64).reshape(-1, 5)
        if len(moved):
            process, log, start, index, ns = moved.T
            nothing = constant(NONE, len(moved))
            moves = Position(
                process=process,
                log=log,
                order=index,
                offset=nothing,
                next=np.where(start >= 0, start, NONE),
                value=nothing,
                index=index,
                ns=ns,
            )
            reads = concatenated(Position, [reads, moves])
            reads = reads.take(np.argsort(reads.index, kind="stable"))
        put_steps(self._writer, self._polled.steps(reads, is_elsewhere), self._context)

    def _moves(self, batch: Batch, base: Ints, ok: Bools) -> list[tuple[int, int, int, int, int]]:
        """(process, log, start, index, ns) for each partition that a consumer takes or moves in, or loses
        (start -1: nobody knows where it goes on there)."""
        result, events = [], batch.events
        moving = [self._number(f) for f in ("assign", "rebalance")]
        for event in np.flatnonzero(ok & np.isin(events.f, moving)).tolist():
            text = batch.extra[event].as_py() if batch.extra is not None else None
            said = orjson.loads(text) if text else {}
            given = [*(said.get("partitions") or ()), *(said.get("revoked") or ())]
            positions = dict.fromkeys(map(str, given), -1) | (said.get("positions") or {})
            of = (
                int(batch.events.process[event]),
                int(base[event]),
                int(batch.events.index[event]),
                int(batch.events.ns[event]),
            )
            result += [
                (of[0], of[1] + int(partition), -1 if start is None else int(start), of[2], of[3])
                for partition, start in positions.items()
                if str(partition).isdigit()
            ]
        return result


def _records(batch: Batch, events: Ints) -> tuple[Ints, Ints, Ints]:
    """(event, which of ``events``, row) of each record of the events that has an offset."""
    which, rows = batch.records_of(events)
    real = batch.records.offset[rows] >= 0
    if not real.all():
        which, rows = which[real], rows[real]
    return events[which], which, rows
