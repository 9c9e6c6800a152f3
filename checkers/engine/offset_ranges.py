"""One chunk of one log: everything that was said of a range of its offsets, held against each other.

Facts become *places* (one row per offset and value), sorted by offset, and three questions are answered for
all of them at once: who else claims this offset, what is the *earliest* proof that the log had grown to it or
past it (docs/linearizability.md 3.2, rule 3: what was invoked later came too late for it), and what comes
next above it. Nearly every anomaly is then a comparison of columns. What a chunk must know of those above it
is a few numbers (wrackline.checkers.engine.range_bounds).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from wrackline.checkers.engine.candidates import (
    ACKED,
    END_ASKED,
    GAP,
    HOLE,
    IN_FINAL,
    IN_REPLICAS,
    JUMP,
    TOLD,
    UNREAD,
    is_kept,
    is_place,
    is_stray,
    least,
)
from wrackline.checkers.engine.candidates import COLUMNS as SUSPECT_COLUMNS
from wrackline.checkers.engine.context import Context, LogInfo
from wrackline.checkers.engine.earliest_proof import (
    Below,
    Known,
    Proof,
    Slots,
    at_rows,
    earliest_polls,
    first_of,
    largest,
    right_before,
    smallest,
)
from wrackline.checkers.engine.facts import BELOW, COLUMNS, TIMES, Kind, Rows, together
from wrackline.checkers.engine.unacknowledged import settled
from wrackline.checkers.inputs.arrays import NEVER, NONE, Bools, Ints, bools

KINDS_OF_PROOF = ("ack", "settled_ack", "poll", "final", "end")
SUMMARY = (
    *("log", "chunk"),
    *(kind + part for kind in KINDS_OF_PROOF for part in ("", "_ns", "_offset", "_value")),
    *("last_claim", "low_final", "low_final_value", "low_final_at", "high_final"),
    *("low_place", "low_point", "low_is_place", "high_point", "floor", "jump_need", "gaps"),
    *BELOW,
)
"""What a chunk tells the driver: its earliest proofs, the latest invocation that claims a place in it, its
lowest and highest offsets of each kind, and which of its acknowledged records was sent last."""
_COMPACT_ROWS = 4_000_000


class Chunk:
    """Takes up packets; ``judged`` when all are there."""

    def __init__(self, log: int, number: int, context: Context) -> None:
        self.log, self.number, self.context = log, number, context
        self.base = number * context.width
        self.about = context.logs.get(log, LogInfo())
        self._facts: dict[Kind, list[Rows]] = {}
        self._polls = 0
        self.mates = Rows({}, 0)
        """Of Kind.UNTOLD: those that the final read has where their acks say."""

    def take(self, kind: Kind, rows: Rows) -> None:
        parts = self._facts.setdefault(kind, [])
        parts.append(rows)
        if kind is Kind.POLL:
            self._polls += len(rows)
            if self._polls > _COMPACT_ROWS:
                self._facts[kind] = [earliest_polls(together(parts, COLUMNS[kind]))]
                self._polls = len(self._facts[kind][0])

    def facts(self, kind: Kind) -> Rows:
        return together(self._facts.get(kind, []), COLUMNS[kind])

    def judged(self) -> tuple[Rows, Rows]:
        """(suspects, summary: one row)."""
        places = self._places()
        asked = self._asked()
        proofs = self._proofs(places)
        carry = self.context.carry.get((self.log, self.number), {})
        claims = together([places, asked], [*dict.fromkeys((*places.columns, *asked.columns))])
        known = Known(claims, proofs, carry)
        claims.columns |= {name: known.index(name) for name in proofs}
        claims.columns["marks"] = self.context.marks.at_places(claims)
        wanted = np.flatnonzero((claims.marks != 0) | is_stray(claims))
        suspects = claims.take(wanted)
        for name in proofs:
            suspects.columns |= known.told(name, wanted)
        below = Below(places)
        suspects.columns |= below.of(suspects.offset, (suspects.step == IN_FINAL) & is_stray(suspects))
        jumps, need = self._jumps(places, carry)
        gaps = self._gaps(places, proofs, carry)
        found = together([suspects, jumps, gaps, self._holes(places, carry)], SUSPECT_COLUMNS)
        return self._with_log(found), self._summary(places, claims, proofs, need, len(gaps), below)

    # --- places

    def _places(self) -> Rows:
        """One row per (offset, value) told by anybody, sorted by offset, step and value."""
        final, ack, poll, replica = (
            self.facts(kind) for kind in (Kind.FINAL, Kind.ACK, Kind.POLL, Kind.REPLICA)
        )
        slots = Slots(self.base, self.context.width, [final, ack, poll, replica])
        at_final, at_ack, at_poll, at_replica = slots.of
        size = slots.size
        below = replica.committed == 1
        columns = {
            "offset": slots.offset,
            "value": slots.value,
            "poll_index": smallest(size, at_poll, poll.index),
            "poll_ns": smallest(size, at_poll, poll.ns),
            "final_index": smallest(size, at_final, final.index),
            "final_ns": smallest(size, at_final, final.ns),
            "replica_index": smallest(size, at_replica, replica.index),
            "hw_index": smallest(size, at_replica[below], replica.index[below]),
            "epoch_low": smallest(size, at_replica[below], replica.epoch[below]),
            "epoch_high": largest(size, at_replica[below], replica.epoch[below]),
        }
        held = np.zeros(size, dtype=np.int64)
        np.bitwise_or.at(held, at_replica, replica.bit)
        columns["held"] = held
        for name in ("process", *TIMES):
            columns[name] = np.full(size, NONE)
            columns[name][at_ack[::-1]] = ack.columns[name][::-1]
        acked = np.zeros(size, dtype=np.int64)
        acked[at_ack] = 1
        columns["acked"] = acked
        columns |= self._sessions(slots)
        mates = self.facts(Kind.MATE)
        self.mates = settled(mates, at_rows(columns["final_index"], slots.find(mates)))
        read = columns["final_index"] != NONE
        told = (acked == 1) | (columns["poll_index"] != NONE)
        columns["step"] = np.where(read, IN_FINAL, np.where(told, TOLD, IN_REPLICAS))
        if self.about.derived:
            unread = (columns["step"] == TOLD) & (slots.offset >= self.about.end)
            columns["step"] = np.where(unread, UNREAD, columns["step"])
        there = np.flatnonzero(slots.value != NONE)
        if slots.crowded:
            order = np.lexsort((columns["value"][there], columns["step"][there], columns["offset"][there]))
            there = there[order]
        places = Rows(columns, size).take(there)
        sent = places.acked == 1
        places.columns |= {
            "outcome": np.where(sent, ACKED, NONE),
            "sent_offset": np.where(sent, places.offset, NONE),
            "sent_log": np.where(sent, self.log, NONE),
            "index": least(
                np.where(sent, places.complete_index, NONE), places.poll_index, places.final_index
            ),
        }
        self._beside(places, crowded=slots.crowded)
        self._with_log(places)
        places.columns["owed"] = np.where(self._bound(places), self.about.every, 0)
        return places

    def _bound(self, places: Rows) -> Bools:
        """What the replicas in the ISR must have: it was acknowledged or given to somebody before anyone
        looked into their logs, and lies below the end that the final read was told."""
        about, acked = self.about, places.acked == 1
        proof = least(places.complete_index, places.poll_index, places.final_index)
        in_time = (proof != NONE) & (proof < about.looked_at)
        within = (places.offset >= about.held_from) & (acked | (places.offset < about.end))
        return bools(in_time & within)

    def _sessions(self, slots: Slots) -> dict[str, Ints]:
        names = ("earlier_offset", "earlier_value", "earlier_index")
        found = {name: np.full(slots.size, NONE) for name in names}
        sessions = self.facts(Kind.SESSION)
        at = slots.find(sessions)
        for name in names:
            found[name][at[at >= 0]] = sessions.columns[name][at >= 0]
        return found

    def _beside(self, places: Rows, *, crowded: bool) -> None:
        """What else is at an offset (``told_``, ``hw_``), and what the final read has there or next
        (``final_``)."""
        size, offset = len(places), places.offset
        committed, final = places.hw_index != NONE, places.step == IN_FINAL
        nobody = np.full(size, -1)
        ours = right_before(offset, is_place(places) & (places.value >= 0)) if crowded else nobody
        kept = right_before(offset, committed) if crowded else nobody
        read = right_before(offset, final) if crowded else nobody
        places.columns |= {
            "told_offset": at_rows(offset, ours),
            "told_value": at_rows(places.value, ours),
            "told_index": at_rows(places.index, ours),
            "hw_offset": at_rows(offset, kept),
            "hw_value": at_rows(places.value, kept),
            "hw_at": at_rows(places.hw_index, kept),
            "hw_epoch": at_rows(places.epoch_high, kept),
        }
        finals = np.flatnonzero(final)
        following = np.append(finals, -1)[np.searchsorted(offset[finals], offset, "right")]
        read = np.where(read >= 0, read, following)
        places.columns |= {
            "final_offset": at_rows(offset, read),
            "final_value": at_rows(places.value, read),
            "final_at": at_rows(places.final_index, read),
        }

    def _asked(self) -> Rows:
        asked = self.facts(Kind.ASKED)
        columns = dict(asked.columns) | {
            "told": asked.offset,
            "step": np.full(len(asked), END_ASKED),
            "acked": np.zeros(len(asked), dtype=np.int64),
            "value": np.full(len(asked), NONE),
        }
        return self._with_log(Rows(columns, len(asked)))

    def _with_log(self, rows: Rows) -> Rows:
        size, about = len(rows), self.about
        rows.columns |= {
            "log": np.full(size, self.log),
            "log_end": np.full(size, about.end),
            "complete": np.full(size, int(about.complete)),
            "idempotent": np.full(size, int(about.idempotent)),
        }
        return rows

    # --- proofs

    def _proofs(self, places: Rows) -> dict[str, Proof]:
        told = is_place(places)
        acked = told & (places.acked == 1)
        settled = acked & is_kept(places)
        ends = self.facts(Kind.END)
        order = np.argsort(ends.offset, kind="stable")
        nothing = np.full(len(ends), NONE)

        def of(index: Ints, ns: Ints, where: Bools) -> Proof:
            return Proof(places.offset, np.where(where & (index != NONE), index, NEVER), ns, places.value)

        return {
            "by_ack": of(places.complete_index, places.complete_ns, acked),
            "by_settled_ack": of(places.complete_index, places.complete_ns, settled),
            "by_poll": of(places.poll_index, places.poll_ns, told),
            "by_final": of(places.final_index, places.final_ns, told),
            "by_end": Proof(ends.offset[order], ends.complete_index[order], ends.complete_ns[order], nothing),
        }

    # --- what lies between places

    def _jumps(self, places: Rows, carry: Mapping[str, int]) -> tuple[Rows, int]:
        """Jumps over offsets that held something, and how far up one must look for those that are not
        decided."""
        jumps = self.facts(Kind.JUMP)
        if not len(jumps):
            return Rows({}, 0), NONE
        told = places.offset[is_place(places)]
        at = np.searchsorted(told, jumps.offset, "left")
        nearest = np.append(told, carry.get("place", NEVER))[at]
        over = nearest < jumps.told
        undecided = (at == len(told)) & (jumps.told > self.base + self.context.width)
        need = int(jumps.told[undecided].max()) if undecided.any() else NONE
        found = jumps.take(over)
        found.columns |= {
            "known_offset": nearest[over],
            "step": np.full(len(found), JUMP),
            "marks": np.full(len(found), self.context.marks.bit("jumped")),
        }
        return found, need

    def _holes(self, places: Rows, carry: Mapping[str, int]) -> Rows:
        """Where the complete final read has nothing right above a record of it (or above the log's start),
        though the log goes on (rules 4 and 5). The highest is decided in the second round only."""
        if not (self.about.complete and self.about.contiguous):
            return Rows({}, 0)
        final = np.flatnonzero(places.step == IN_FINAL)
        offset, index = places.offset[final], places.final_index[final]
        distinct = np.append(True, np.diff(offset) != 0)[: len(offset)]
        floors = self.facts(Kind.FLOOR).offset[:1]
        offset = np.concatenate([floors, offset[distinct]])
        index = np.concatenate([np.full(len(floors), NONE), index[distinct]])
        last = (self.log, self.number) in self.context.again
        above = np.append(offset[1:], carry.get("final_offset", self.about.end) if last else NONE)[
            : len(offset)
        ]
        at = np.append(index[1:], carry.get("final_at", NONE))[: len(offset)]
        hole = (above != NONE) & (above > offset + 1)
        size = int(hole.sum())
        return Rows(
            {
                "offset": offset[hole],
                "told": above[hole],
                "final_index": index[hole],
                "final_at": at[hole],
                "step": np.full(size, HOLE),
                "marks": np.full(size, self.context.marks.bit("hole")),
            },
            size,
        )

    def _points(self, places: Rows) -> tuple[Ints, Ints]:
        """(offsets that were told to be taken, by a record or an end; whether by a record), ascending."""
        told, ends = places.offset[is_place(places)], self.facts(Kind.END).offset
        points = np.unique(np.concatenate([told, ends]))
        return points, np.isin(points, told).astype(np.int64)

    def _gaps(self, places: Rows, proofs: dict[str, Proof], carry: Mapping[str, int]) -> Rows:
        """Offsets that were taken, and that only sends of unknown outcome can be at (rule 5)."""
        if not (self.about.idempotent and self.about.contiguous) or self.about.complete:
            return Rows({}, 0)
        points, held = self._points(places)
        upper = np.append(points, carry.get("point", NONE))
        held = np.append(held, carry.get("point_is_place", 0))
        lower = np.unique(np.concatenate([points, self.facts(Kind.FLOOR).offset[:1]]))
        at = np.searchsorted(points, lower, "right")
        next_up, there = upper[at], held[at]
        unseen = next_up - lower - there
        some = np.flatnonzero((next_up != NONE) & (unseen > 0))
        rows = Rows({"offset": lower[some] + 1}, len(some))
        known = Known(rows, proofs, carry)
        first = [(known.index(name), known.told(name, np.arange(len(some)))) for name in proofs]
        above = least(*(index for index, _ in first))
        columns = {"offset": lower[some], "unseen": unseen[some], "above": above}
        for part in ("_ns", "_offset", "_value"):
            columns["above" + part] = np.full(len(some), NONE)
            for (index, told), name in zip(first, proofs, strict=True):
                columns["above" + part] = np.where(index == above, told[name + part], columns["above" + part])
        columns |= {
            "step": np.full(len(some), GAP),
            "marks": np.full(len(some), self.context.marks.bit("gap")),
        }
        return Rows(columns, len(some))

    def _summary(
        self, places: Rows, claims: Rows, proofs: dict[str, Proof], need: int, gaps: int, below: Below
    ) -> Rows:
        said = {"log": self.log, "chunk": self.number, "jump_need": need, "gaps": gaps, **below.last()}
        for kind, proof in zip(KINDS_OF_PROOF, proofs.values(), strict=True):
            first = proof.at(np.zeros(1, dtype=np.int64))
            said |= {kind + part: int(column[0]) for part, column in first.items()}
        claimed = (is_place(claims) | (claims.step == END_ASKED)) & (claims.invoke_index != NONE)
        final = np.flatnonzero(places.step == IN_FINAL)
        told = places.offset[is_place(places)]
        points, held = self._points(places) if not self.about.complete else (told, np.ones_like(told))
        floors = self.facts(Kind.FLOOR).offset
        said |= {
            "last_claim": int(claims.invoke_index[claimed].max()) if claimed.any() else NONE,
            "low_final": first_of(places.offset[final]),
            "low_final_value": first_of(places.value[final]),
            "low_final_at": first_of(places.final_index[final]),
            "high_final": first_of(places.offset[final][::-1]),
            "low_place": first_of(told),
            "low_point": first_of(points),
            "low_is_place": first_of(held),
            "high_point": first_of(points[::-1]),
            "floor": first_of(floors),
        }
        return Rows({name: np.array([said[name]], dtype=np.int64) for name in SUMMARY})
