"""Ingest turns events into facts: invocations meet their completions, records become rows of integers, and
each row goes to the range of the log (or the value, or the run) that it speaks of. One part of a history
at a time (a ``Split``), in bounded memory.

What a part cannot know of its neighbours is little: the operations that are open at its edges come with it
(wrackline.checkers.inputs.scan), and where consumers and producers stood is sent on to whoever sees all
parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from wrackline.checkers.engine.candidates import SendOutcome
from wrackline.checkers.engine.context import Context
from wrackline.checkers.engine.fact_codec import VALUES, Writer
from wrackline.checkers.engine.facts import (
    Ack,
    End,
    EndAsked,
    EndOffset,
    Floor,
    Position,
    Send,
    Sent,
    Unplaced,
)
from wrackline.checkers.engine.ingest.counts import Counts
from wrackline.checkers.engine.ingest.neighbours import Neighbours
from wrackline.checkers.engine.ingest.per_process import (
    Ends,
    Sequence,
    ShownEnd,
    Walk,
    is_backwards,
    put_batch_order,
    put_sessions,
)
from wrackline.checkers.engine.ingest.reads import Reads
from wrackline.checkers.engine.object_facts import Call
from wrackline.checkers.engine.objects.values import GETS, put_gets, put_puts
from wrackline.checkers.engine.routing import bucket_of
from wrackline.checkers.exact.operations import NOTHING
from wrackline.checkers.inputs.row_groups import (
    FAIL,
    INVOKE,
    OK,
    Batch,
    Names,
    Operations,
    Split,
    joined,
    of_clients,
    picked,
    read,
)
from wrackline.checkers.inputs.scan import Partners
from wrackline.checkers.inputs.table import NONE, Bools, Ints, concatenated, constant
from wrackline.checkers.inputs.validity import check_answers, check_asked, check_numbers, check_order
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED


class Ingest:
    """Reads one part of a history. ``facts`` gives its facts."""

    def __init__(
        self, split: Split, partners: Partners, context: Context, *, sends_only: bool = False
    ) -> None:
        self.split, self.context, self.sends_only = split, context, sends_only
        self.names = {"type": Names(), "f": Names(context.kinds), "topic": Names()}
        self.names |= {"node": Names(), "error": Names()}
        self.writer = Writer()
        self.counts = Counts(split.run, context)
        self._invoked = {process: (index, ns) for process, index, ns in partners["invoked"]}
        self._completed = {process: tuple(rest) for process, *rest in partners["completed"]}
        self._open: Batch | None = None
        self._last_index = NONE
        self._reads = Reads(context, self.names, self.writer)
        self._sent = Sequence(Walk.SENT)
        self._bases = np.zeros(0, dtype=np.int64)
        self._final_ends = Ends(split.run, context)
        self._neighbours = Neighbours(split.number)

    def facts(self) -> Iterator[pa.RecordBatch]:
        """Raises OSError when the file cannot be read, Senseless when it is no history."""
        for fresh in read(self.split, self.names, extra=not self.sends_only):
            self._take(fresh)
            yield from self.writer.batches()
        self._leave()
        yield from self.writer.batches(everything=True)

    def _take(self, fresh: Batch) -> None:
        self._last_index = check_order(fresh.events.index, self._last_index)
        records = fresh.records
        check_numbers(fresh.events.partition, records.partition, records.offset, records.value)
        known = self.names["topic"].names
        bases = [self.context.topics.get((self.split.run, name), NONE) for name in known[len(self._bases) :]]
        self._bases = np.concatenate([self._bases, np.array(bases, dtype=np.int64)])
        if not self.sends_only:
            self._reads.take(fresh, self._base(fresh.events.topic))
            self.counts.transactional += int(fresh.events.txn.sum())
        batch = joined(self._open, fresh)
        operations, still_open = self._paired(batch)
        self._open = picked(batch, still_open)
        self._operations(batch, operations)

    def _base(self, topic: Ints) -> Ints:
        """The log of partition 0 of each topic; NONE where there is none."""
        padded = np.append(self._bases, NONE)
        return padded[np.where(topic == NONE, len(self._bases), topic)]

    def _paired(self, batch: Batch) -> tuple[Operations, Ints]:
        """The operations that are whole, and the events that are still open."""
        events = batch.events
        clients = np.flatnonzero(of_clients(events.process, events.f, self.names["f"]))
        order = clients[np.argsort(events.process[clients], kind="stable")]
        process = events.process[order]
        same = np.diff(process) == 0 if len(order) else np.zeros(0, dtype=bool)
        invoked = events.kind[order] == INVOKE
        follows = np.append(same, False)
        answered = invoked & follows & ~np.append(invoked[1:], True)
        check_asked(events.index[order], process, np.flatnonzero(invoked & follows & ~answered))
        silent = ~invoked & (events.f[order] == self._number("send")) & (events.size[order] == 0)
        last_of_process = ~follows
        still_open = invoked & last_of_process
        at = np.flatnonzero(invoked & ~still_open)
        has = answered[at]
        completion = np.where(has, at + 1, at)
        says_most = np.where(has & ~silent[completion], completion, at)
        operations = self._assemble(batch, order[at], order[completion], has, order[says_most])
        # A completion at the beginning of a process here belongs to an invocation in an earlier split.
        first = np.append(True, ~same)[: len(order)]
        again = ~invoked & ~first & ~np.append(False, invoked)[: len(order)]
        heads = np.flatnonzero(~invoked & first)
        again[heads] = [one not in self._invoked for one in process[heads].tolist()]
        check_answers(events.index[order], process, again)
        heads = heads[~silent[heads]]
        if len(heads) and self._invoked:
            operations = concatenated(Operations, [self._headless(batch, order[heads]), operations])
        return operations, np.sort(order[still_open])

    def _number(self, f: str) -> int:
        return self.names["f"].number(f)

    def _assemble(self, batch: Batch, invoked: Ints, completed: Ints, has: Bools, says: Ints) -> Operations:
        return Operations(
            process=batch.events.process[invoked],
            f=batch.events.f[invoked],
            base=self._base(batch.events.topic[says]),
            partition=batch.events.partition[says],
            kind=np.where(has, batch.events.kind[completed], 3),
            shown_end=np.where(has, batch.events.high_watermark[completed], NONE),
            error=np.where(has, batch.events.error[completed], NONE),
            event=says,
            invoke_index=batch.events.index[invoked],
            invoke_ns=batch.events.ns[invoked],
            complete_index=np.where(has, batch.events.index[completed], NONE),
            complete_ns=np.where(has, batch.events.ns[completed], NONE),
        )

    def _headless(self, batch: Batch, completed: Ints) -> Operations:
        rows = [
            (at, *self._invoked.pop(process))
            for at, process in zip(completed.tolist(), batch.events.process[completed].tolist(), strict=True)
            if process in self._invoked
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
        at = columns[:, 0]
        result = self._assemble(batch, at, at, np.ones(len(at), dtype=bool), at)
        return replace(result, invoke_index=columns[:, 1], invoke_ns=columns[:, 2])

    def _leave(self) -> None:
        """Passes on the operations that are open at the end of the split: they never completed, or their
        completion is elsewhere."""
        if self._open is not None and len(self._open):
            batch, rows = self._open, np.arange(len(self._open))
            left = self._assemble(batch, rows, rows, np.zeros(len(rows), dtype=bool), rows)
            completions = np.zeros((len(rows), 3), dtype=np.int64)
            keep = np.ones(len(rows), dtype=bool)
            for at, process in enumerate(batch.events.process.tolist()):
                index, ns, kind, silent = self._completed.get(process, (NONE, NONE, 3, 1))
                completions[at] = index, ns, kind
                keep[at] = bool(silent)
            left = replace(
                left,
                complete_index=completions[:, 0],
                complete_ns=completions[:, 1],
                kind=completions[:, 2],
            )
            self._operations(batch, left.take(keep))
        if not self.sends_only:
            self._neighbours.leave(self.writer, self.context, self._sent)
            self._reads.edges()
            self._sent.edges(self.writer)
            self._floors()
        self.counts.leave(self.writer, self.names, self.sends_only)

    def _floors(self) -> None:
        if self.split.number:
            return
        for log in self.context.logs_of.get(self.split.run, ()):
            floor = self.context.logs[log].start - 1
            self.writer.rows(log, max(floor, 0) // self.context.width, Floor(np.array([floor])))

    # --- operations

    def _operations(self, batch: Batch, operations: Operations) -> None:
        if not self.sends_only:
            drain = self._number("drain")
            some = operations.take(operations.f != drain)
            self.counts.operations(batch, some, self.names)
            self._ends(operations)
            self._shown(operations)
            if self.split.run in self.context.objects:
                self._gets(batch, operations)
        sends = operations.take(operations.f == self._number("send"))
        if len(sends.process):
            self._sends(batch, sends)

    def _ends(self, operations: Operations) -> None:
        answered = (
            (operations.f == self._number("end")) & (operations.kind == OK) & (operations.shown_end != NONE)
        )
        ends = operations.take(answered & (operations.base != NONE) & (operations.partition != NONE))
        log, width = ends.base + ends.partition, self.context.width

        def of(kind: type[EndOffset], offset: Ints) -> EndOffset:
            return replace(ends.carry(kind), offset=offset)

        some = ends.shown_end > 0
        last = of(End, ends.shown_end - 1).take(some)
        self.writer.spread(log[some], last.offset // width, last)
        self.writer.spread(log, np.maximum(ends.shown_end, 0) // width, of(EndAsked, ends.shown_end))

    def _shown(self, operations: Operations) -> None:
        """Passes on how far any operation was told that a log goes: by an end offset, or by the high
        watermark of what it read."""
        known = (operations.base != NONE) & (operations.partition != NONE)
        seen = operations.take((operations.kind == OK) & (operations.shown_end != NONE) & known)
        shown = replace(seen.carry(ShownEnd), log=seen.base + seen.partition, end=seen.shown_end)
        self._final_ends.put(self.writer, self.context, shown)

    def _gets(self, batch: Batch, operations: Operations) -> None:
        """Passes on the reads or dequeues of a register or a queue."""
        f = self._number(GETS[self.context.objects[self.split.run]])
        gets = operations.take((operations.f == f) & (operations.kind != FAIL))
        gets = gets.take((gets.base != NONE) & (gets.partition != NONE))
        some = batch.events.size[gets.event] > 0
        value = np.full(len(some), NOTHING)
        value[some] = batch.records.value[batch.begin[gets.event[some]]]
        call = Call(
            inv=gets.invoke_index,
            ret=gets.complete_index,
            inv_ns=gets.invoke_ns,
            ret_ns=gets.complete_ns,
            process=gets.process,
        )
        log = gets.base + gets.partition
        put_gets(self.writer, self.context, self.split.run, gets.kind == OK, log, value, call)

    def _sends(self, batch: Batch, sends: Operations) -> None:
        which, rows = batch.records_of(sends.event)
        base = sends.base[which]
        log = np.where(base == NONE, NONE, base + batch.records.partition[rows])
        value, offset = batch.records.value[rows], batch.records.offset[rows]
        completed = sends.complete_index[which] != NONE
        acked = completed & ((offset >= 0) | (offset == ACKED_WITHOUT_OFFSET))
        refused = ~acked & completed & ((offset == FAILED) | (sends.kind[which] == FAIL))
        unsure = np.where(refused, SendOutcome.REFUSED, SendOutcome.UNSURE)
        outcome = np.where(acked, SendOutcome.ACKED, unsure)
        result = replace(
            sends.carry(Sent).take(which),
            log=log,
            value=value,
            outcome=outcome,
            sent_offset=np.where(completed & (offset >= 0), offset, NONE),
            rank=rows - batch.begin[sends.event[which]],
        )
        if self.sends_only:
            self.writer.spread(VALUES, self._bucket(value), result)
            return
        if self.split.run in self.context.objects:
            put_puts(self.writer, self.context, self.split.run, result)
        known = log != NONE
        self.counts.sends(log, outcome, sends.error[which], result.complete_ns, acked & known)
        placed = result.sent_offset != NONE
        acks = result.take(known & placed)
        self._acks(acks)
        unplaced = result.take(known & ~placed).carry(Unplaced)
        self.writer.spread(VALUES, self._bucket(unplaced.value), unplaced)
        if self._neighbours.needed(known & ~placed & ~refused):
            self._neighbours.put(self.writer, self.context, result.take(known & ~refused), self._sent)
        self._in_order(acks)

    def _bucket(self, value: Ints) -> Ints:
        return bucket_of(constant(self.split.run, len(value)), value, self.context.buckets)

    def _acks(self, sends: Send) -> None:
        acks = replace(sends.carry(Ack), offset=sends.sent_offset)
        self.writer.spread(sends.log, acks.offset // self.context.width, acks)

    def _in_order(self, sends: Send) -> None:
        """Later sends of a process that have the smaller offset, and records of one send in another order."""
        steps = self._sent.steps(
            replace(
                sends.carry(Position),
                order=sends.invoke_index,
                offset=sends.sent_offset,
                next=sends.sent_offset,
                index=sends.complete_index,
                ns=sends.complete_ns,
            ),
            is_backwards,
        )
        apart = steps.earlier.order < steps.later.order
        put_sessions(self.writer, steps.take(apart), self.context)
        put_batch_order(self.writer, steps.take(steps.earlier.order == steps.later.order), self.context)
