"""Matches of records of transactions, by partition and value: with the consumers that were given them, and
with the final read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wrackline.checkers.anomalies.transactions.coordinator import Transaction
from wrackline.checkers.anomalies.transactions.events import Events
from wrackline.checkers.checks.events import Records
from wrackline.checkers.inputs.table import NONE, Bools, Ints, place_in, values_at


@dataclass(frozen=True, slots=True)
class Matches:
    """Records that transactions sent, in the order of their transactions, and where else they are."""

    transactions: list[Transaction]
    sent: Records
    """``of``: a place in ``transactions``. ``offset``: as acknowledged, or a code."""
    given: Ints
    """Rows of ``Events.given`` that gave one of them, in order ..."""
    given_to: Ints
    """... and which of ``sent`` each is."""
    final: Ints
    """The row of ``Events.final`` of each of ``sent`` with the lowest offset; NONE where it has none."""


def match_records(events: Events) -> Matches:
    transactions = list(events.coordinator.transactions.values())
    rows = [(*place, o, n) for n, one in enumerate(transactions) for place, o in one.records.items()]
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    sent = Records(*columns)
    given_to, of_final = _rows_of(sent, events.given, events.final)
    given = np.flatnonzero(given_to != NONE)
    result = np.flatnonzero(of_final != NONE)
    order = np.lexsort((events.final.of[result], events.final.offset[result], of_final[result]))
    rows_of, first = np.unique(of_final[result][order], return_index=True)
    final = np.full(len(sent), NONE)
    final[rows_of] = result[order][first]
    return Matches(transactions, sent, given, given_to[given], final)


def _rows_of(sent: Records, *others: Records) -> Iterator[Ints]:
    """The row in ``sent`` of the same records, by partition and value; NONE where there is none. Values are
    unique in a run, nearly always."""
    logs, log = np.unique(sent.log, return_inverse=True)
    values, value = np.unique(sent.value, return_inverse=True)
    keys, rows = np.unique(value * len(logs) + log, return_index=True)
    for one in others:
        log, value = place_in(logs, one.log), place_in(values, one.value)
        key = np.where((log == NONE) | (value == NONE), NONE, value * len(logs) + log)
        yield values_at(rows, place_in(keys, key))


def in_final_read(records: Records, final: Records) -> Bools:
    """Tells which of these records the final read has at their offsets."""
    logs = np.unique(final.log)
    size = 1 + max((int(one.offset.max()) for one in (records, final) if len(one)), default=0)
    at = place_in(logs, final.log) * size + final.offset
    order = np.lexsort((final.value, at))
    at, value = at[order], final.value[order]
    log = place_in(logs, records.log)
    expected = np.where((log == NONE) | (records.offset < 0), NONE, log * size + records.offset)
    result = np.zeros(len(records), bool)
    for side in ("left", "right"):  # of two values at one offset, which no log has, either
        near = np.clip(np.searchsorted(at, expected, side) - (side == "right"), 0, max(len(at) - 1, 0))
        if len(at):
            result |= (at[near] == expected) & (value[near] == records.value)
    return result
