"""Checks that transactions took effect as a whole or not at all, and none whose producer had been fenced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from wrackline.checkers.anomalies.transactions.coordinator import Coordinator, SentOffset, Transaction
from wrackline.checkers.anomalies.transactions.events import Events
from wrackline.checkers.anomalies.transactions.matches import Matches
from wrackline.checkers.anomalies.transactions.reads import READ_UNCOMMITTED, first_polls
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.events import Request
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.inputs.table import NONE, Bools, bools

READ_COMMITTED = "read_committed"
"""Consumers that ask for it are told a committed offset only once the ends of the transactions are known that
would change it."""


@dataclass(frozen=True, slots=True)
class _OffsetAnswer:
    """The answer to a group about an offset that a transaction commits."""

    log: int
    offset: int
    """That of the transaction."""
    answer: Request
    before: Request | None = None
    """An earlier answer."""


def torn_transactions(events: Events, matches: Matches, about: AboutRun) -> Iterator[Finding]:
    """Yields torn transactions, each once, of those that were committed, or may have been. ``where``:
    ``committed`` or ``end unknown`` (some of its records are in the final read and some are not), ``offsets``
    (a group has its offsets, and the final read has none of its records), ``records`` (its end is unknown,
    the final read has its records, and its group does not have its offsets)."""
    size, missing = len(matches.transactions), _missing(matches, about)
    every, seen, gone = (
        np.bincount(matches.sent.of[some], minlength=size)
        for some in (np.full(len(missing), True), matches.final != NONE, missing)
    )
    has, lacks = _offset_answers(events.coordinator, about)
    first = np.cumsum(every) - every
    for at in np.flatnonzero(every).tolist():
        one, got = matches.transactions[at], None
        if not one.may_be_committed:
            continue
        if seen[at] and gone[at]:
            where = "committed" if one.type == "ok" else "end unknown"
        elif gone[at] == every[at] and (got := has.get(one.number)):
            where = "offsets"
        elif seen[at] and (got := lacks.get(one.number)):
            where = "records"
        else:
            continue
        rows = range(first[at], first[at] + every[at])
        yield _torn(events, matches, about, one, rows, missing, where, got)


def _missing(matches: Matches, about: AboutRun) -> Bools:
    """Tells which records the final read lacks though it would have them. Of a compacted topic, where
    polls stand for the final read, and below the beginning of a log, none is."""
    logs = about.of_number.values()
    whole = [one.number for one in logs if one.complete and one.unread_from is None and not one.compacted]
    missing = (matches.final == NONE) & np.isin(matches.sent.log, np.array(whole, np.int64))
    for row in np.flatnonzero(missing).tolist():
        log, one = about.of_number[int(matches.sent.log[row])], matches.transactions[matches.sent.of[row]]
        offset = int(matches.sent.offset[row]) if one.complete_index is not None else -1
        missing[row] = not (log.start > 0 and offset < log.start)
    return bools(missing)


def _torn(
    events: Events,
    matches: Matches,
    about: AboutRun,
    one: Transaction,
    rows: range,
    missing: Bools,
    where: str,
    got: _OffsetAnswer | None,
) -> Finding:
    def place(row: int) -> tuple[str, int, int]:
        log, value, _, _ = matches.sent.at(row)
        return about.of_number[log].topic, about.of_number[log].partition, value

    def named(row: int, at: str = "") -> str:
        log, value, _, _ = matches.sent.at(row)
        return f"value {about.value(value)}{at} of {about.of_number[log]}"

    seen = sorted((row for row in rows if matches.final[row] != NONE), key=place)
    gone = sorted((row for row in rows if missing[row]), key=place)
    final_index, there, at = None, "", [*gone, *seen][0]
    if seen:
        final_offset, final_index = events.final.at(matches.final[seen[0]])[2:]
        there = (
            f"the final read has {len(seen):,} of its {len(rows):,} records (such as "
            f"{named(seen[0], f' at offset {final_offset:,}')})"
        )
    if where == "offsets" and got is not None:
        what = (
            f"group {got.answer.event.of} has its offsets, and the final read has none of its records (it "
            f"lacks {named(at)}, for example)"
        )
    elif where == "records" and got is not None:
        what = f"{there}, and {_answered(got, about, got.answer)}, not {got.offset:,}"
    else:
        what = f"{there} and lacks {len(gone):,} (such as {named(at)})"
    ended = f"was committed at {seconds(one.complete_ns)}" if one.type == "ok" else "may have been committed"
    log, value, offset, _ = matches.sent.at(at)
    answered = None if got is None else got.answer.complete_index
    return Finding(
        anomaly="torn-transaction",
        log=about.of_number[log],
        offset=offset if offset >= 0 else None,
        value=value,
        operations=[one.invoke_index, one.complete_index, final_index, answered],
        where=where,
        sentence=f"Transaction {one.number} {ended}, but only a part of it is there: {what}",
        since_ns=one.invoke_ns,
    )


def _answered(got: _OffsetAnswer, about: AboutRun, answer: Request) -> str:
    offset, log = answer.event.offsets[got.log], about.of_number[got.log]
    what = "it has committed nothing" if offset < 0 else f"its committed offset is {offset:,}"
    return f"group {answer.event.of} was told at {seconds(answer.complete_ns)} that in {log} {what}"


def _offset_answers(
    coordinator: Coordinator, about: AboutRun
) -> tuple[dict[int, _OffsetAnswer], dict[int, _OffsetAnswer]]:
    """Returns by the number of a transaction the first answer, after its commit if there is one, that its
    group has its offsets: no less than theirs, where the commit had succeeded; where its end is unknown
    theirs exactly, which nobody else committed. And the first that it has not: another one, that no later
    commit accounts for."""
    has: dict[int, _OffsetAnswer] = {}
    lacks: dict[int, _OffsetAnswer] = {}
    at_once: dict[int, _OffsetAnswer] = {}
    waits = about.info.isolation == READ_COMMITTED
    for sent in coordinator.sent():
        one, commit = sent.transaction, sent.commit
        unknown = waits and commit.complete_index is not None and one.type == "info" and one.asked == "commit"
        for answer in sent.proofs:
            _keep_first(at_once, sent, answer)
        for answer in (a for a in sent.answers if a.since > commit.last_index):
            offset = answer.event.offsets[sent.log]
            if (commit.type == "ok" and offset >= sent.offset) or (offset == sent.offset and sent.alone):
                _keep_first(has, sent, answer)
            elif unknown and offset != sent.offset and not sent.is_accounted(offset):
                _keep_first(lacks, sent, answer)
    return at_once | has, lacks


def _keep_first(
    kept: dict[int, _OffsetAnswer], sent: SentOffset, answer: Request, before: Request | None = None
) -> None:
    def order(one: _OffsetAnswer) -> tuple[str, int]:
        return one.answer.event.of, one.answer.last_index

    result = _OffsetAnswer(sent.log, sent.offset, answer, before)
    number = sent.transaction.number
    kept[number] = min(kept.get(number, result), result, key=order)


def zombie_transactions(events: Events, matches: Matches, about: AboutRun) -> Iterator[Finding]:
    """Yields zombies, once per transaction. Its producer was fenced when the next transaction of its
    transactional id began; its commit was asked for later, and it took effect. ``where``: ``committed`` (the
    call succeeded), ``visible`` (its end is unknown, and a record was read), ``offsets`` (a group has its
    offsets, which nobody else committed), ``late`` (its commit had been asked for in time, and its group was
    told something else when the next one had begun, and its offsets only later)."""
    torn_offsets = _fenced_offsets(events.coordinator, about)
    fenced = np.array([one.fenced_by is not None for one in matches.transactions], bool)
    polled = first_polls(events, matches, fenced)
    first = np.searchsorted(matches.sent.of, np.arange(len(matches.transactions) + 1))
    for at, one in enumerate(matches.transactions):
        newer, offsets = one.settled_by, torn_offsets.get(one.number)
        if newer is None or not (one.fenced_by or offsets) or one.type == "fail":
            continue
        rows = range(first[at], first[at + 1]) if about.info.isolation != READ_UNCOMMITTED else ()
        seen = next((r for r in rows if matches.final[r] != NONE or polled[r] != NONE), None)
        did, rest = "took effect", ""
        cited: list[int | None] = []
        log, value, offset = None, None, None
        if one.type == "ok":
            where, did = "committed", f"was committed at {seconds(one.complete_ns)}"
        elif one.fenced_by and seen is not None:
            where, by = "visible", "the final read"
            log, value, *_ = matches.sent.at(seen)
            if matches.final[seen] != NONE:
                offset, index = events.final.at(matches.final[seen])[2:]
            else:
                given = events.read(polled[seen])
                by, offset, index = f"a consumer at {seconds(given.ns)}", given.offset, given.index
            cited = [index]
            rest = (
                f"value {about.value(value)} was read at offset {offset:,} of {about.of_number[log]} by {by}"
            )
        elif offsets is not None:
            where, log = "offsets" if offsets.before is None else "late", offsets.log
            answers = [answer for answer in (offsets.before, offsets.answer) if answer is not None]
            cited = [answer.complete_index for answer in answers]
            rest = ", and ".join(_answered(offsets, about, answer) for answer in answers)
            rest += ", which nobody else committed"
        else:
            continue
        begun = (
            f"transaction {newer.number} of the same transactional id ({one.transactional_id}) had begun at "
            f"{seconds(newer.invoke_ns)}"
        )
        why = (
            f", though its producer was fenced: {begun}, before its own commit was asked for at "
            f"{seconds(one.end_ns)}" + (rest and f"; {rest}")
        )
        if where == "late":
            why = f" after {begun}: {rest}"
        yield Finding(
            anomaly="zombie-transaction",
            log=None if log is None else about.of_number[log],
            offset=offset,
            value=value,
            operations=[one.invoke_index, newer.invoke_index, one.complete_index, *cited],
            where=where,
            sentence=f"Transaction {one.number} {did}{why}",
            since_ns=newer.invoke_ns,
            until_ns=one.complete_ns,
        )


def _fenced_offsets(coordinator: Coordinator, about: AboutRun) -> Mapping[int, _OffsetAnswer]:
    """Returns by the number of a transaction of unknown end the answer that shows that its group has its
    offsets; of one that was not fenced, but settled, with an answer of something else after the next one
    had begun."""
    result: dict[int, _OffsetAnswer] = {}
    for sent in coordinator.sent():
        one, newer = sent.transaction, sent.transaction.settled_by
        if one.type != "info" or one.asked != "commit" or newer is None or newer.invoke_index is None:
            continue
        began = newer.invoke_index
        others = (a for a in sent.answers if a.since > began and a.event.offsets[sent.log] != sent.offset)
        before = min(others, key=lambda answer: answer.last_index, default=None)
        for answer in sent.proofs:
            if one.fenced_by:
                _keep_first(result, sent, answer)
            elif about.info.isolation == READ_COMMITTED and before and answer.since > before.last_index:
                _keep_first(result, sent, answer, before)
    return result
