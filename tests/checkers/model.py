"""A model of a correct replicated log, driven at random: histories in which no checker may find anything.

A small cluster of one topic: a leader per partition that appends in order, clients whose requests arrive
after a delay and whose answers may be late or never come, fail-overs that raise the leader epoch and refuse
what is under way, pollers that read ahead, and a final read. What it writes down is what our recorder would.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.checkers.histories import NODES, TOPIC, History, info
from wrackline.history.model import FAILED, UNKNOWN, Event, Record, TopicInfo, Type, value_of


@dataclass
class Partition:
    records: list[tuple[int, int]] = field(default_factory=list)
    """(value, leader epoch)."""
    epoch: int = 0
    refusing_until: int = 0


class Model:
    """Runs a random history on a virtual clock (nanoseconds)."""

    def __init__(
        self,
        test_id: str,
        seed: int,
        *,
        partitions: int = 2,
        clients: int = 4,
        operations: int = 40,
        final: bool = True,
        retries: bool = False,
    ) -> None:
        self.random = random.Random(seed)
        self.history = History(
            test_id, topics=(TopicInfo(TOPIC, partitions, 3, 2),), idempotence=not retries, seed=seed
        )
        self.logs = [Partition() for _ in range(partitions)]
        self.left = operations
        self.final = final
        self.retries = retries
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.now = 0
        self.ticket = 0
        self.clients = clients
        self.positions: dict[int, dict[int, int]] = {}
        self.counters: dict[int, int] = {}

    def run(self) -> History:
        self.history.assignment().phase("main")
        for process in range(self.clients):
            self.later(self.delay(), lambda p=process: self.act(p))
        for _ in range(self.random.randrange(3)):
            self.later(self.random.randrange(400_000_000), self.fail_over)
        while self.queue:
            self.now, _, action = heapq.heappop(self.queue)
            action()
        self.history.clock_ns = self.now
        self.drain()
        return self.history

    def later(self, delay: int, action: Callable[[], None]) -> None:
        self.ticket += 1
        heapq.heappush(self.queue, (self.now + delay, self.ticket, action))

    def delay(self) -> int:
        return int(self.random.expovariate(1 / 5_000_000)) + 1

    def record(self, process: int, kind: Type, f: str, **columns: object) -> None:
        self.history.clock_ns = self.now
        self.history.event(process, kind, f, topic=TOPIC, **columns)

    def fail_over(self) -> None:
        log = self.random.choice(self.logs)
        log.epoch += 1
        log.refusing_until = self.now + 10_000_000

    def act(self, process: int) -> None:
        if self.left <= 0:
            return
        self.left -= 1
        act = self.random.choice((self.send, self.send, self.send, self.poll, self.end))
        act(process)

    def again(self, process: int) -> None:
        self.later(self.delay(), lambda: self.act(process))

    def send(self, process: int) -> None:
        partition = self.random.randrange(len(self.logs))
        values = [self.value(process) for _ in range(self.random.choice((1, 1, 2, 3)))]
        asked = tuple(Record(partition, UNKNOWN, value) for value in values)
        self.record(process, Type.INVOKE, "send", partition=partition, records=asked)
        self.later(self.delay(), lambda: self.arrive(process, partition, values, lost=False))

    def value(self, process: int) -> int:
        self.counters[process] = self.counters.get(process, -1) + 1
        return value_of(process, self.counters[process])

    def arrive(self, process: int, partition: int, values: list[int], *, lost: bool) -> None:
        log = self.logs[partition]
        if self.now < log.refusing_until and not lost:
            self.later(self.delay(), lambda: self.complete(process, partition, values, Type.FAIL, FAILED))
            return
        vanishes = self.random.random() < 0.05  # the request never arrives
        base = len(log.records)
        if not vanishes:
            log.records += [(value, log.epoch) for value in values]
            if self.retries and self.random.random() < 0.1:
                log.records += [(value, log.epoch) for value in values]
        if vanishes or self.random.random() < 0.08:  # ... or its answer does not
            if self.random.random() < 0.5:
                self.later(
                    20 * self.delay(), lambda: self.complete(process, partition, values, Type.INFO, UNKNOWN)
                )
            else:
                self.replace(process)  # it never completes at all
            return
        self.later(self.delay(), lambda: self.complete(process, partition, values, Type.OK, base))

    def complete(self, process: int, partition: int, values: list[int], kind: Type, base: int) -> None:
        offsets = [base + n if base >= 0 else base for n in range(len(values))]
        records = tuple(
            Record(partition, offset, value) for offset, value in zip(offsets, values, strict=True)
        )
        error = None if kind is Type.OK else "NOT_ENOUGH_REPLICAS" if kind is Type.FAIL else "_TIMED_OUT"
        self.record(process, kind, "send", partition=partition, records=records, error=error)
        if kind is Type.INFO:
            self.replace(process)
        else:
            self.again(process)

    def replace(self, process: int) -> None:
        """A process of unknown outcome is never used again."""
        self.again(process + 100)

    def poll(self, process: int) -> None:
        if process not in self.positions or self.random.random() < 0.1:
            start = {p: self.random.randrange(len(log.records) + 1) for p, log in enumerate(self.logs)}
            self.positions[process] = start
            extra = {"positions": {str(p): offset for p, offset in start.items()}}
            self.record(process, Type.INVOKE, "assign", extra=extra)
            self.record(process, Type.OK, "assign", extra=extra)
        self.record(process, Type.INVOKE, "poll")
        got = []
        for p, log in enumerate(self.logs):
            at = self.positions[process][p]
            upto = min(len(log.records), at + self.random.randrange(6))
            got += [Record(p, o, log.records[o][0], log.records[o][1]) for o in range(at, upto)]
            self.positions[process][p] = upto
        positions = {str(p): offset for p, offset in self.positions[process].items()}

        def done() -> None:
            self.record(process, Type.OK, "poll", records=tuple(got), extra={"positions": positions})
            self.again(process)

        self.later(self.delay(), done)

    def end(self, process: int) -> None:
        partition = self.random.randrange(len(self.logs))
        self.record(process, Type.INVOKE, "end", partition=partition)

        def ask() -> None:
            told = len(self.logs[partition].records)
            self.later(self.delay(), lambda: answer(told))

        def answer(told: int) -> None:
            self.record(process, Type.OK, "end", partition=partition, high_watermark=told)
            self.again(process)

        self.later(self.delay(), ask)

    def drain(self) -> None:
        self.history.phase("drain")
        for p, log in enumerate(self.logs):
            held = [(offset, value, epoch) for offset, (value, epoch) in enumerate(log.records)]
            if self.final:
                self.history.drain(*held, partition=p)
                self.history.replicas(*held, partition=p)
            elif self.random.random() < 0.5:
                some = held[: len(held) // 2]
                self.history.drain(*some, partition=p, end=len(held), complete=False)


def copy_of(history: History, test_id: str) -> History:
    """The same events under another test id, to be changed."""
    same = History(test_id)
    same.info = info(test_id, topics=history.info.topics, idempotence=history.info.idempotence)
    same.events = list(history.events)
    same.clock_ns = history.clock_ns
    return same


def completions(history: History, f: str) -> Iterator[tuple[int, Event]]:
    for at, event in enumerate(history.events):
        if event.f == f and event.type is Type.OK and (event.records or f == "end"):
            yield at, event


__all__ = ["NODES", "Model", "completions", "copy_of"]
