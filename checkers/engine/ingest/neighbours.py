"""The neighbours of records without a known offset: those that their process sent right before or after, and
whose offsets are known (wrackline.checkers.engine.logs.unacknowledged)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wrackline.checkers.engine.context import Context
from wrackline.checkers.engine.fact_codec import Writer
from wrackline.checkers.engine.facts import FIRST, LAST, Placed, Send
from wrackline.checkers.engine.ingest.per_process import Sequence
from wrackline.checkers.inputs.table import NONE, Bools, Ints


class Neighbours:
    """Finds, batch by batch, the records with an offset that their process sent right before or after ones
    without."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._waiting: Ints = np.zeros(0, dtype=np.int64)
        """Keys (process and log) whose last record has no offset: the next one that has is wanted."""

    def needed(self, unplaced: Bools) -> bool:
        """Tells whether there is anything to look at, where these records of a batch have no offset."""
        return len(self._waiting) > 0 or bool(unplaced.any())

    def put(self, writer: Writer, context: Context, sends: Send, placed: Sequence) -> None:
        """``sends``: a batch's records without those refused; ``placed``: where the records with an offset
        stood before this batch."""
        keys = _key(sends.process, sends.log)
        expected = np.union1d(keys[sends.sent_offset == NONE], self._waiting)
        mine = sends.take(np.isin(keys, expected))
        order = np.lexsort((mine.rank, mine.invoke_index, _key(mine.process, mine.log)))
        mine, key = mine.take(order), _key(mine.process, mine.log)[order]
        same = np.append(False, np.diff(key) == 0)[: len(key)]
        lacks = mine.sent_offset == NONE
        before = np.where(same, np.append(False, lacks[:-1])[: len(key)], np.isin(key, self._waiting))
        after = np.append(same[1:] & lacks[1:], False)[: len(key)]
        _put(writer, context, _placed(mine.take(~lacks & (before | after))))
        firsts = key[~same & lacks]
        stood = placed.stood(LAST)
        _put(writer, context, stood.take(np.isin(_key(stood.process, stood.log), firsts)))
        last = ~np.append(same[1:], False)[: len(key)]
        seen, open_now = key[last], key[last & lacks]
        self._waiting = np.union1d(np.setdiff1d(self._waiting, seen), open_now)

    def leave(self, writer: Writer, context: Context, placed: Sequence) -> None:
        """Writes the positions at the edges of what is read at once: what comes before and after is
        elsewhere."""
        _put(writer, context, placed.stood(LAST))
        if self._number:
            _put(writer, context, placed.begun(FIRST))


def _key(process: Ints, log: Ints) -> Ints:
    """One number for both, within a run."""
    result: Ints = process << 32 | (log & 0xFFFFFFFF)
    return result


def _placed(sends: Send) -> Placed:
    return replace(sends.carry(Placed), offset=sends.sent_offset)


def _put(writer: Writer, context: Context, rows: Placed) -> None:
    writer.spread(rows.log, rows.offset // context.width, rows)
