"""A log as a whole: leader epochs, processes at the edges of splits, and times without acks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wrackline.checkers.engine.candidates import Candidate, Entry, Step
from wrackline.checkers.engine.context import Context
from wrackline.checkers.engine.fact_codec import AS_A_WHOLE, Writer
from wrackline.checkers.engine.facts import Edge, Epoch, Facts, Gap, grouped
from wrackline.checkers.engine.ingest.counts import longest_gaps
from wrackline.checkers.engine.ingest.per_process import (
    Pair,
    Walk,
    is_backwards,
    is_elsewhere,
    put_sessions,
    put_steps,
)
from wrackline.checkers.engine.routing import put_found
from wrackline.checkers.inputs.table import Ints, Table, constant


class WholeLog:
    """The facts of a log as a whole: where processes stood at the edges of splits, leader epochs, gaps in
    acks."""

    def __init__(self, log: int, context: Context) -> None:
        self.log, self.context = log, context
        self._facts = Facts()

    def take(self, rows: Table[Ints]) -> None:
        self._facts.take(rows)

    def put(self, writer: Writer) -> int:
        result = self._edges(writer) + self._epochs(writer)
        gaps = self._facts.of(Gap)
        if len(gaps):
            said = {"run": self.log >> 32, "gaps": longest_gaps(self.log, gaps, self.context)}
            writer.note(self.log, AS_A_WHOLE, said)
        return result

    def _edges(self, writer: Writer) -> int:
        """Compares positions at the edges of splits, and returns how many findings there may be."""
        edges = self._facts.of(Edge)
        edges = edges.take(np.lexsort((edges.last, edges.at.order, edges.at.process, edges.what)))
        earlier, later = edges.take(np.arange(len(edges) - 1)), edges.take(np.arange(1, len(edges)))
        same = (earlier.what == later.what) & (earlier.at.process == later.at.process)
        follows = same & (earlier.last == 1) & (later.last == 0)
        pairs = Pair(earlier.at, later.at)
        elsewhere = is_elsewhere(earlier.at.next, later.at.offset)
        read = pairs.take(follows & (later.what == Walk.POLLED) & elsewhere)
        put_steps(writer, read, self.context)
        backwards = is_backwards(earlier.at.next, later.at.offset)
        sent = pairs.take(follows & (later.what == Walk.SENT) & backwards)
        put_sessions(writer, sent, self.context)
        return len(read) + len(sent)

    def _epochs(self, writer: Writer) -> int:
        """An epoch that begins before a smaller one ends."""
        epochs = self._facts.of(Epoch)
        pairs: list[tuple[int, int]] = []
        if not len(epochs):
            return 0
        order, starts, _ = grouped(epochs.node, epochs.epoch)
        rows, at = epochs.take(order), np.flatnonzero(starts)
        whole = Epoch(
            node=rows.node[at],
            epoch=rows.epoch[at],
            first=np.minimum.reduceat(rows.first, at),
            last=np.maximum.reduceat(rows.last, at),
            index=np.minimum.reduceat(rows.index, at),
            last_index=np.maximum.reduceat(rows.last_index, at),
        )
        for n in range(1, len(at)):
            smaller = np.flatnonzero(whole.node[:n] == whole.node[n])
            if not len(smaller):
                continue
            last = whole.last[smaller]
            highest = smaller[np.lexsort((whole.epoch[smaller], whole.last_index[smaller], last))[-1]]
            if whole.last[highest] > whole.first[n]:
                pairs.append((int(highest), n))
        if pairs:
            below, above = (whole.take(np.array(rows)) for rows in zip(*pairs, strict=True))
            put_found(writer, self.context, Step.EPOCH, "disordered epochs", self._disordered(below, above))
        return len(pairs)

    def _disordered(self, smaller: Epoch, larger: Epoch) -> Candidate[Ints]:
        """The larger epoch begins before the smaller one ends."""
        size = len(larger)
        return replace(
            Candidate[Ints].unknown(size),
            log=constant(self.log, size),
            offset=larger.first,
            index=larger.index,
            epoch_high=larger.epoch,
            other_offset=smaller.last,
            rival=replace(Entry[Ints].unknown(size), index=smaller.last_index),
            epoch_low=smaller.epoch,
            process=larger.node,
        )
