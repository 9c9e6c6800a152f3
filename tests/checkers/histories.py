"""Histories for tests: written down in a few words, or made by a model of a correct log.

h = History()                       # topic log, two partitions, all=3 replicas
h.send(1, "a", at=0).poll(...)      # see the methods
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from wrackline.checkers.inputs.row_groups import ROWS_OF_MEMBERS
from wrackline.history.model import (
    CONTROL,
    NEMESIS,
    REPLICA,
    UNKNOWN,
    Event,
    PlanInfo,
    Record,
    RunInfo,
    TopicInfo,
    Type,
)
from wrackline.history.store.files import open_writer, put_info
from wrackline.history.store.schema import SCHEMA

TOPIC = "log"
STEP_NS = 1_000_000
NODES = {1: "n1", 2: "n2", 3: "n3"}


def info(test_id: str = "t", **changes: Any) -> RunInfo:
    base = RunInfo(
        test_id=test_id,
        name="test",
        seed=1,
        started_at="2026-01-01T00:00:00Z",
        system="wrackline",
        workload="log",
        acks="all",
        idempotence=True,
        topics=(TopicInfo(TOPIC, 1, 3, 2),),
        nodes={str(node): host for node, host in NODES.items()},
        plan=PlanInfo(0.0),
    )
    return dataclasses.replace(base, **changes)


class History:
    """Events one after another, a millisecond apart. Processes are the caller's numbers; every method returns
    self."""

    def __init__(self, test_id: str = "t", **changes: Any) -> None:
        self.info = info(test_id, **changes)
        self.events: list[Event] = []
        self.clock_ns = 0

    def event(self, process: int, kind: Type, f: str, **columns: Any) -> History:
        self.clock_ns += STEP_NS
        self.events.append(Event(process, kind, f, index=len(self.events), time_ns=self.clock_ns, **columns))
        return self

    def invoke_send(self, process: int, *values: int, partition: int = 0) -> History:
        records = tuple(Record(partition, UNKNOWN, value) for value in values)
        return self.event(process, Type.INVOKE, "send", topic=TOPIC, partition=partition, records=records)

    def complete_send(
        self,
        process: int,
        *placed: tuple[int, int],
        partition: int = 0,
        kind: Type = Type.OK,
        error: str | None = None,
    ) -> History:
        """``placed``: (value, offset or one of the codes)."""
        records = tuple(Record(partition, offset, value) for value, offset in placed)
        return self.event(
            process, kind, "send", topic=TOPIC, partition=partition, records=records, error=error
        )

    def send(
        self, process: int, *placed: tuple[int, int], partition: int = 0, kind: Type = Type.OK
    ) -> History:
        error = None if kind is Type.OK else "_TIMED_OUT"
        self.invoke_send(process, *(value for value, _ in placed), partition=partition)
        return self.complete_send(process, *placed, partition=partition, kind=kind, error=error)

    def poll(self, process: int, *got: tuple[int, int], partition: int = 0, corrupt: Any = None) -> History:
        """``got``: (offset, value)."""
        records = tuple(Record(partition, offset, value) for offset, value in got)
        extra: dict[str, Any] = {"positions": {str(partition): got[-1][0] + 1}} if got else {}
        if corrupt:
            extra["corrupt"] = corrupt
        self.event(process, Type.INVOKE, "poll", topic=TOPIC)
        return self.event(process, Type.OK, "poll", topic=TOPIC, records=records, extra=extra)

    def assign(self, process: int, start: int, partition: int = 0) -> History:
        extra = {"positions": {str(partition): start}}
        self.event(process, Type.INVOKE, "assign", topic=TOPIC, extra=extra)
        return self.event(process, Type.OK, "assign", topic=TOPIC, extra=extra)

    def rebalance(self, process: int, generation: int, **positions: int) -> History:
        """``positions``: p0=3 and so on: what the member has now, and where it starts."""
        starts = {name.removeprefix("p"): offset for name, offset in positions.items()}
        extra = {
            "group": "g",
            "generation": generation,
            "partitions": [int(p) for p in starts],
            "positions": starts,
        }
        return self.event(process, Type.OK, "rebalance", topic=TOPIC, extra=extra)

    def commit(
        self, process: int, offset: int, generation: int | None = None, kind: Type = Type.OK
    ) -> History:
        extra = {"group": "g", "generation": generation, "offsets": {"0": offset}}
        self.event(process, Type.INVOKE, "commit", topic=TOPIC, extra=extra)
        return self.event(process, kind, "commit", topic=TOPIC, extra=extra)

    def committed(self, process: int, offset: int) -> History:
        self.event(process, Type.INVOKE, "committed", topic=TOPIC)
        extra = {"group": "g", "offsets": {"0": offset}}
        return self.event(process, Type.OK, "committed", topic=TOPIC, extra=extra)

    def transaction(
        self, *begun: tuple[int, int, tuple[tuple[int, int, int], ...], tuple[tuple[int, int, int], ...]]
    ) -> History:
        """Transactions that overlap: (number, process, sent, given), records as (partition, offset,
        value)."""
        for number, process, sent, _ in begun:
            records = tuple(Record(p, UNKNOWN, value) for p, _, value in sent)
            extra = {"txn": number}
            self.event(process, Type.INVOKE, "send", topic=TOPIC, records=records, extra=extra)
            self.event(process + 100, Type.INVOKE, "poll", topic=TOPIC, extra=extra)
        for number, process, sent, given in begun:
            extra = {"txn": number}
            records = tuple(Record(*one) for one in sent)
            self.event(process, Type.OK, "send", topic=TOPIC, records=records, extra=extra)
            records = tuple(Record(*one) for one in given)
            self.event(process + 100, Type.OK, "poll", topic=TOPIC, records=records, extra=extra)
        return self

    def end(self, process: int, told: int, partition: int = 0) -> History:
        self.event(process, Type.INVOKE, "end", topic=TOPIC, partition=partition)
        return self.event(process, Type.OK, "end", topic=TOPIC, partition=partition, high_watermark=told)

    def drain(
        self,
        *got: tuple[int, int] | tuple[int, int, int],
        partition: int = 0,
        end: int | None = None,
        start: int = 0,
        complete: bool = True,
        process: int = 900,
    ) -> History:
        """``got``: (offset, value[, leader epoch]). ``end`` defaults to one past the last."""
        records = tuple(Record(partition, one[0], one[1], *one[2:]) for one in got)
        end = end if end is not None else (got[-1][0] + 1 if got else 0)
        columns: dict[str, Any] = {
            "topic": TOPIC,
            "partition": partition,
            "offset": start,
            "high_watermark": end,
        }
        self.event(process + partition, Type.INVOKE, "drain", topic=TOPIC, partition=partition)
        extra = {"complete": True} if complete else {}
        return self.event(process + partition, Type.OK, "drain", records=records, extra=extra, **columns)

    def replica(
        self,
        node: str,
        *got: tuple[int, int, int],
        partition: int = 0,
        hw: int | None = None,
        in_isr: bool = True,
        complete: bool = True,
        start: int = 0,
        problem: str | None = None,
    ) -> History:
        """``got``: (offset, value, leader epoch)."""
        records = tuple(Record(partition, *one) for one in got)
        leo = got[-1][0] + 1 if got else start
        extra = {"in_isr": in_isr, "complete": complete, "hw": leo if hw is None else hw}
        return self.event(
            REPLICA,
            Type.OK,
            "replica",
            topic=TOPIC,
            partition=partition,
            node=node,
            offset=start,
            high_watermark=leo,
            records=records,
            extra=extra,
            error=problem,
        )

    def replicas(self, *got: tuple[int, int, int], partition: int = 0) -> History:
        """The same log on every host."""
        for host in NODES.values():
            self.replica(host, *got, partition=partition)
        return self

    def phase(self, name: str) -> History:
        return self.event(CONTROL, Type.INFO, "phase", extra={"phase": name})

    def account(self) -> History:
        """What a runner writes down of a run that went to its end."""
        for f, extra in (
            ("repaired", {"repairs": []}),
            ("stopped", {"stuck": []}),
            ("collected", {"files": {host: ["broker.log"] for host in NODES.values()}, "missing": {}}),
            ("over", {}),
        ):
            self.event(CONTROL, Type.INFO, f, extra=extra)
        return self

    def assignment(self) -> History:
        for topic in self.info.topics:
            places = {str(p): list(NODES) for p in range(topic.partitions)}
            extra = {"assignment": places, "nodes": {str(n): h for n, h in NODES.items()}}
            self.event(CONTROL, Type.INFO, "assignment", topic=topic.name, extra=extra)
        return self

    def cluster(self, isr: Iterable[int], leader: int = 1, epoch: int = 0, partition: int = 0) -> History:
        said = {
            "topic": TOPIC,
            "partition": partition,
            "leader": leader,
            "leader_epoch": epoch,
            "isr": list(isr),
            "elr": [],
            "replicas": list(NODES),
        }
        return self.event(CONTROL, Type.INFO, "cluster", extra={"partitions": [said]})

    def fault(
        self, fault_id: str, name: str, phase: str, targets: Iterable[str] = ("n1",), **extra: Any
    ) -> History:
        said = {
            "id": fault_id,
            "phase": phase,
            "targets": list(targets),
            "role": "leader(log-0)",
            "proved": None,
        }
        return self.event(NEMESIS, Type.INFO, name, extra=said | extra)

    def wait(self, seconds: float) -> History:
        self.clock_ns += int(seconds * 1e9)
        return self

    def write(self, directory: Path, row_group: int | None = None) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        write_parquet(directory / "history.parquet", self.info, self.events, row_group)
        return directory


def write_parquet(path: Path, info: RunInfo, events: Iterable[Event], row_group: int | None = None) -> None:
    rows = [_row(info.test_id, event) for event in events]
    table = pa.Table.from_pylist(rows, SCHEMA)
    with open_writer(path) as writer:
        writer.write_table(table, row_group_size=row_group)
        put_info(writer, info)


def _row(test_id: str, event: Event) -> Mapping[str, Any]:
    row = {name: getattr(event, name, None) for name in SCHEMA.names}
    row["test_id"] = test_id
    row["type"] = str(event.type)
    row["records"] = [record._asdict() for record in event.records] or None
    row["extra"] = orjson.dumps(event.extra).decode() if event.extra is not None else None
    return row


def keeps_the_rules(events: Sequence[Event], seed: int) -> None:
    """A process does one thing at a time, and nothing any more after an outcome that is not known; no value
    comes twice."""
    open_: dict[int, str] = {}
    retired: set[int] = set()
    times = [event.time_ns for event in events]
    assert times == sorted(times)
    for event in (event for event in events if event.process >= 0 and event.f not in ROWS_OF_MEMBERS):
        assert event.process not in retired, (seed, event)
        if event.type is Type.INVOKE:
            assert event.process not in open_, (seed, event)
            open_[event.process] = event.f
        else:
            assert open_.pop(event.process) == event.f, (seed, event)
        if event.type is Type.INFO:
            retired.add(event.process)
    values = [r.value for e in events if e.f == "send" and e.type is Type.INVOKE for r in e.records]
    assert len(values) == len(set(values))
