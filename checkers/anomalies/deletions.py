"""Deleted records (docs/anomalies.md, section 1): what DeleteRecords and retention promise of the beginning
of a log.

A log start is told by who asks where a log begins (``end``, the final read), and by the answer to
DeleteRecords: its low watermark is the smallest log start of the live replicas. One walk over a run's events
finds all of it. A poll may return what was fetched long before, so it is held against what was deleted before
its consumer took its position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import EventBatch
from wrackline.checkers.checks.explained_by import By, ExplainedBy, Spelt
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Walk, Walked
from wrackline.checkers.inputs.runs import deletes
from wrackline.checkers.inputs.table import NONE
from wrackline.checkers.verdict.anomaly import Family, Promise

ASSIGN, DELETE, DRAIN, END, POLL, REBALANCE = "assign", "delete", "drain", "end", "poll", "rebalance"


class Mark(NamedTuple):
    """An offset that an operation was told, or asked for."""

    offset: int = 0
    event: int = NONE
    """Its index."""
    ns: int = 0


NOTHING = Mark()


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation that is under way, and what was known of its partition when it was invoked."""

    index: int
    requested: int
    """By ``delete``: the offset below which it deletes."""
    start: Mark
    """The largest log start that anybody had been told."""
    deleted: Mark
    """The largest offset below which an answered DeleteRecords had deleted."""


@dataclass(slots=True)
class Partition:
    """What is known of a partition so far."""

    start: Mark = NOTHING
    deleted: Mark = NOTHING
    requested: Mark = NOTHING
    """The largest offset that any DeleteRecords asked for, whatever became of it."""
    end: Mark = NOTHING
    """The largest end offset."""
    first: Mark = NOTHING
    """Where the final read began."""


@dataclass(slots=True)
class Stay:
    """A consumer in a partition that it has taken by itself."""

    next: Mark
    """The offset that it is given next."""
    deleted: Mark
    """What had been deleted when it took its position."""
    end: Mark
    """The end of the log as it was known when its consumer came to ``next``."""
    resets_to: str


@dataclass(slots=True)
class _Run:
    about: AboutRun
    partitions: dict[int, Partition] = field(default_factory=dict)
    open: dict[int, Begun] = field(default_factory=dict)
    """By process."""
    stays: dict[int, dict[int, Stay]] = field(default_factory=dict)
    """Process -> log -> where it is."""

    def of(self, log: int) -> Partition:
        return self.partitions.setdefault(log, Partition())

    def take(self, events: EventBatch) -> Walked:
        """Finds what contradicts what came before, event by event."""
        kinds, types = (events.column(name).to_pylist() for name in ("f", "type"))
        offset, end, partition = (events.ints(name) for name in ("offset", "high_watermark", "partition"))
        numbers = zip(
            *(one.tolist() for one in (events.index, events.ns, events.process, events.base)),
            *(one.tolist() for one in (partition, offset, end)),
            strict=True,
        )
        extras = events.column("extra").to_pylist()
        polled = _first_and_last(events)
        for row, (index, ns, process, base, part, at, high) in enumerate(numbers):
            f, kind = kinds[row], types[row]
            extra = _fields_of(extras[row]) if f in (ASSIGN, DELETE, DRAIN) else {}
            if f == ASSIGN:
                self._assigned(process, base, Mark(event=index, ns=ns), extra, begins=kind == "invoke")
            elif f == REBALANCE:
                self.stays.pop(process, None)
            elif f == POLL:
                for log, first, last in polled.get(row, ()) if kind == "ok" else ():
                    yield from self._polled(process, log, first, last, Mark(first, index, ns))
            elif (about := self.about.of_number.get(base + part if base != NONE else NONE)) is not None:
                if kind == "invoke":
                    here = self.of(about.number)
                    self.open[process] = Begun(index, at, here.start, here.deleted)
                    if f == DELETE:
                        here.requested = max(here.requested, Mark(at, index, ns))
                elif kind == "ok" and (begun := self.open.pop(process, None)) is not None:
                    yield from self._answered(f, about, begun, Mark(at, index, ns), high, extra)

    # --- log starts

    def _answered(
        self, f: str, log: AboutLog, begun: Begun, answer: Mark, end: int, extra: Mapping[str, Any]
    ) -> Iterator[Finding]:
        here = self.of(log.number)
        here.end = max(here.end, answer._replace(offset=end))
        if f == DELETE:
            low = extra.get("low_watermark")
            if not isinstance(low, int):
                return
            if low < begun.requested:
                yield _finding(
                    "incomplete-deletion",
                    log,
                    begun.requested,
                    [begun.index, answer.event],
                    f"DeleteRecords of {log} up to offset {begun.requested:,} was answered at "
                    f"{seconds(answer.ns)} with the low watermark {low:,}, which is below that",
                    answer.ns,
                    answer.ns,
                )
            here.deleted = max(here.deleted, answer._replace(offset=begun.requested))
            here.start = max(here.start, answer._replace(offset=low))
            return
        if answer.offset < 0 or (f == DRAIN and here.first.event != NONE):
            return  # every chunk of a final read repeats its log start
        if f == DRAIN:
            here.first = answer
        if f == DRAIN and answer.offset < begun.deleted.offset:
            yield _lost(log, begun.deleted, answer)
        elif answer.offset < begun.start.offset:
            yield _finding(
                "log-start-regression",
                log,
                answer.offset,
                [begun.start.event, begun.index, answer.event],
                f"{log} was said to begin at offset {begun.start.offset:,} at {seconds(begun.start.ns)}"
                f"{log.led_by(begun.start.ns)}; who asked after that was told at {seconds(answer.ns)}"
                f"{log.led_by(answer.ns)} that it begins at offset {answer.offset:,}",
                begun.start.ns,
                answer.ns,
            )
        here.start = max(here.start, answer)

    def excess(self) -> Iterator[Finding]:
        """Logs that begin past all that anybody asked to delete, where no setting deletes."""
        by_setting = {topic.name for topic in self.about.info.topics if topic.deletion}
        for number, here in sorted(self.partitions.items()):
            log = self.about.of_number[number]
            if (
                here.requested.event == NONE
                or log.topic in by_setting
                or here.first.offset <= here.requested.offset
            ):
                continue
            yield _finding(
                "excess-deletion",
                log,
                here.requested.offset,
                [here.requested.event, here.first.event],
                f"The final read of {log} begins at offset {here.first.offset:,}, though nobody asked to "
                f"delete past offset {here.requested.offset:,}, and no setting of the topic deletes",
                here.requested.ns,
                None,
            )

    # --- consumers

    def _assigned(
        self, process: int, base: int, now: Mark, extra: Mapping[str, Any], *, begins: bool
    ) -> None:
        """What a consumer takes by itself is fetched from then on: nothing that it had is kept."""
        if not begins:
            return
        self.stays[process] = {}
        positions = extra.get("positions")
        for number, start in positions.items() if isinstance(positions, dict) else ():
            log = base + int(number)
            if base != NONE and log in self.about.of_number and isinstance(start, int):
                here, resets_to = self.of(log), str(extra.get("reset") or "")
                at = now._replace(offset=start)
                self.stays[process][log] = Stay(at, here.deleted, here.end, resets_to)

    def _polled(self, process: int, log: int, first: int, last: int, poll: Mark) -> Iterator[Finding]:
        here, stay = self.of(log), self.stays.get(process, {}).get(log)
        if stay is not None:
            about = self.about.of_number[log]
            if first < stay.deleted.offset:
                yield self._deleted_read(about, process, stay, poll)
                stay.deleted = NOTHING  # one finding is enough
            if (
                stay.resets_to == "latest"
                and stay.next.offset < min(first, about.start)
                and first < stay.end.offset
            ):
                yield self._reset_finding(about, process, stay, poll)
        here.end = max(here.end, poll._replace(offset=last + 1))
        if stay is not None:
            stay.next, stay.end = poll._replace(offset=last + 1), here.end

    def _deleted_read(self, log: AboutLog, process: int, stay: Stay, poll: Mark) -> Finding:
        gone = stay.deleted
        return _finding(
            "deleted-read",
            log,
            poll.offset,
            [gone.event, poll.event],
            f"DeleteRecords of {log} up to offset {gone.offset:,} was answered at {seconds(gone.ns)}; "
            f"process {self.about.process(process)}, which took its position after that, was given offset "
            f"{poll.offset:,} at {seconds(poll.ns)}{log.led_by(poll.ns)}",
            gone.ns,
            poll.ns,
        )

    def _reset_finding(self, log: AboutLog, process: int, stay: Stay, poll: Mark) -> Finding:
        return _finding(
            "wrong-reset",
            log,
            poll.offset,
            [stay.next.event, stay.end.event, poll.event],
            f"Process {self.about.process(process)} stood at offset {stay.next.offset:,} of {log}, which was "
            f"deleted, and resets to the latest offset; the log was known to end at offset "
            f"{stay.end.offset:,} at {seconds(stay.end.ns)}, but it went on at offset {poll.offset:,} at "
            f"{seconds(poll.ns)}",
            stay.next.ns,
            poll.ns,
        )


def _lost(log: AboutLog, deleted: Mark, answer: Mark) -> Finding:
    return _finding(
        "lost-deletion",
        log,
        answer.offset,
        [deleted.event, answer.event],
        f"DeleteRecords of {log} up to offset {deleted.offset:,} was answered at {seconds(deleted.ns)}; the "
        f"final read of {log} begins at offset {answer.offset:,}",
        deleted.ns,
        None,
    )


def _finding(
    anomaly: str,
    log: AboutLog,
    offset: int,
    operations: list[int],
    sentence: str,
    since_ns: int,
    until_ns: int | None,
) -> Finding:
    return Finding(
        anomaly=anomaly,
        log=log,
        offset=offset,
        operations=[one for one in operations if one != NONE],
        sentence=sentence,
        since_ns=since_ns,
        until_ns=until_ns,
    )


def _fields_of(extra: str | None) -> Mapping[str, Any]:
    fields = orjson.loads(extra) if extra else {}
    return fields if isinstance(fields, dict) else {}


def _first_and_last(events: EventBatch) -> dict[int, list[tuple[int, int, int]]]:
    """Row of a poll -> (log, first offset, last offset) of each partition that it gave records of."""
    mine = events.records.take(events.are("ok", POLL)[events.records.of])
    mine = mine.take(np.flatnonzero(mine.offset >= 0))
    if not len(mine):
        return {}
    mine = mine.take(np.lexsort((mine.offset, mine.log, mine.of)))
    starts = np.flatnonzero(np.append(True, (np.diff(mine.of) != 0) | (np.diff(mine.log) != 0)))
    last = np.append(starts[1:], len(mine)) - 1
    result: dict[int, list[tuple[int, int, int]]] = {}
    columns = (mine.of[starts], mine.log[starts], mine.offset[starts], mine.offset[last])
    for row, log, low, high in zip(*(one.tolist() for one in columns), strict=True):
        result.setdefault(row, []).append((log, low, high))
    return result


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Walked:
    run = _Run(about)
    for batch in batches:
        yield from run.take(EventBatch(batch, about))
    yield from run.excess()


DELETIONS = Walk(
    name="deletions",
    needs=frozenset({DELETE, END}),
    when=deletes,
    reads=frozenset({ASSIGN, DELETE, DRAIN, END, POLL, REBALANCE}),
    find=find,
)
BY_FACTS = ExplainedBy(By.FACTS, spelt=Spelt.AS_GIVEN)

found_by(
    DELETIONS,
    Family.LOSS,
    {
        "incomplete-deletion": WalkAnomaly(
            "DeleteRecords was answered with a low watermark below the offset that it was asked for",
            Promise.ALWAYS,
        ),
        "lost-deletion": WalkAnomaly(
            "after healing a log begins below an offset up to which an answered DeleteRecords had deleted",
            Promise.LASTING_DELETIONS,
            rests_on_final_read=True,
        ),
        "excess-deletion": WalkAnomaly(
            "a log begins past every offset that anybody asked to delete, and no setting deletes",
            Promise.NO_LOSS,
            rests_on_final_read=True,
        ),
    },
)
found_by(
    DELETIONS,
    Family.VISIBILITY,
    {
        "deleted-read": WalkAnomaly(
            "a consumer was given a record that had been deleted before it took its position",
            Promise.LINEARIZABLE_READS,
            BY_FACTS,
        ),
        "log-start-regression": WalkAnomaly(
            "a log start lies below one that was told before it was asked for", Promise.LINEARIZABLE_READS
        ),
    },
)
found_by(
    DELETIONS,
    Family.ORDER,
    {
        "wrong-reset": WalkAnomaly(
            "a consumer whose position was deleted went on elsewhere than auto.offset.reset says",
            Promise.LINEARIZABLE_READS,
            BY_FACTS,
        ),
    },
)
