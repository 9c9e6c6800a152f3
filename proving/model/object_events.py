"""Histories of registers and queues (wrackline.proving.model.objects) in the harness' own format."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from wrackline.history.model import FAILED, REPLICA, UNKNOWN, RunInfo, TopicInfo
from wrackline.history.store.files import ROW_GROUP_ROWS, open_writer, put_info
from wrackline.history.store.schema import SCHEMA
from wrackline.proving.model.columns import (
    LOST_ERROR,
    REFUSED_ERROR,
    TOPIC,
    Block,
    events,
    join,
    one_event,
    records,
)
from wrackline.proving.model.drawing import Ints
from wrackline.proving.model.final_reads import CHUNK, HOSTS
from wrackline.proving.model.made import MadeTable, numbered, setup, teardown
from wrackline.proving.model.objects import (
    ACKED,
    GET_FAILED,
    GOT,
    NOBODY,
    ObjectKnobs,
    Objects,
    serve_objects,
)

BLOCK_NS = 600_000_000_000
"""So much of a history's time is written at once."""
_FINAL_ROWS = 500


@dataclass
class MadeObjects(MadeTable):
    """A history made by the model registers and queues."""

    knobs: ObjectKnobs = field(default_factory=ObjectKnobs)


def info_of(test_id: str, seed: int, workload: str, partitions: int, *, by_end: bool = False) -> RunInfo:
    return RunInfo(
        test_id=test_id,
        name="made",
        seed=seed,
        started_at="2026-01-01T00:00:00Z",
        system="wrackline",
        workload=workload,
        acks="all",
        idempotence=True,
        reads="end" if by_end else "marker",
        topics=(TopicInfo(TOPIC, partitions, len(HOSTS), 2),),
        nodes={str(node): host for node, host in HOSTS.items()},
    )


def make_objects(test_id: str, seed: int, knobs: ObjectKnobs | None = None) -> MadeObjects:
    """A correct history. The same seed and knobs give the same rows."""
    knobs = knobs or ObjectKnobs()
    return MadeObjects(
        _info(test_id, seed, knobs), pa.concat_tables(_tables(serve_objects(seed, knobs), test_id)), knobs
    )


def write_objects(run_dir: Path, seed: int, knobs: ObjectKnobs, *, block_ns: int = BLOCK_NS) -> int:
    """The same as a file in a directory of its own, so much of its time at once: for histories larger than
    memory. Returns the number of events. Raises OSError."""
    run_dir.mkdir(parents=True, exist_ok=True)
    rows = 0
    with open_writer(run_dir / "history.parquet") as writer:
        for table in _tables(serve_objects(seed, knobs), run_dir.name, block_ns):
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            rows += len(table)
        put_info(writer, _info(run_dir.name, seed, knobs))
    return rows


def _info(test_id: str, seed: int, knobs: ObjectKnobs) -> RunInfo:
    return info_of(test_id, seed, knobs.workload, knobs.partitions, by_end=knobs.by_end)


def _tables(happened: Objects, test_id: str, block_ns: int = 0) -> Iterator[pa.Table]:
    """Rows in order: ``block_ns`` of time in one table (0: all), and what comes after."""
    first, end = 0, happened.end_ns + 10
    for begin in range(0, end, block_ns or end):
        during = (begin, begin + (block_ns or end))
        blocks = [*_sends(happened, during), *_answers(happened, during), *_control(happened, during)]
        table = numbered(join(blocks, by_time=True), test_id, first)
        first += len(table)
        yield table.cast(SCHEMA)
    final = _final(happened)
    while blocks := list(itertools.islice(final, _FINAL_ROWS)):
        table = numbered(join(blocks, by_time=False), test_id, first)
        first += len(table)
        yield table.cast(SCHEMA)


During = tuple[int, int]
"""Of time, in nanoseconds: from, and up to."""


def _within(times: Ints, during: During) -> Ints:
    """Rows whose time is within."""
    return np.flatnonzero((times >= during[0]) & (times < during[1]))


def _sends(happened: Objects, during: During) -> Iterator[Block]:
    of = happened.puts
    reported = np.where(of.reported == ACKED, happened.offset, of.reported)

    def block(rows: Ints, kind: str, error: str | None = None) -> Block:
        offsets = np.full(len(rows), UNKNOWN) if kind == "invoke" else reported[rows]
        some = records(of.partition[rows], offsets, of.value[rows], np.arange(len(rows) + 1))
        return events(of, rows, kind, "send", partition=of.partition[rows], records=some, error=error)

    yield block(_within(of.invoke_op, during), "invoke")
    done = _within(of.complete_op, during)
    yield block(done[(reported[done] != UNKNOWN) & (reported[done] != FAILED)], "ok")
    yield block(done[reported[done] == FAILED], "fail", REFUSED_ERROR)
    yield block(done[(reported[done] == UNKNOWN) & of.completes[done]], "info", LOST_ERROR)


def _answers(happened: Objects, during: During) -> Iterator[Block]:
    of, knobs = happened.gets, happened.knobs
    f = "read" if knobs.workload == "register" else "dequeue"
    asked, done = _within(of.invoke_op, during), _within(of.complete_op, during)
    yield events(of, asked, "invoke", f, partition=of.partition[asked])
    failed, good = (done[of.fate[done] == fate] for fate in (GET_FAILED, GOT))
    yield events(of, failed, "fail", f, partition=of.partition[failed], error=LOST_ERROR)
    partition, offset = of.partition[good], of.offset[good]
    there = offset != NOBODY
    row = happened.log[happened.starts[partition[there]] + offset[there]]
    bounds = np.append(0, np.cumsum(there))
    some = records(partition[there], offset[there], happened.puts.value[row], bounds)
    end = of.end[good] if f == "read" else None
    yield events(of, good, "ok", f, partition=partition, high_watermark=end, records=some)


def _control(happened: Objects, during: During) -> Iterator[Block]:
    hosts = list(HOSTS)
    one = {"topic": TOPIC, "leader": hosts[0], "leader_epoch": 0, "isr": hosts, "elr": [], "replicas": hosts}
    cluster = [{**one, "partition": p} for p in range(happened.knobs.partitions)]
    every = (*setup(cluster), *teardown(happened.end_ns))
    return (block for block in every if during[0] <= block.time[0] < during[1])


def _final(happened: Objects) -> Iterator[Block]:
    """The final read, and every replica's own log: all hold the same."""
    if not happened.knobs.final:
        return
    at = happened.end_ns + 10
    for f, host in (("drain", None), *(("replica", host) for host in HOSTS.values())):
        for partition in range(happened.knobs.partitions):
            lo, hi = happened.starts[partition : partition + 2].tolist()
            values = happened.puts.value[happened.log[lo:hi]]
            reader = int(happened.puts.process_op.max()) + int(happened.gets.process_op.max()) + 1 + partition
            for start in range(0, max(1, hi - lo), CHUNK):
                held = values[start : start + CHUNK]
                size, last = len(held), start + CHUNK >= hi - lo
                process = reader if host is None else REPLICA
                if host is None:
                    yield one_event(at, process, "invoke", f, None, partition=partition)
                places, offsets = np.full(size, partition), np.arange(start, start + size)
                epochs = np.zeros(size, dtype=np.int64)
                known = {} if host is None else {"in_isr": True, "hw": hi - lo}
                yield one_event(
                    at + 1,
                    process,
                    "ok",
                    f,
                    {**known, "complete": last} if host or last else {},
                    partition=partition,
                    offset=0,
                    high_watermark=hi - lo,
                    records=records(places, offsets, held, np.array([0, size]), epochs),
                    node=host,
                )
                at += 2
