"""What was read, from events to facts: polls, final reads and replicas' own logs.

Each record goes to the chunk of the log that it was in. Where a consumer went on elsewhere than it stood is
found here within a split, and sent on as an *edge* to whoever sees all splits.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import orjson

from wrackline.checkers.engine.context import Context
from wrackline.checkers.engine.facts import Kind, Rows, Writer
from wrackline.checkers.engine.per_process import POLLED, Sequence, put_steps
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints
from wrackline.checkers.inputs.row_groups import OK, Batch, Names
from wrackline.history.model import REPLICA


class Reads:
    """Of one split, batch by batch."""

    def __init__(self, context: Context, names: Mapping[str, Names], writer: Writer) -> None:
        self._context, self._names, self._writer = context, names, writer
        self._polled = Sequence(POLLED)

    def take(self, batch: Batch, base: Ints) -> None:
        """``base``: to each event the log of its topic's partition 0, NONE where it has none."""
        self._seen(batch, base)
        self._followed_on(batch, base)

    def edges(self) -> None:
        """At the end of the split: where each process began and stopped."""
        self._polled.edges(self._writer)

    def _number(self, f: str) -> int:
        return self._names["f"].number(f)

    def _seen(self, batch: Batch, base: Ints) -> None:
        ok = batch.kind == OK
        for f, kind in (("poll", Kind.POLL), ("drain", Kind.FINAL), ("replica", Kind.REPLICA)):
            of = ok & (batch.f == self._number(f)) & (base != NONE) & (batch.size > 0)
            if kind is Kind.REPLICA:
                of &= batch.process == REPLICA
            events = np.flatnonzero(of)
            if not len(events):
                continue
            which, rows = batch.records_of(events)
            offset = batch.record_offset[rows]
            real = offset >= 0
            if not real.all():
                which, rows, offset = which[real], rows[real], offset[real]
            event = events[which]
            log = base[event] + batch.record_partition[rows]
            columns = [offset, batch.record_value[rows], batch.index[event]]
            if kind is Kind.REPLICA:
                number, hw, bit = self._replicas(batch, events, base)
                columns += [batch.record_epoch[rows], bit[which], (offset < hw[which]).astype(np.int64)]
            else:
                number = np.full(len(events), -1)
                columns.append(batch.ns[event])
            self._writer.spread(kind, log, offset // self._context.width, columns)
            if kind is not Kind.POLL:
                self._epochs(log, number[which], batch.record_epoch[rows], offset, batch.index[event])

    def _replicas(self, batch: Batch, events: Ints, base: Ints) -> tuple[Ints, Ints, Ints]:
        """(number, high watermark, bit) of the replica that each event is of."""
        hosts = self._names["node"].names
        found = np.zeros((len(events), 3), dtype=np.int64)
        for at, event in enumerate(events.tolist()):
            host = hosts[batch.node[event]] if batch.node[event] != NONE else ""
            about = self._context.replicas.get((int(base[event] + batch.partition[event]), host))
            found[at] = (about.number, about.hw, about.bit) if about else (-2, 0, 0)
        return found[:, 0], found[:, 1], found[:, 2]

    def _epochs(self, log: Ints, node: Ints, epoch: Ints, offset: Ints, index: Ints) -> None:
        """Where each leader epoch begins and ends: few rows, however many records."""
        told = epoch >= 0
        if not told.any():
            return
        log, node, epoch, offset, index = (one[told] for one in (log, node, epoch, offset, index))
        change = (np.diff(log) != 0) | (np.diff(node) != 0) | (np.diff(epoch) != 0)
        starts = np.append(0, np.flatnonzero(change) + 1)
        columns = [
            node[starts],
            epoch[starts],
            np.minimum.reduceat(offset, starts),
            np.maximum.reduceat(offset, starts),
            np.minimum.reduceat(index, starts),
            np.maximum.reduceat(index, starts),
        ]
        self._writer.spread(Kind.EPOCH, log[starts], np.full(len(starts), -1), columns)

    def _followed_on(self, batch: Batch, base: Ints) -> None:
        """Reads that do not follow on the one before in their process and partition."""
        ok = (batch.kind == OK) & (base != NONE)
        events = np.flatnonzero(ok & (batch.f == self._number("poll")) & (batch.size > 0))
        which, rows = batch.records_of(events)
        event = events[which]
        offset = batch.record_offset[rows]
        reads = {
            "process": batch.process[event],
            "log": base[event] + batch.record_partition[rows],
            "order": batch.index[event],
            "offset": offset,
            "next": offset + 1,
            "value": np.full(len(rows), NONE),
            "index": batch.index[event],
            "ns": batch.ns[event],
        }
        moved = np.array(self._moves(batch, base, ok), dtype=np.int64).reshape(-1, 5)
        if len(moved):
            process, log, start, index, ns = moved.T
            nothing = np.full(len(moved), NONE)
            start = np.where(start >= 0, start, NONE)
            told = (process, log, index, nothing, start, nothing, index, ns)
            reads = {
                name: np.concatenate([column, more])
                for (name, column), more in zip(reads.items(), told, strict=True)
            }
            order = np.argsort(reads["index"], kind="stable")
            reads = {name: column[order] for name, column in reads.items()}
        steps = self._polled.steps(Rows(reads))
        known = (steps.earlier_next != NONE) & (steps.offset != NONE)
        put_steps(self._writer, steps.take(known & (steps.offset != steps.earlier_next)), self._context)

    def _moves(self, batch: Batch, base: Ints, ok: Bools) -> list[tuple[int, int, int, int, int]]:
        """(process, log, start, index, ns) for each partition that a consumer takes or moves in, or loses
        (start -1: where it goes on there nobody told)."""
        found = []
        moving = [self._number(f) for f in ("assign", "rebalance")]
        for event in np.flatnonzero(ok & np.isin(batch.f, moving)).tolist():
            text = batch.extra[event].as_py() if batch.extra is not None else None
            said = orjson.loads(text) if text else {}
            given = [*(said.get("partitions") or ()), *(said.get("revoked") or ())]
            positions = dict.fromkeys(map(str, given), -1) | (said.get("positions") or {})
            of = (int(batch.process[event]), int(base[event]), int(batch.index[event]), int(batch.ns[event]))
            found += [
                (of[0], of[1] + int(partition), -1 if start is None else int(start), of[2], of[3])
                for partition, start in positions.items()
                if str(partition).isdigit()
            ]
        return found
