"""The walk over the events of share groups: what the protocol rules out (KIP-932), record by record.

A client has records that a broker sent after its last poll had ended, so when a poll began says little about
when its records were acquired: that was not before ``Delivery.since_ns``. Until when a lock lasts is known
from below only, too: it began at that time at the earliest. And an acknowledgement of a record below the
group's start succeeds whoever makes it, long after the lock: it proves that the record is final, but not that
its member made it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from wrackline.checkers.anomalies.share.events import (
    FINAL,
    OF_SHARE_GROUPS,
    RELEASE,
    Answer,
    Course,
    Delivery,
    ShareEvents,
    ShareGroup,
)
from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import EventBatch, Records
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.checks.walks import Figure, Walked
from wrackline.checkers.inputs.table import concatenated, rows_of

KINDS = frozenset({"acquire"})
READ = OF_SHARE_GROUPS | {"drain"}
LOOK_NS = 2_000_000_000
"""Metadata show a change of leader so much later at most."""
TRY_NS = 2_000_000_000
"""A delivery that no member sees takes so long, unless its lock is shorter: until the client gives the
request up."""


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Walked:
    """Findings of share groups, and the figure of each: (deliveries, of how many different records)."""
    events, final = ShareEvents(), list[Records]()
    for batch in batches:
        rows = EventBatch(batch, about)
        events.take(rows)
        drains = rows.records.take(rows.are("ok", "drain")[rows.records.of])
        final.append(replace(drains, of=rows.index[drains.of]))
    every = concatenated(Records, final)
    for _, group in sorted(events.groups.items()):
        say = _Findings(group, about)
        for number, courses in sorted(group.courses.items()):
            if (log := about.of_number.get(number)) is not None:
                for offset, course in sorted(courses.items()):
                    yield from say.of_course(log, offset, course)
        yield from say.lags()
        yield from say.skipped(every)
        counts = [len(one.deliveries) for courses in group.courses.values() for one in courses.values()]
        if sum(counts):
            yield Figure("group", group.name, (sum(counts), sum(count > 0 for count in counts)))


class _Findings:
    """The findings of one group."""

    def __init__(self, group: ShareGroup, about: AboutRun) -> None:
        self._group, self._about = group, about

    def of_course(self, log: AboutLog, offset: int, course: Course) -> Iterator[Finding]:
        final = [one for one in course.answers if one.succeeded and one.kind in FINAL]
        again = dict[int, Answer]()
        for one in final:
            for delivery in course.deliveries:
                same = one.delivery is None or one.delivery.value == delivery.value
                if delivery.since_ns > one.ns and same:
                    again.setdefault(delivery.index, one)
        for delivery in course.deliveries:
            if delivery.index in again:
                yield self._redelivery(log, offset, again[delivery.index], delivery)
        yield from self._double_final(log, offset, final)
        yield from self._counts(log, offset, course)
        yield from self._lost_renewals(log, offset, course)
        for first, second in self._pairs(course):
            if first.process != second.process and self._overlap(first, second):
                yield self._lock_overlap(log, offset, first, second)

    @staticmethod
    def _pairs(course: Course) -> Iterator[tuple[Delivery, Delivery]]:
        """Deliveries that follow each other."""
        yield from pairwise(sorted(course.deliveries, key=lambda one: one.index))

    # --- final records

    def _redelivery(self, log: AboutLog, offset: int, one: Answer, delivery: Delivery) -> Finding:
        return self._finding(
            "final-redelivery",
            log,
            offset,
            delivery,
            [one.begin, one.index, delivery.begin, delivery.index],
            f"{self._answered(one)} value {self._about.value(delivery.value)} at offset {offset:,} of {log} "
            f"for share group {self._group.name} (confirmed at {seconds(one.ns)}), and "
            f"{self._got(delivery)}",
            since_ns=one.begin_ns,
        )

    def _double_final(self, log: AboutLog, offset: int, final: list[Answer]) -> Iterator[Finding]:
        """Both were confirmed before the lock of their own delivery can have ended, so each was made by who
        had the record."""
        own = [
            (one, one.delivery)
            for one in sorted(final, key=lambda one: one.index)
            if one.delivery is not None and one.ns <= one.delivery.locked_ns
        ]
        for (first, had), (second, has) in pairwise(own):
            if had is has or has.since_ns > first.ns or had.value != has.value:
                continue
            yield self._finding(
                "double-final",
                log,
                offset,
                has,
                [had.index, first.begin, first.index, has.index, second.begin, second.index],
                f"{self._answered(first)} value {self._about.value(had.value)} at offset {offset:,} of {log} "
                f"for share group {self._group.name} (confirmed at {seconds(first.ns)}), and "
                f"{self._answered(second, begins=False)} it (confirmed at {seconds(second.ns)}): each had it "
                "within a lock of its own",
                since_ns=min(had.since_ns, has.since_ns),
                until_ns=second.ns,
            )

    def _lost_renewals(self, log: AboutLog, offset: int, course: Course) -> Iterator[Finding]:
        """A renewed record is given again by the next poll; here polls gave nothing for longer than the
        renewed lock lasted, and the member was not given it until it ended."""
        for had in course.deliveries:
            if had.renewed is None or len(had.polled) < 2:
                continue
            (index, ns), (last, last_ns) = had.polled
            if last_ns - ns > self._group.lock_ns:
                yield self._finding(
                    "lost-renewal",
                    log,
                    offset,
                    had,
                    [had.index, had.renewed.begin, index, last],
                    f"{self._got(had, begins=True)} for share group {self._group.name} (offset {offset:,} "
                    f"of {log}) and renewed its lock, confirmed at {seconds(ns)}; its polls gave it nothing "
                    f"up to {seconds(last_ns)}, and never that record",
                    since_ns=ns,
                    until_ns=last_ns,
                )

    # --- delivery counts

    def _counts(self, log: AboutLog, offset: int, course: Course) -> Iterator[Finding]:
        limit = self._group.limit
        for delivery in course.deliveries:
            if 0 < limit < delivery.count:
                yield self._finding(
                    "delivery-count",
                    log,
                    offset,
                    delivery,
                    [delivery.begin, delivery.index],
                    f"{self._got(delivery, begins=True)} for share group {self._group.name} (offset "
                    f"{offset:,} of {log}), and the limit is {limit}",
                    where="limit",
                    since_ns=delivery.since_ns,
                )
        for one in course.answers:
            if one.kind == RELEASE and one.succeeded and one.delivery is not None and one.delivery.count:
                yield from self._forgotten(log, offset, one, one.delivery, course)
        counted = [one for one in course.deliveries if one.count]
        highest: Delivery | None = None
        for delivery in sorted(counted, key=lambda one: one.index):
            if highest is not None and delivery.count < highest.count and delivery.since_ns > highest.ns:
                if not self._leader_changed(log, highest.since_ns, delivery.ns):
                    yield self._regression(log, offset, highest, delivery)
                highest = None
            if highest is None or delivery.count >= highest.count:
                highest = delivery

    def _forgotten(
        self, log: AboutLog, offset: int, one: Answer, released: Delivery, course: Course
    ) -> Iterator[Finding]:
        """What was released is on record with its count, so each later delivery counts more."""
        if self._leader_changed(log, released.since_ns, one.ns):
            return  # its count may be one that the former leader never wrote down
        later = (
            delivery
            for delivery in course.deliveries
            if delivery.since_ns > one.ns and 0 < delivery.count <= released.count
        )
        if (delivery := next(later, None)) is not None:
            yield self._finding(
                "delivery-count",
                log,
                offset,
                delivery,
                [released.index, one.begin, one.index, delivery.begin, delivery.index],
                f"{self._answered(one)} value {self._about.value(released.value)} at offset {offset:,} of "
                f"{log} for share group {self._group.name} with delivery count {released.count} (confirmed "
                f"at {seconds(one.ns)}), and {self._got(delivery)}",
                where="released",
                since_ns=one.begin_ns,
            )

    def _regression(self, log: AboutLog, offset: int, before: Delivery, delivery: Delivery) -> Finding:
        return self._finding(
            "delivery-regression",
            log,
            offset,
            delivery,
            [before.begin, before.index, delivery.begin, delivery.index],
            f"{self._got(before, begins=True)} for share group {self._group.name} (offset {offset:,} of "
            f"{log}), and {self._got(delivery)}, though the leader had not changed",
            since_ns=before.since_ns,
        )

    @staticmethod
    def _leader_changed(log: AboutLog, since_ns: int, until_ns: int) -> bool:
        """The first leader of all that are known is none that changed."""
        changes = (ns for ns, _, _ in log.leaders[1:])
        return any(since_ns - LOOK_NS <= ns <= until_ns + LOOK_NS for ns in changes)

    # --- locks

    def _overlap(self, first: Delivery, second: Delivery) -> bool:
        """Tells whether the second one was acquired while the first one's lock lasted. A count that has not
        grown shows that the first one was released, since its member's connection had ended."""
        return (
            second.since_ns > first.ns
            and second.ns < first.locked_ns
            and first.let_go > second.index
            and (not first.count or not second.count or second.count > first.count)
        )

    def _lock_overlap(self, log: AboutLog, offset: int, first: Delivery, second: Delivery) -> Finding:
        return self._finding(
            "lock-overlap",
            log,
            offset,
            second,
            [first.begin, first.index, second.begin, second.index],
            f"{self._got(first, begins=True)} for share group {self._group.name} (offset {offset:,} of "
            f"{log}), which had not let it go, and whose lock lasted to {seconds(first.locked_ns)} at least; "
            f"and {self._got(second)}",
            since_ns=first.since_ns,
        )

    # --- how far the group came

    def lags(self) -> Iterator[Finding]:
        """Nothing was given for so long that all locks had ended and members that are gone were put out."""
        quiet_ns = 2 * self._group.lock_ns + self._group.session_ns
        for number, answer in sorted(self._group.lags.items()):
            log = self._about.of_number.get(number)
            deliveries = [one for course in self._group.courses[number].values() for one in course.deliveries]
            last = max(deliveries, key=lambda one: one.index, default=None)
            index, ns = (-1, 0) if last is None else (last.index, last.ns)
            polls = [begin for begin in self._group.polled if index < begin < answer.index]
            if log is None or answer.lag <= 0 or not polls or answer.ns - ns < quiet_ns:
                continue
            since = "never" if last is None else f"not since {seconds(last.ns)}"
            yield Finding(
                anomaly="share-lag",
                log=log,
                offset=answer.start,
                operations=[polls[-1], answer.index] + ([] if last is None else [last.index]),
                sentence=f"Share group {self._group.name} has {answer.lag:,} records left of {log} at "
                f"{seconds(answer.ns)}, from offset {answer.start:,} on, and was given a record of it "
                f"{since}, though a member polled",
                since_ns=ns,
                until_ns=answer.ns,
            )

    def skipped(self, final: Records) -> Iterator[Finding]:
        """Records that the group is past, and that are neither final nor out of deliveries. Of what was
        appended after the last delivery nobody knows whether the group is past it."""
        unseen = _most_unseen(self._about, self._group.lock_ns)
        for number, answer in sorted(self._group.lags.items()):
            log, courses = self._about.of_number.get(number), self._group.courses[number]
            if log is None or answer.lag != 0 or not log.complete or log.compacted or not self._group.limit:
                continue
            past = max(answer.start, max((o + 1 for o, c in courses.items() if c.deliveries), default=0))
            here = (final.log == number) & (final.value >= 0) & (final.offset < past)
            for record in rows_of(final.take(np.asarray(here))):
                course = courses.get(record.offset, Course())
                if any(one.kind in FINAL for one in course.answers):
                    continue
                counts = [one.count for one in course.deliveries]
                remaining = self._group.limit - max(counts, default=0)
                yield self._unrefused(
                    log, record, course, answer.index, remaining if remaining > unseen else 0
                )

    def _unrefused(self, log: AboutLog, record: Records, course: Course, lag: int, remaining: int) -> Finding:
        """``left``: deliveries that it must have had still; 0: it may have had none."""
        last = max(course.deliveries, key=lambda one: one.index, default=None)
        history = "was never given it"
        if last is not None:
            history = f"was given it {len(course.deliveries)} times, at last with delivery count {last.count}"
        why = f"{remaining} deliveries were left" if remaining else "its deliveries are used up, or may be"
        return Finding(
            anomaly="share-skip" if remaining else "archived-unrefused",
            log=log,
            offset=int(record.offset),
            value=int(record.value),
            operations=[int(record.of), lag, *(one.index for one in course.deliveries[-3:])],
            sentence=f"Value {self._about.value(int(record.value))} is at offset {int(record.offset):,} of "
            f"{log}, and share group {self._group.name}, which is past it, {history}; nobody accepted or "
            f"rejected it, and {why}",
            since_ns=0 if last is None else last.since_ns,
        )

    # --- sentences

    def _answered(self, one: Answer, *, begins: bool = True) -> str:
        did = {"accept": "accepted", "reject": "rejected"}.get(one.kind, "released")
        who = one.process if one.delivery is None else one.delivery.process
        return f"{'P' if begins else 'p'}rocess {self._about.process(who)} {did}"

    def _got(self, delivery: Delivery, *, begins: bool = False) -> str:
        count = f" with delivery count {delivery.count}" if delivery.count else ""
        what = f"value {self._about.value(delivery.value)}" if begins else "it"
        who = f"{'P' if begins else 'p'}rocess {self._about.process(delivery.process)}"
        return f"{who} was given {what}{count} at {seconds(delivery.ns)}"

    @staticmethod
    def _finding(
        anomaly: str,
        log: AboutLog,
        offset: int,
        delivery: Delivery,
        operations: list[int],
        sentence: str,
        *,
        since_ns: int,
        until_ns: int | None = None,
        where: str | None = None,
    ) -> Finding:
        return Finding(
            anomaly=anomaly,
            log=log,
            offset=offset,
            value=delivery.value,
            operations=operations,
            where=where,
            sentence=sentence,
            since_ns=since_ns,
            until_ns=delivery.ns if until_ns is None else until_ns,
        )


def _most_unseen(about: AboutRun, lock_ns: int) -> int:
    """How many deliveries of a record, one after another, no member may have seen: two for a client that
    ends or is slow, and those of the longest stretch of faults."""
    each_ns = max(1, min(lock_ns or TRY_NS, TRY_NS))
    longest, begin, end = 0, 0, -1
    for fault in sorted(about.faults, key=lambda one: one.begin_ns):
        if fault.ended_ns is None:
            return 1 << 30
        if fault.begin_ns > end + each_ns:
            begin = fault.begin_ns
        end = max(end, fault.ended_ns)
        longest = max(longest, end - begin)
    return max(2, 1 + (longest + each_ns) // each_ns) if about.faults else 2
