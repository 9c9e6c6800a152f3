"""Everything that is known of one value: its places, beside the send it came from.

An ack that names a place settles most values where the place is judged. What comes here is the rest: places
that no ack named (*strays*), sends that were told no place, and suspects, whose other copies decide what they
are.
"""

from __future__ import annotations

import itertools

import numpy as np

from wrackline.checkers.engine.candidates import (
    BATCH,
    EPOCH,
    IN_FINAL,
    NOWHERE,
    PROOFS,
    REWIND,
    SHOWN,
    UNREAD,
    UNSURE,
    is_stray,
)
from wrackline.checkers.engine.candidates import COLUMNS as SUSPECT_COLUMNS
from wrackline.checkers.engine.context import Context, run_of
from wrackline.checkers.engine.facts import AGAIN, COLUMNS, SEND, Kind, Rows, grouped, together
from wrackline.checkers.engine.unacknowledged import untold
from wrackline.checkers.inputs.arrays import NEVER, NONE, Bools, Ints


class Bucket:
    """Takes up packets of the values of one bucket; ``judged`` when all are there."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._suspects: list[Rows] = []
        self._sends: list[Rows] = []
        self.untold = Rows({}, 0)
        """Of Kind.UNTOLD."""

    def take(self, owner: int, kind: Kind, rows: Rows) -> None:
        if kind is Kind.SUSPECT:
            self._suspects.append(rows if owner == AGAIN else self._of_the_first_round(rows))
        else:
            self._sends.append(rows)

    def _of_the_first_round(self, rows: Rows) -> Rows:
        """Without what was judged again."""
        if not self.context.again:
            return rows
        chunk = np.maximum(rows.offset, 0) // self.context.width
        again = np.zeros(len(rows), dtype=bool)
        for log, number in self.context.again:
            again |= (rows.log == log) & (chunk == number)
        return rows.take(~again | np.isin(rows.step, (REWIND, BATCH, EPOCH, SHOWN)))

    def judged(self) -> tuple[Rows, dict[int, tuple[int, int]], int]:
        """(rows that some check wants, {run: (unproven sends that were read, that were not)}, strays whose
        value none of the sends here has)."""
        rows = together(self._suspects, SUSPECT_COLUMNS)
        sends = _once(together(self._sends, COLUMNS[Kind.SENT]))
        self._carried(rows)
        of_rows, of_sends, groups = _numbered(rows, sends)
        send_of = np.full(groups + 1, -1)
        send_of[of_sends[::-1]] = np.arange(len(sends))[::-1]
        stray = is_stray(rows) & (rows.value >= 0)
        unmatched = self._with_sends(rows, np.flatnonzero(stray), send_of[of_rows], sends)
        placed = np.zeros(groups + 1, dtype=bool)
        placed[of_rows[stray]] = True
        homeless = (sends.sent_offset == NONE) & ~placed[of_sends]
        nowhere = self._nowhere(sends.take(homeless))
        rows = together([rows, nowhere], SUSPECT_COLUMNS)
        self._by_value(rows, np.concatenate([of_rows, of_sends[homeless]]), groups)
        rows.columns["marks"] = self.context.marks.by_value(rows, self.context.unfilled)
        self.untold = untold(rows)
        return rows.take(rows.marks != 0), self._unproven(rows), unmatched

    def _carried(self, rows: Rows) -> None:
        """Of rows of chunks with others above them: the earliest proofs up there; and what was sent last of
        those below."""
        if not (self.context.carry or self.context.below) or not len(rows):
            return
        chunk = np.maximum(rows.offset, 0) // self.context.width
        order, starts, _ = grouped(rows.log, chunk)
        bounds = [*np.flatnonzero(starts).tolist(), len(order)]
        for lo, hi in itertools.pairwise(bounds):
            some = order[lo:hi]
            place = int(rows.log[some[0]]), int(chunk[some[0]])
            below = self.context.below.get(place, {})
            later = some[(rows.below[some] < below.get("below", NONE)) & (rows.step[some] == IN_FINAL)]
            for name in below:
                rows.columns[name][later] = below[name]
            carry = self.context.carry.get(place, {})
            for proof in PROOFS[:-1]:
                kind = proof.removeprefix("by_")
                if carry.get(kind, NONE) == NONE:
                    continue
                mine = rows.columns[proof][some]
                later = some[(mine == NONE) | (carry[kind] <= mine)]
                for part in ("", "_ns", "_offset", "_value"):
                    rows.columns[proof + part][later] = carry[kind + part]

    @staticmethod
    def _with_sends(rows: Rows, strays: Ints, send: Ints, sends: Rows) -> int:
        """Puts each stray beside the send of its value. Returns how many have none."""
        found = send[strays] >= 0
        at, of = strays[found], send[strays[found]]
        for name in SEND:
            if name not in ("log", "value"):
                rows.columns[name][at] = sends.columns[name][of]
        rows.columns["sent_log"][at] = sends.log[of]
        return int((~found).sum())

    def _nowhere(self, sends: Rows) -> Rows:
        """Sends that were told no place and are in none."""
        size = len(sends)
        about = [self.context.logs.get(log) for log in sends.log.tolist()]
        columns = dict(sends.columns) | {
            "sent_log": sends.log,
            "step": np.full(size, NOWHERE),
            "marks": np.zeros(size, dtype=np.int64),
            "acked": np.zeros(size, dtype=np.int64),
            "complete": np.array(
                [int(a.complete and not a.derived) if a else 0 for a in about], dtype=np.int64
            ),
            "log_end": np.array([a.end if a else NONE for a in about], dtype=np.int64),
            "idempotent": np.array([int(a.idempotent) if a else 0 for a in about], dtype=np.int64),
        }
        return Rows(columns, size)

    @staticmethod
    def _by_value(rows: Rows, group: Ints, groups: int) -> None:
        final, polled = rows.final_index != NONE, rows.poll_index != NONE
        home = rows.log == rows.sent_log
        # What an ack or a poll named and the whole final read does not have there is no copy: it vanished, or
        # never was.
        gone = ~final & (rows.complete == 1) & (rows.step != UNREAD)
        stands = final | (((rows.acked == 1) | polled) & ~gone)
        original = _original(rows, group, groups, stands & home)
        kept = _original(rows, group, groups, final & home)
        astray = _any((rows.acked == 1) & gone, group, groups)
        # Where an ack was right nothing is wrong with its place, and it is no suspect.
        right = (rows.sent_offset != NONE) & (astray == 0) & home & (rows.complete == 1)
        rows.columns |= {
            "home": home.astype(np.int64),
            "stands": stands.astype(np.int64),
            "in_final": _any(final, group, groups),
            "was_polled": _any(polled, group, groups),
            "first": _first_of_each(rows, group).astype(np.int64),
            "original_offset": np.append(rows.offset, NONE)[original],
            "original_index": np.append(rows.index, NONE)[original],
            "kept_offset": np.where(right, rows.sent_offset, np.append(rows.offset, NONE)[kept]),
            "kept_index": np.append(rows.final_index, NONE)[kept],
            "astray": astray,
        }

    @staticmethod
    def _unproven(rows: Rows) -> dict[int, tuple[int, int]]:
        """Sends of unknown outcome, counted once each."""
        unsure = (rows.outcome == UNSURE) & (rows.first == 1) & (rows.step <= NOWHERE)
        run, seen = run_of(rows.log[unsure]), (rows.in_final | rows.was_polled)[unsure] == 1
        return {
            int(one): (int((seen & (run == one)).sum()), int((~seen & (run == one)).sum()))
            for one in np.unique(run)
        }


def _once(sends: Rows) -> Rows:
    """Sends that were given twice, once."""
    order, starts, _ = grouped(run_of(sends.log), sends.value, sends.invoke_index)
    return sends.take(order[starts])


def _numbered(rows: Rows, sends: Rows) -> tuple[Ints, Ints, int]:
    """A number for each (run, value): of rows, of sends, and how many. Rows that are of no value have their
    own."""
    run = np.concatenate([run_of(rows.log), run_of(sends.log)])
    value = np.concatenate([rows.value, sends.value])
    order, starts, _ = grouped(run, value)
    number = np.zeros(len(value), dtype=np.int64)
    number[order] = np.cumsum(starts) - 1
    nobodys = np.flatnonzero(rows.value < 0)
    groups = int(number.max()) + 1 if len(number) else 0
    number[nobodys] = groups + np.arange(len(nobodys))
    return number[: len(rows)], number[len(rows) :], groups + len(nobodys)


def _any(what: Bools, group: Ints, groups: int) -> Ints:
    found = np.zeros(groups + 1, dtype=np.int64)
    found[group[what]] = 1
    return found[group]


def _first_of_each(rows: Rows, group: Ints) -> Bools:
    """Which row speaks for its value."""
    order = np.lexsort((rows.offset, rows.log, rows.acked, group))
    new = np.append(True, np.diff(group[order]) != 0)[: len(order)]
    first = np.zeros(len(group), dtype=bool)
    first[order[new]] = True
    found: Bools = first | (rows.offset == NONE)
    return found


def _original(rows: Rows, group: Ints, groups: int, where: Bools) -> Ints:
    """The lowest place of each row's value that stands where it was sent to; -1 where there is none."""
    some = np.flatnonzero(where)
    order = some[
        np.lexsort((np.where(rows.index == NONE, NEVER, rows.index)[some], rows.offset[some], group[some]))
    ]
    lowest = np.full(groups + 1, -1)
    lowest[group[order[::-1]]] = order[::-1]
    found: Ints = lowest[group]
    return found
