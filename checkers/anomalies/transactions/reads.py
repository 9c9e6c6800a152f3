"""Checks the records that consumers were given of transactions that were open, or that nobody wanted to be
visible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wrackline.checkers.anomalies.transactions.coordinator import Transaction
from wrackline.checkers.anomalies.transactions.events import Events
from wrackline.checkers.anomalies.transactions.matches import Matches
from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.inputs.table import NONE, Bools, Ints, assigned, constant, values_at

READ_UNCOMMITTED = "read_uncommitted"


def precommitted_reads(events: Events, matches: Matches, about: AboutRun) -> Iterator[Finding]:
    """Yields one finding for each record that was read before the end of its transaction, whatever became
    of the transaction. ``where``: ``its own`` (a transaction's polls come before its end), ``before its
    end`` (by the clock, of any consumer)."""
    whose, poll = matches.sent.of[matches.given_to], events.given.of[matches.given]
    number = np.array([one.number for one in matches.transactions], np.int64)
    other = events.polls.txn[poll] != number[whose]
    early = np.flatnonzero(~other | (events.polls.ns[poll] < _ends(matches)[whose]))
    order = other[early], events.polls.index[poll[early]], events.given.offset[matches.given[early]]
    for row in early[_first(matches.given_to[early], order)].tolist():
        one, read = matches.transactions[whose[row]], events.read(matches.given[row])
        log, value = about.of_number[read.log], about.value(read.value)
        at = f"at offset {read.offset:,} of {log} at {seconds(read.ns)}"
        if other[row]:
            sentence = (
                f"Process {about.process(read.process)} read value {value} of transaction {one.number}, "
                f"{at}, before the {one.asked or 'end'} of the transaction was asked for at "
                f"{seconds(one.end_ns)}"
            )
        else:
            sentence = (
                f"Transaction {one.number} sent value {value} at {seconds(one.invoke_ns)} and read it "
                f"itself, {at}, when it cannot have been committed yet"
            )
        yield Finding(
            anomaly="precommitted-read",
            log=log,
            offset=read.offset,
            value=read.value,
            operations=[one.invoke_index, read.index],
            where="before its end" if other[row] else "its own",
            sentence=sentence,
            since_ns=one.invoke_ns,
            until_ns=read.ns,
        )


def precommitted_offsets(events: Events, _: Matches, about: AboutRun) -> Iterator[Finding]:
    """``precommitted-read`` of offsets: a group was told that it has those of a transaction, which nobody
    else committed, before the commit of the transaction was asked for, or though nobody ever did. ``where``:
    ``offsets``."""
    for sent in events.coordinator.sent():
        one, log = sent.transaction, about.of_number[sent.log]
        if one.asked == "commit":
            early = [a for a in sent.proofs if _none(a.complete_ns) < _none(one.end_ns)]
            why = f"before the commit of the transaction was asked for at {seconds(one.end_ns)}"
        else:
            early = list(sent.proofs) if one.never_asked and one.asked is None else []
            why = f"and nobody asked for its commit (it ended without success at {seconds(one.complete_ns)})"
        for answer in sorted(early, key=lambda a: a.last_index)[:1]:
            yield Finding(
                anomaly="precommitted-read",
                log=log,
                offset=sent.offset,
                operations=[sent.commit.since, answer.complete_index],
                where="offsets",
                sentence=(
                    f"Group {answer.event.of} was told at {seconds(answer.complete_ns)} that its committed "
                    f"offset of {log} is {sent.offset:,}, which transaction {one.number} alone commits, {why}"
                ),
                since_ns=one.invoke_ns,
                until_ns=answer.complete_ns,
            )


def aborted_reads(events: Events, matches: Matches, about: AboutRun) -> Iterator[Finding]:
    """``aborted-read`` of transactions whose end is unknown and whose commit nobody asked for: whatever the
    calls returned, nobody wanted these records to be visible. Once per record. At read_uncommitted consumers
    are given what is aborted later."""
    if about.info.isolation == READ_UNCOMMITTED:
        return
    sent, unwanted = matches.sent, np.array([one.never_asked for one in matches.transactions], bool)
    first = first_polls(events, matches, unwanted)
    visible = unwanted[sent.of] & ((first != NONE) | (matches.final != NONE))
    for row in np.flatnonzero(visible).tolist():
        one, log = matches.transactions[sent.of[row]], about.of_number[int(sent.log[row])]
        value, offset, final_index = int(sent.value[row]), NONE, None
        read = None if first[row] == NONE else events.read(first[row])
        if read is not None:
            offset, by = read.offset, f"a consumer at {seconds(read.ns)}"
        if matches.final[row] != NONE:
            offset, final_index = events.final.at(matches.final[row])[2:]
            by = "the final read"
        yield Finding(
            anomaly="aborted-read",
            log=log,
            offset=offset,
            value=value,
            operations=[
                one.invoke_index,
                one.complete_index,
                None if read is None else read.index,
                final_index,
            ],
            where="abort failed",
            sentence=(
                f"Value {about.value(value)} is of transaction {one.number}, whose commit nobody asked for "
                f"(it ended without success at {seconds(one.complete_ns)}), but the value was read at offset "
                f"{offset:,} of {log} by {by}"
            ),
            since_ns=one.invoke_ns,
            until_ns=None if read is None else read.ns,
        )


def unstable_reads(events: Events, matches: Matches, about: AboutRun) -> Iterator[Finding]:
    """Consumers of committed records are given nothing at or behind the last stable offset, that of the first
    record of an open transaction (KIP-98). A record that is in the final read was there before what is behind
    it; its transaction was committed, so it was open until that was asked for. Once per transaction and
    partition. A transaction of which a record itself was given too early is a precommitted read."""
    if about.info.isolation == READ_UNCOMMITTED:
        return
    ends = np.array([_none(one.end_ns if one.asked == "commit" else None) for one in matches.transactions])
    whose = matches.sent.of[matches.given_to]
    early = events.polls.ns[events.given.of[matches.given]] < _ends(matches)[whose]
    ends[whose[early]] = NONE
    final = events.final
    committed = np.flatnonzero(matches.final != NONE)
    sent_row = assigned(constant(NONE, len(final)), matches.final[committed], committed)
    for number in np.unique(matches.sent.log[committed]).tolist():
        rows = np.flatnonzero(final.log == number)
        rows = rows[np.argsort(final.offset[rows], kind="stable")]
        of = values_at(matches.sent.of, sent_row[rows])
        open_until = values_at(ends, of)
        latest = np.maximum.accumulate(open_until)
        culprit = np.maximum.accumulate(np.where(open_until == latest, np.arange(len(rows)), 0))
        given = np.flatnonzero(events.given.log == number)
        at = np.minimum(np.searchsorted(final.offset[rows], events.given.offset[given]), len(rows) - 1)
        there = final.offset[rows[at]] == events.given.offset[given]
        there &= (final.value[rows[at]] == events.given.value[given]) & (at > 0)
        given, at = given[there], at[there]
        polls = events.given.of[given]
        behind = events.polls.ns[polls] < latest[at - 1]
        given, at, polls = given[behind], at[behind], polls[behind]
        whose = of[culprit[at - 1]]
        for row in _first(whose, (events.polls.index[polls], events.given.offset[given])):
            before, one = rows[culprit[at[row] - 1]], matches.transactions[whose[row]]
            yield _unstable(events, about, one, int(before), int(given[row]))


def _unstable(events: Events, about: AboutRun, one: Transaction, before: int, given: int) -> Finding:
    """Returns the finding of an unstable read. ``before``: the row of the transaction's record in the
    final read; ``given``: of what a poll gave."""
    read, (number, value, offset, final_index) = events.read(given), events.final.at(before)
    log = about.of_number[number]
    return Finding(
        anomaly="unstable-read",
        log=log,
        offset=read.offset,
        value=read.value,
        operations=[one.invoke_index, one.complete_index, read.index, final_index],
        sentence=(
            f"Process {about.process(read.process)} read value {about.value(read.value)} at offset "
            f"{read.offset:,} of {log} at {seconds(read.ns)}, behind value {about.value(value)} of "
            f"transaction {one.number} at offset {offset:,}, before the commit of the transaction was asked "
            f"for at {seconds(one.end_ns)}"
        ),
        since_ns=one.invoke_ns,
        until_ns=read.ns,
    )


def first_polls(events: Events, matches: Matches, wanted: Bools) -> Ints:
    """The row of ``Events.given`` that gave each of ``Matches.sent`` first, of the transactions that are
    wanted; NONE where nobody was given it."""
    result = np.full(len(matches.sent), NONE)
    some = np.flatnonzero(wanted[matches.sent.of[matches.given_to]])
    rows, given = matches.given_to[some], matches.given[some]
    first = _first(rows, (events.polls.index[events.given.of[given]], events.given.offset[given]))
    result[rows[first]] = given[first]
    return result


def _first(group: Ints, by: Sequence[Ints | Bools]) -> list[int]:
    """Returns for each group the row that is the first by these columns."""
    order = np.lexsort((*reversed(by), group))
    result: list[int] = order[np.unique(group[order], return_index=True)[1]].tolist()
    return result


def _ends(matches: Matches) -> Ints:
    """When the end of each transaction was asked for; NONE where it is not on record."""
    return np.array([_none(one.end_ns) for one in matches.transactions], np.int64)


def _none(ns: int | None) -> int:
    return NONE if ns is None else ns
