"""The order of records whose senders were told no place: of unknown outcome, or acknowledged without an
offset.

Where each lies only the final read tells, and what was sent with its value only the look by value
(wrackline.checkers.engine.by_value). Two questions are left then, for those that are there:

- of each process, its records in one partition in the order in which it sent them (*rank* within a send): is
  one that was sent later before one sent earlier? Within a send that is ``batch-order``; between sends
  ``session-order``, where the earlier one had been acknowledged. Of unknown outcome it may land any time
  later, which is no disorder. Records that were told their place are needed beside those that were not: they
  are the *mates* of these, and come by way of the chunk that knows whether they are in the final read;
- of each log, from its end down: was one sent after another above it had been acknowledged? That is
  ``append-order``. Of records that were told their place the chunk says which one below was sent last
  (``below``).

A value with several copies counts by its lowest one: whatever is sent after an ack lies above the copy that
was acknowledged, and so above the lowest.
"""

from __future__ import annotations

import numpy as np

from wrackline.checkers.engine.candidates import (
    ACKED,
    BATCH,
    IN_FINAL,
    OF_A_PROOF,
    UNSURE,
    bucket_of,
    is_stray,
    lt,
)
from wrackline.checkers.engine.context import Context, run_of
from wrackline.checkers.engine.earliest_proof import Proof, at_rows
from wrackline.checkers.engine.facts import BELOW, COLUMNS, SENDERS, TIMES, Kind, Rows, Writer, together
from wrackline.checkers.engine.marks import Marks
from wrackline.checkers.engine.per_process import Sequence
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools

FIRST, LAST = -1, 1 << 30
"""``rank`` of a record that is the first or the last of its process, where nobody knows any more what it was
in its send."""
_MATE = COLUMNS[Kind.MATE]


class Mates:
    """Finds the mates in a split, batch by batch."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._waiting: Ints = np.zeros(0, dtype=np.int64)
        """Keys (process and log) whose last record was told no place: the next one that was is its mate."""

    def needed(self, untold: Bools) -> bool:
        """Whether there is anything to look at, where these records of a batch were told no place."""
        return len(self._waiting) > 0 or bool(untold.any())

    def put(self, writer: Writer, context: Context, sent: Rows, told: Sequence) -> None:
        """``sent``: a batch's records (columns of SEND) without those refused; ``told``: where the records
        with an offset stood before this batch."""
        untold = sent.sent_offset == NONE
        keys = _key(sent.process, sent.log)
        wanted = np.union1d(keys[untold], self._waiting)
        mine = sent.take(np.isin(keys, wanted))
        order = np.lexsort((mine.rank, mine.invoke_index, _key(mine.process, mine.log)))
        mine, key = mine.take(order), _key(mine.process, mine.log)[order]
        same = np.append(False, np.diff(key) == 0)[: len(key)]
        lacks = mine.sent_offset == NONE
        before = np.where(same, np.append(False, lacks[:-1])[: len(key)], np.isin(key, self._waiting))
        after = np.append(same[1:] & lacks[1:], False)[: len(key)]
        found = mine.take(~lacks & (before | after))
        _put(writer, context, Rows({**found.columns, "offset": found.sent_offset}, len(found)))
        firsts = key[~same & lacks]
        stood = told.stood(LAST)
        _put(writer, context, stood.take(np.isin(_key(stood.process, stood.log), firsts)))
        last = ~np.append(same[1:], False)[: len(key)]
        seen, open_now = key[last], key[last & lacks]
        self._waiting = np.union1d(np.setdiff1d(self._waiting, seen), open_now)

    def leave(self, writer: Writer, context: Context, told: Sequence) -> None:
        """At the edges of a split: what comes before and after is in others."""
        _put(writer, context, told.stood(LAST))
        if self._number:
            _put(writer, context, told.begun(FIRST))


def _key(process: Ints, log: Ints) -> Ints:
    """One number for both, within a run."""
    found: Ints = process << 32 | (log & 0xFFFFFFFF)
    return found


def _put(writer: Writer, context: Context, rows: Rows) -> None:
    writer.spread(Kind.MATE, rows.log, rows.offset // context.width, [rows.columns[name] for name in _MATE])


def settled(mates: Rows, final_index: Ints) -> Rows:
    """Those that the final read has where their acks say."""
    there = final_index != NONE
    found = mates.take(there)
    size = len(found)
    found.columns |= {
        "final_index": final_index[there],
        "outcome": np.full(size, ACKED),
        "told": np.ones(size, dtype=np.int64),
    }
    return found


def untold(rows: Rows) -> Rows:
    """Of rows with all that is known of their values: those that nobody was told the place of, at their
    lowest one."""
    there = (rows.step == IN_FINAL) & is_stray(rows) & (rows.sent_offset == NONE) & (rows.home == 1)
    known = np.isin(rows.outcome, (ACKED, UNSURE)) & (rows.value >= 0) & (rows.offset == rows.kept_offset)
    found = rows.take(there & known)
    late = lt(found.by_settled_ack, found.invoke_index)
    found.columns |= {"told": np.zeros(len(found), dtype=np.int64), "late": late.astype(np.int64)}
    return found


def put_mates(writer: Writer, context: Context, rows: Rows) -> None:
    """To those who look at what each process sent."""
    if not len(rows):
        return
    bucket = bucket_of(run_of(rows.log), rows.process, context.buckets)
    names = COLUMNS[Kind.UNTOLD]
    whole = rows.completed(names)
    columns = [whole.columns[name] for name in names]
    writer.spread(Kind.UNTOLD, SENDERS - bucket, np.zeros(len(rows), dtype=np.int64), columns)


def put_untold(writer: Writer, context: Context, rows: Rows) -> None:
    """The same, and to those who look at each log from its end down."""
    if not len(rows):
        return
    put_mates(writer, context, rows)
    columns = [rows.columns[name] for name in COLUMNS[Kind.UNTOLD]]
    writer.spread(Kind.UNTOLD, rows.log, -(rows.offset // context.width), columns)


def of_senders(rows: Rows, marks: Marks) -> Rows:
    """Suspects: what a process sent later, and is before what it sent earlier."""
    rows = _once(rows)
    order = np.lexsort((rows.rank, rows.invoke_index, rows.process, rows.log))
    rows = rows.take(order)
    group = np.append(False, (np.diff(rows.log) == 0) & (np.diff(rows.process) == 0))[: len(rows)]
    at = np.flatnonzero(group)
    later, earlier = rows.take(at), rows.take(at - 1)
    apart = bools((earlier.offset > later.offset) & ((earlier.told == 0) | (later.told == 0)))
    same = later.invoke_index == earlier.invoke_index
    known = (np.minimum(earlier.rank, later.rank) > FIRST) & (np.maximum(earlier.rank, later.rank) < LAST)
    after_ack = (earlier.outcome == ACKED) & lt(earlier.complete_index, later.invoke_index)
    shuffled = _pairs(earlier, later, apart & same & known, marks.bit("shuffled"))
    unordered = _pairs(earlier, later, apart & after_ack, marks.bit("out of session"))
    return together([shuffled, unordered], _OF_A_PAIR)


_OF_A_PAIR = (
    *("log", "step", "marks", "offset", "value", "process", "outcome", *TIMES, "final_index"),
    *("earlier_offset", "earlier_value", "earlier_index", "kept_index"),
)


def _once(rows: Rows) -> Rows:
    """Of a record that came several times the one that knows its rank."""
    unsure = (rows.rank == FIRST) | (rows.rank == LAST)
    order = np.lexsort((unsure, rows.value, run_of(rows.log)))
    new = np.append(True, (np.diff(rows.value[order]) != 0) | (np.diff(run_of(rows.log)[order]) != 0))
    return rows.take(order[new[: len(order)]])


def _pairs(earlier: Rows, later: Rows, where: Bools, mark: int) -> Rows:
    found, before = later.take(where), earlier.take(where)
    size = len(found)
    found.columns |= {
        "step": np.full(size, BATCH),
        "marks": np.full(size, mark),
        "earlier_offset": before.offset,
        "earlier_value": before.value,
        "earlier_index": before.complete_index,
        "kept_index": before.final_index,
    }
    return found


class LogOrder:
    """Looks at one log, from its highest chunk down."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks.bit("out of order") | marks.bit("late")
        self._above = Rows({}, 0)
        """Of the records above, acknowledged without an offset, that which was so first; or none."""

    def judged(self, rows: Rows) -> Rows:
        """Suspects: records sent after one above them had been acknowledged."""
        rows = rows.take(np.argsort(rows.offset, kind="stable"))
        acked = rows.take(rows.outcome == ACKED)
        known = together([acked, self._above], COLUMNS[Kind.UNTOLD])
        proof = Proof(known.offset, known.complete_index, known.complete_ns, known.value)
        who = proof.rows(rows.offset)
        late = (rows.late != 1) & lt(at_rows(known.complete_index, who), rows.invoke_index)
        over = _disordered(rows.take(late), known.take(who[late]), self._marks)
        told = acked.take(lt(acked.complete_index, acked.below))
        under = _disordered(_below(told), told, self._marks)
        self._above = known.take(proof.rows(rows.offset[:1])[:1]) if len(known) else self._above
        return together([over, under], _OF_ORDER)


_OF_ORDER = (
    *(
        "log",
        "step",
        "marks",
        "acked",
        "offset",
        "value",
        "process",
        "outcome",
        *TIMES,
        "final_index",
        "kept_index",
    ),
    *(proof + part for proof in ("by_ack", "by_settled_ack") for part in OF_A_PROOF),
)


def _below(rows: Rows) -> Rows:
    """The records that were told their place and lie below these."""
    names = ("invoke_index", "invoke_ns", "complete_index", "complete_ns", "offset", "value")
    below = {name: rows.columns[of] for name, of in zip(names, BELOW, strict=True)}
    nothing = np.full(len(rows), NONE)
    size = len(rows)
    known = {"log": rows.log, "outcome": np.full(size, ACKED), "told": np.ones(size, dtype=np.int64)}
    return Rows({**below, **known, "process": nothing, "final_index": nothing}, size)


def _disordered(rows: Rows, above: Rows, marks: int) -> Rows:
    """``above``: to each the record above it that had been acknowledged before."""
    size = len(rows)
    proof = (above.complete_index, above.complete_ns, above.offset, above.value)
    columns = dict(rows.columns) | {
        "step": np.full(size, IN_FINAL),
        "marks": np.full(size, marks),
        "acked": rows.told,
        "kept_index": above.final_index,
    }
    for name in ("by_ack", "by_settled_ack"):
        columns |= dict(zip((name + part for part in OF_A_PROOF), proof, strict=True))
    return Rows(columns, size)
