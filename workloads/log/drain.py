"""The final read: every partition from its log start to its end offset, by a consumer of its own.

It is evidence of loss only when it reached the end offset that the leader reported after healing, so its last
row says whether it did (``extra.complete``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wrackline.history.model import Event, Type
from wrackline.workloads.clients.base import ClientError, Consumer, Fetched
from wrackline.workloads.log.processes import Context, close_in_background, read_records

CHUNK_RECORDS = 2_000
CHUNK_S = 2.0
"""A chunk that brings nothing for so long fails, and the next begins with a fresh consumer."""


@dataclass(frozen=True, slots=True)
class Drained:
    """How the final read of one partition went."""

    partition: int
    log_start: int
    end: int
    """The end offset that the leader reported; -1 when no leader answered."""
    records: int
    complete: bool
    problem: str | None


def drain(context: Context, first_process: int, *, deadline_s: float) -> list[Drained]:
    """Read all partitions, each in a thread of its own as process ``first_process + partition``."""
    found: dict[int, Drained] = {}
    threads = [
        threading.Thread(
            target=_drain_into,
            args=(found, context, p, first_process + p, deadline_s),
            name=f"drain-{p}",
            daemon=True,
        )
        for p in range(context.partitions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(deadline_s + 30)
    missing = "the final read did not come back"
    return [found.get(p, Drained(p, -1, -1, 0, False, missing)) for p in range(context.partitions)]


def _drain_into(
    found: dict[int, Drained], context: Context, partition: int, process: int, deadline_s: float
) -> None:
    with context.enter():
        found[partition] = _Drain(context, partition, process, time.monotonic() + deadline_s).run()


class _Drain:
    """One partition's final read."""

    def __init__(self, context: Context, partition: int, process: int, deadline: float) -> None:
        self.context = context
        self.partition = partition
        self.process = process
        self.deadline = deadline
        self.low = self.high = self.position = -1
        self.records = 0
        self.assigned = False
        self.problem: str | None = None

    def run(self) -> Drained:
        complete = False
        while not complete and time.monotonic() < self.deadline:
            complete = self._attempt()
        problem = None if complete else self.problem or "no time was left"
        return Drained(self.partition, self.low, self.high, self.records, complete, problem)

    def _attempt(self) -> bool:
        """With one consumer, as far as it goes. True when the end was reached."""
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

    def _operation(self, client: Consumer) -> bool:
        """One chunk: up to CHUNK_RECORDS records; the first asks for the end offset too, after its
        invocation, so that it is an observation like any other. True when the end was reached."""
        self._record(Type.INVOKE)
        begin = time.monotonic_ns()
        if self.high < 0:
            try:
                self.low, self.high = self._ends(client)
            except ClientError as refused:
                return self._failed(begin, "asking for the end offset", refused.name)
            self.position = self.low
        if not self.assigned:
            client.assign(self.context.topic, {self.partition: self.position})
            self.assigned = True
        fetched, ended, error = self._read(client)
        records, corrupt = read_records(fetched, self.context)
        self.records += len(records)
        self.position = max([self.position, ended, *(record.offset + 1 for record in records)])
        complete = self.position >= self.high
        if not complete and not records:
            where = f"at offset {self.position} of {self.high}"
            return self._failed(begin, where, error or "_TIMED_OUT")
        extra: dict[str, Any] = {"positions": {str(self.partition): self.position}}
        if complete:
            extra["complete"] = True
        if corrupt:
            extra["corrupt"] = corrupt
        self._record(Type.OK, records=records, extra=extra, latency_ns=time.monotonic_ns() - begin)
        return complete

    def _ends(self, client: Consumer) -> tuple[int, int]:
        """A consumer of committed records is told where the first open transaction begins. What was
        committed lies behind that too, and is to be waited for."""
        if not self.context.spec.isolation:
            return client.ends(self.context.topic, self.partition)
        asker = self.context.library.consumer(
            self.context.bootstrap, self.context.spec, isolation="read_uncommitted"
        )
        try:
            return asker.ends(self.context.topic, self.partition)
        finally:
            close_in_background(asker)

    def _read(self, client: Consumer) -> tuple[list[Fetched], int, str | None]:
        """(records, the end if the consumer met it else -1, an error's name)."""
        fetched: list[Fetched] = []
        ended, error = -1, None
        quiet_at = time.monotonic() + CHUNK_S
        while self._short_of(fetched, ended) and error is None and time.monotonic() < quiet_at:
            polled = client.poll(CHUNK_RECORDS - len(fetched), 0.2)
            fetched += polled.records
            ended = max(ended, polled.ended.get(self.partition, -1))
            error = polled.error
        return fetched, ended, error

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
                topic=self.context.topic,
                partition=self.partition,
                offset=self.low if self.high >= 0 else None,
                high_watermark=self.high if self.high >= 0 else None,
                **columns,
            )
        )
