"""The final read: every partition from its log start to its end offset and on, by a consumer of its own.

It is evidence of loss only when it reached the end offset that the leader reported after healing and nothing
was behind that, so its last row says whether it did (``extra.complete``). The end is asked for twice: where
that lies below what the read has been given by then, it is the end that is wrong.

Offsets that cannot be read while those behind them can are passed over, and named (``extra.unreadable``): to
consumers they are gone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.history.model import Event, Type
from wrackline.history.offsets import Offsets
from wrackline.workloads.clients.base import ClientError, Consumer, Fetched, Polled
from wrackline.workloads.log.processes import Context, Place, close_in_background, read_records

CHUNK_RECORDS = 2_000
CHUNK_S = 2.0
"""A chunk that brings nothing for so long fails, and the next begins with a fresh consumer."""
UNREADABLE_S = 30.0
"""So long a read must fail at one offset, before it is tried behind that."""
STEP = 32
"""Tries behind an unreadable offset are so far apart at most."""
QUIET_S = 1.0
"""Behind the end that was told nothing must come for so long. A broker with its records in a storage that
others share may give records for minutes that its end offset does not reach."""


@dataclass(frozen=True, slots=True)
class Drained:
    """The course of the final read of one partition."""

    topic: str
    partition: int
    log_start: int
    end: int
    """The end offset that the leader reported last; -1 when no leader answered."""
    records: int
    complete: bool
    problem: str | None
    offsets: Offsets = field(default_factory=Offsets)
    """Where it was given records."""


def drain(context: Context, first_process: int, *, deadline_s: float) -> list[Drained]:
    """Read all partitions of all topics, each in a thread of its own: as process ``first_process`` and on, in
    the order of ``context.places``."""
    result: dict[Place, Drained] = {}
    threads = [
        threading.Thread(
            target=_drain_into,
            args=(result, context, place, first_process + number, deadline_s),
            name=f"drain-{number}",
            daemon=True,
        )
        for number, place in enumerate(context.places)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(deadline_s + 30)
    missing = "the final read did not come back"
    return [result.get(place, Drained(*place, -1, -1, 0, False, missing)) for place in context.places]


def _drain_into(
    found: dict[Place, Drained], context: Context, place: Place, process: int, deadline_s: float
) -> None:
    with context.enter():
        found[place] = _Drain(context, place, process, time.monotonic() + deadline_s).run()


class _Drain:
    """One partition's final read."""

    def __init__(self, context: Context, place: Place, process: int, deadline: float) -> None:
        self.context = context
        self.topic, self.partition = place
        self.process = process
        self.deadline = deadline
        self.low = self.high = self.position = -1
        self.records = 0
        self.offsets = Offsets()
        self.unreadable: list[tuple[int, int]] = []
        self.assigned = False
        self.problem: str | None = None

    def run(self) -> Drained:
        complete, position, since = False, -1, time.monotonic()
        while not complete and time.monotonic() < self.deadline:
            complete = self._attempt()
            if self.position != position:
                position, since = self.position, time.monotonic()
            elif 0 <= self.position < self.high and time.monotonic() - since > UNREADABLE_S:
                self._pass_over()
        problem = None if complete else self.problem or "no time was left"
        return Drained(
            self.topic, self.partition, self.low, self.high, self.records, complete, problem, self.offsets
        )

    def _attempt(self) -> bool:
        """Reads with one consumer, as far as it goes. True when the end was reached."""
        client = self.context.library.consumer(self.context.bootstrap, self.context.spec, tell_end=True)
        self.assigned = False
        try:
            while time.monotonic() < self.deadline:
                before = self.position
                if self._operation(client):
                    return True
                if self.position == before:
                    time.sleep(0.1)
                    break
            return False
        finally:
            close_in_background(client)
            self.process += self.context.stride

    def _pass_over(self) -> None:
        """Goes on behind offsets that cannot be read, if what is behind them can, and they still cannot."""
        bad, good, step = self.position, -1, 1
        while good < 0 and bad + step < self.high and time.monotonic() < self.deadline:
            if self._is_readable(bad + step):
                good = bad + step
            else:
                bad, step = bad + step, min(2 * step, STEP)
        while good >= 0 and good - bad > 1:
            middle = (bad + good) // 2
            bad, good = (bad, middle) if self._is_readable(middle) else (middle, good)
        if good >= 0 and not self._is_readable(self.position):
            self.unreadable.append((self.position, good - 1))
            self.position = good

    def _is_readable(self, offset: int) -> bool:
        """Tells whether a consumer of its own is given anything from an offset on."""
        client = self.context.library.consumer(self.context.bootstrap, self.context.spec)
        try:
            client.assign(self.topic, {self.partition: offset})
            until = time.monotonic() + CHUNK_S
            while time.monotonic() < until:
                polled = client.poll(1, 0.2)
                if polled.records or polled.error:
                    return bool(polled.records)
            return False
        finally:
            close_in_background(client)

    def _operation(self, client: Consumer) -> bool:
        """One chunk: up to CHUNK_RECORDS records. True when the log is read whole.

        The first asks for the end offset too, after its invocation, so that it is an observation like any
        other. Behind that end the read goes on: when nothing comes any more the end is asked for again, and
        what was read must reach it."""
        self._record(Type.INVOKE)
        begin, past_end = time.monotonic_ns(), 0 <= self.high <= self.position
        asked = self.high < 0
        if asked and (refused := self._ask(client)):
            return self._failed(begin, "asking for the end offset", refused)
        if not self.assigned:
            client.assign(self.topic, {self.partition: self.position})
            self.assigned = True
        got = self._read(client, past_end=past_end)
        records, corrupt = read_records(got.records, self.context)
        self.records += len(records)
        for record in records:
            self.offsets.add(record.offset)
        self.position = max(
            [self.position, got.ended[self.partition], *(record.offset + 1 for record in records)]
        )
        if not records and not past_end and self.position < self.high:
            where = f"at offset {self.position} of {self.high}"
            if got.position_lost:  # the log may begin later by now
                self.high = -1
            return self._failed(begin, where, got.error or "_TIMED_OUT")
        if past_end and not records:
            if got.error and not got.position_lost:
                return self._failed(begin, f"behind the end at offset {self.position}", got.error)
            if refused := self._ask(client):
                return self._failed(begin, "asking for the end offset again", refused)
            asked = True
        complete = past_end and not records and self.position >= self.high
        extra: dict[str, Any] = {"positions": {str(self.partition): self.position}}
        extra |= {"asked": True} if asked else {}
        extra |= {"complete": True} if complete else {}
        extra |= {"unreadable": self.unreadable} if complete and self.unreadable else {}
        extra |= {"corrupt": corrupt} if corrupt else {}
        extra |= self.context.states(got.records, records)
        self._record(Type.OK, records=records, extra=extra, latency_ns=time.monotonic_ns() - begin)
        return complete

    def _ask(self, client: Consumer) -> str:
        """Asks for the log's end; returns why there was no answer, empty when there was one."""
        try:
            self.low, self.high = self._ends(client)
        except ClientError as refused:
            return refused.name
        self.position = max(self.position, self.low)
        return ""

    def _ends(self, client: Consumer) -> tuple[int, int]:
        """A consumer of committed records is told where the first open transaction begins. What was
        committed lies behind that too, and is to be waited for."""
        if not self.context.spec.isolation:
            return client.ends(self.topic, self.partition)
        asker = self.context.library.consumer(
            self.context.bootstrap, self.context.spec, isolation="read_uncommitted"
        )
        try:
            return asker.ends(self.topic, self.partition)
        finally:
            close_in_background(asker)

    def _read(self, client: Consumer, *, past_end: bool) -> Polled:
        """All that came, until the chunk is full, the end is reached, or nothing has come for long.
        ``past_end``: until something has come, or nothing for QUIET_S."""
        fetched: list[Fetched] = []
        ended, lost, error = -1, False, None
        quiet_at = time.monotonic() + (QUIET_S if past_end else CHUNK_S)
        while error is None and time.monotonic() < quiet_at:
            if bool(fetched) if past_end else not self._short_of(fetched, ended):
                break
            polled = client.poll(CHUNK_RECORDS - len(fetched), 0.2)
            fetched += polled.records
            ended = max(ended, polled.ended.get(self.partition, -1))
            error, lost = polled.error, polled.position_lost
        return Polled(fetched, error, lost, {self.partition: ended})

    def _failed(self, begin_ns: int, where: str, error: str) -> bool:
        self.problem = f"{where}: {error}"
        self._record(Type.FAIL, error=error, latency_ns=time.monotonic_ns() - begin_ns)
        return False

    def _short_of(self, fetched: Sequence[Fetched], ended: int) -> bool:
        at = fetched[-1].offset + 1 if fetched else self.position
        return len(fetched) < CHUNK_RECORDS and max(at, ended) < self.high

    def _record(self, kind: Type, **columns: Any) -> None:
        self.context.recorder.record(
            Event(
                self.process,
                kind,
                "drain",
                topic=self.topic,
                partition=self.partition,
                offset=self.low if self.high >= 0 else None,
                high_watermark=self.high if self.high >= 0 else None,
                **columns,
            )
        )
