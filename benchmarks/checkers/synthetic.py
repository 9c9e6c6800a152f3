"""A synthetic history of any size, written with numpy and Arrow: a correct log, several partitions, steady
clients.

Every process does one operation after another; half of them send, the others poll or ask for the end. Offsets
follow the order in which sends take effect, polls read on from where their consumer stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from wrackline.history.model import CONTROL, REPLICA, RunInfo, TopicInfo
from wrackline.history.store.files import open_writer, put_info
from wrackline.history.store.schema import SCHEMA
from wrackline.proving.model.columns import TOPIC, Block, Ints, join, records
from wrackline.proving.model.made import numbered

CHUNK = 2_000
BLOCK = 1_000_000
"""Operations that are made at once."""
RATE = 5_000
"""Operations per second of the run that is made up."""

WRITTEN_MS = 1_760_000_000_000
"""The timestamp of all records."""


def write_history(
    directory: Path,
    operations: int,
    *,
    partitions: int = 16,
    senders: int = 32,
    seed: int = 1,
    name: str = "synthetic",
) -> RunInfo:
    """Write ``history.parquet`` with so many operations of clients (sends : polls : ends = 6 : 3 : 1), block
    by block, so that memory holds one block and the values of the log."""
    directory.mkdir(parents=True, exist_ok=True)
    info = RunInfo(
        test_id=f"{name}-{operations}-{seed}",
        name=name,
        seed=seed,
        started_at="2026-01-01T00:00:00Z",
        system="wrackline",
        workload="log",
        acks="all",
        idempotence=True,
        topics=(TopicInfo(TOPIC, partitions, 3, 2),),
        nodes={"1": "n1", "2": "n2", "3": "n3"},
    )
    with open_writer(directory / "history.parquet") as writer:
        for table in _tables(info, operations, partitions, senders, np.random.default_rng(seed)):
            writer.write_table(table, row_group_size=65_536)
        put_info(writer, info)
    return info


def _tables(
    info: RunInfo, operations: int, partitions: int, senders: int, random: np.random.Generator
) -> Iterator[pa.Table]:
    control = _table(_control(partitions), info, 0)
    yield control
    log = _Log(partitions, senders, random)
    index = len(control)
    for start in range(0, operations, BLOCK):
        size = min(BLOCK, operations - start)
        sends, polls = size * 6 // 10, size * 3 // 10
        log.begin(sends)
        blocks = [*log.sends(), *log.polls(polls), *log.ends(size - sends - polls)]
        clients = _table(blocks, info, index, by_time=True)
        yield clients
        index += len(clients)
        log.finish()
    # Row groups hold many rows, as the recorder's do: one table for the final read and one for each replica.
    for node in (None, "n1", "n2", "n3"):
        for p in range(partitions):
            table = _table(log.final(node, p), info, index)
            yield table
            index += len(table)


class _Log:
    """The log, and the block of operations that is being made. All of a block is done before the next
    begins."""

    def __init__(self, partitions: int, senders: int, random: np.random.Generator) -> None:
        self.partitions, self.senders, self.random = partitions, senders, random
        self.values: list[list[Ints]] = [[] for _ in range(partitions)]
        """What is in each partition, by block."""
        self.base = np.zeros(partitions, dtype=np.int64)
        self.stood = np.zeros(partitions, dtype=np.int64)
        self.sent = 0
        self.begin_ns = self.end_ns = 0

    def begin(self, sends: int) -> None:
        senders, random = self.senders, self.random
        step = int(1e9) * 10 // (RATE * 6)
        number = np.arange(self.sent, self.sent + sends, dtype=np.int64)
        self.process = number % senders
        self.value = (self.process << 32) | ((number // senders) << 4)
        self.begin_ns = self.end_ns
        self.invoke = self.begin_ns + 1_000_000 + np.arange(sends, dtype=np.int64) * step
        self.ret = self.invoke + random.integers(step, step * (senders - 2), sends)
        taken = self.invoke + ((self.ret - self.invoke) * random.random(sends)).astype(np.int64)
        self.partition = random.integers(0, self.partitions, sends)
        self.offset = np.zeros(sends, dtype=np.int64)
        self.order: list[Ints] = []
        self.taken: list[Ints] = []
        """When each record of each partition took effect, made non-decreasing by being sorted."""
        for p in range(self.partitions):
            here = np.flatnonzero(self.partition == p)
            here = here[np.argsort(taken[here], kind="stable")]
            self.offset[here] = self.base[p] + np.arange(len(here))
            self.order.append(here)
            self.taken.append(taken[here])
        self.end_ns = (int(self.ret.max()) if sends else self.begin_ns) + step
        self.sent += sends

    def finish(self) -> None:
        for p in range(self.partitions):
            self.values[p].append(self.value[self.order[p]])
            self.base[p] += len(self.order[p])

    def sends(self) -> Iterator[Block]:
        unknown = np.full(len(self.value), -1)
        asked = _records(self.partition, unknown, self.value, np.arange(len(self.value) + 1))
        reported = _records(self.partition, self.offset, self.value, np.arange(len(self.value) + 1))
        for time, kind, given in ((self.invoke, "invoke", asked), (self.ret, "ok", reported)):
            yield Block(
                time, self.process, kind, "send", topic=TOPIC, partition=self.partition, records=given
            )

    def polls(self, count: int) -> Iterator[Block]:
        """Sixteen consumers, one per partition: each poll gives what is new."""
        invoke, ret, processes, starts, ends, parts = [], [], [], [], [], []
        for p in range(self.partitions):
            each = count // self.partitions + (p < count % self.partitions)
            at = np.linspace(self.begin_ns + 2_000_000, self.end_ns, each, endpoint=False).astype(np.int64)
            done = at + (at[1] - at[0]) // 2 if each > 1 else at + 1
            upto = self.base[p] + np.searchsorted(self.taken[p], done)
            upto[-1:] = self.base[p] + len(self.order[p])  # the last is answered when all is there
            done[-1:] = self.end_ns
            invoke.append(at)
            ret.append(done)
            processes.append(np.full(each, 10_000 + p))
            starts.append(np.concatenate([[self.stood[p]], upto[:-1]]) if each else upto)
            ends.append(upto)
            self.stood[p] = upto[-1] if each else self.stood[p]
            parts.append(np.full(each, p))
        first, last, where = np.concatenate(starts), np.concatenate(ends), np.concatenate(parts)
        sizes = last - first
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        partition = np.repeat(where, sizes)
        offset = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes) + np.repeat(first, sizes)
        begins = np.concatenate([[0], np.cumsum([len(one) for one in self.order])])
        row = np.concatenate(self.order)[begins[partition] + offset - self.base[partition]]
        given = _records(partition, offset, self.value[row], bounds)
        extra = [f'{{"positions":{{"{p}":{n}}}}}' for p, n in zip(where.tolist(), last.tolist(), strict=True)]
        process = np.concatenate(processes)
        yield Block(np.concatenate(invoke), process, "invoke", "poll", topic=TOPIC)
        yield Block(np.concatenate(ret), process, "ok", "poll", topic=TOPIC, records=given, extra=extra)

    def ends(self, count: int) -> Iterator[Block]:
        invoke = np.linspace(self.begin_ns + 2_500_000, self.end_ns, count, endpoint=False).astype(np.int64)
        ret = invoke + max(1, (int(invoke[1] - invoke[0]) // 2 if count > 1 else 1))
        partition = self.random.integers(0, self.partitions, count)
        reported = np.zeros(count, dtype=np.int64)
        for p in range(self.partitions):
            here = partition == p
            reported[here] = self.base[p] + np.searchsorted(self.taken[p], ret[here])
        process = np.full(count, 20_000)
        yield Block(invoke, process, "invoke", "end", topic=TOPIC, partition=partition)
        yield Block(ret, process, "ok", "end", topic=TOPIC, partition=partition, high_watermark=reported)

    def final(self, node: str | None, p: int) -> Iterator[Block]:
        """The final read (node None) of a partition or one replica of it, chunk by chunk."""
        values = np.concatenate(self.values[p])
        at, partition = np.array([self.end_ns + 1_000_000]), np.array([p])
        process = np.array([30_000 + p if node is None else REPLICA])
        for start in range(0, max(len(values), 1), CHUNK):
            some = values[start : start + CHUNK]
            is_last = start + CHUNK >= len(values)
            if node is None:
                yield Block(at, process, "invoke", "drain", topic=TOPIC, partition=partition)
                extra = '{"complete":true}' if is_last else "{}"
            else:
                complete = "true" if is_last else "false"
                extra = f'{{"in_isr":true,"complete":{complete},"hw":{len(values)}}}'
            offsets, bounds = np.arange(start, start + len(some)), np.array([0, len(some)])
            yield Block(
                at,
                process,
                "ok",
                "drain" if node is None else "replica",
                topic=TOPIC,
                partition=partition,
                node=node,
                offset=np.array([0]),
                high_watermark=np.array([len(values)]),
                records=_records(np.full(len(some), p), offsets, some, bounds, epoch=0),
                extra=[extra],
            )


def _records(partition: Ints, offset: Ints, value: Ints, bounds: Ints, epoch: int = -1) -> pa.Array:
    epochs = np.full(len(value), epoch)
    return records(partition, offset, value, bounds, epochs, timestamp_ms=WRITTEN_MS)


def _control(partitions: int) -> Iterator[Block]:
    nodes = '{"1":"n1","2":"n2","3":"n3"}'
    assigned = ",".join(f'"{p}":[1,2,3]' for p in range(partitions))
    extra = {"phase": '{"phase":"main"}', "assignment": f'{{"assignment":{{{assigned}}},"nodes":{nodes}}}'}
    for number, (f, said) in enumerate(extra.items()):
        yield Block(np.array([number]), np.array([CONTROL]), "info", f, topic=TOPIC, extra=[said])


def _table(blocks: Iterable[Block], info: RunInfo, index: int, *, by_time: bool = False) -> pa.Table:
    return numbered(join(list(blocks), by_time=by_time), info.test_id, index).cast(SCHEMA)
