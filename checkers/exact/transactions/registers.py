"""Transactions that read and write registers: who read whose write, and what is wrong at one look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.checkers.exact.transactions.answers import Case, operation
from wrackline.checkers.exact.transactions.columns import NIL
from wrackline.checkers.exact.transactions.rows import Mop, Txn
from wrackline.checkers.models.protocol import Outcome

FIRST = -1
"""The writer of what a register holds at first, nil."""


@dataclass(slots=True)
class Reading:
    """The origins of reads: which transaction read what another wrote. Transactions are rows."""

    reads: list[dict[int, int]]
    """Of each transaction: a key that it read before it wrote it -> who wrote what it read, or FIRST."""
    writes: list[dict[int, int]]
    """Of each transaction: key -> the last value that it wrote."""
    counts: list[bool]
    """Of each transaction, whether it happened: it is ok, or somebody read what it wrote."""
    wrong: list[tuple[str, Case]] = field(default_factory=list)
    repeated: tuple[int, int, tuple[int, ...]] | None = None
    """(key, value, writers): a value that several transactions wrote, and that was read."""


def reading(txns: Sequence[Txn]) -> Reading:
    writes = [{mop.key: mop.value for mop in one.mops if mop.writes} for one in txns]
    finals: dict[tuple[int, int], list[int]] = defaultdict(list)
    others: dict[tuple[int, int], int] = {}
    failed: dict[tuple[int, int], int] = {}
    for one, last in zip(txns, writes, strict=True):
        happened = one.outcome is not Outcome.FAIL
        for mop in one.mops:
            at = mop.key, mop.value
            if not mop.writes:
                continue
            if not happened:
                failed.setdefault(at, one.row)
            elif last[mop.key] != mop.value:
                others.setdefault(at, one.row)
            elif not finals[at] or finals[at][-1] != one.row:
                finals[at].append(one.row)
    result = Reading([{} for _ in txns], writes, [one.known for one in txns])
    for one in txns:
        if one.known:
            _read(one, result, finals, others, failed)
    return result


def _read(
    one: Txn,
    found: Reading,
    finals: dict[tuple[int, int], list[int]],
    others: dict[tuple[int, int], int],
    failed: dict[tuple[int, int], int],
) -> None:
    holds: dict[int, int] = {}
    """What the transaction must see, by what it did itself."""
    for mop in one.mops:
        key, value = mop.key, mop.value
        if mop.writes:
            holds[key] = value
            continue
        if key in holds:
            if holds[key] != value:
                found.wrong.append(_wrong("internal", one, mop, expected=_value(holds[key])))
            continue
        holds[key] = value
        at = key, value
        writers = [row for row in finals.get(at, ()) if row != one.row]
        if value == NIL and not writers:
            found.reads[one.row][key] = FIRST
        elif len(writers) + (value == NIL) > 1:
            found.repeated = found.repeated or (key, value, tuple(writers))
        elif writers:
            found.reads[one.row][key] = writers[0]
            found.counts[writers[0]] = True
        elif others.get(at, one.row) != one.row:
            found.wrong.append(_wrong("G1b", one, mop, writer=operation(others[at])))
        elif at in finals or at in others:
            found.wrong.append(_wrong("future-read", one, mop))
        elif at in failed:
            found.wrong.append(_wrong("G1a", one, mop, writer=operation(failed[at])))
        else:
            found.wrong.append(_wrong("garbage-read", one, mop))


def _value(value: int) -> int | None:
    return None if value == NIL else value


def _wrong(kind: str, one: Txn, mop: Mop, **facts: Any) -> tuple[str, Case]:
    said = {"op": operation(one.row), "mop": ["r", mop.key, _value(mop.value)], **facts}
    rows = [one.row, *(fact["operation"] for fact in facts.values() if isinstance(fact, dict))]
    return kind, Case(tuple(rows), "", facts=said)
