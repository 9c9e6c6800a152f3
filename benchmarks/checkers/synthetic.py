"""A synthetic history of any size, written with numpy and Arrow: a correct log, several partitions, steady
clients.

Every process does one operation after another; half of them send, the others poll or ask for the end. Offsets
follow the order in which sends take effect, polls read on from where their consumer stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wrackline.history.files import open_writer, put_info
from wrackline.history.model import CONTROL, REPLICA, RunInfo, TopicInfo
from wrackline.history.schema import RECORD, SCHEMA

TOPIC = "log"
CHUNK = 2_000
BLOCK = 1_000_000
"""Operations that are made at once."""
RATE = 5_000
"""Operations per second of the run that is made up."""

Ints = NDArray[np.int64]


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
    yield _finish(_control(partitions), info, 0)
    log = _Log(partitions, senders, random)
    index = 3
    for start in range(0, operations, BLOCK):
        size = min(BLOCK, operations - start)
        sends, polls = size * 6 // 10, size * 3 // 10
        log.begin(sends)
        clients = pa.concat_tables([log.sends(), log.polls(polls), log.ends(size - sends - polls)])
        order = np.lexsort((clients["place"].to_numpy(), clients["time_ns"].to_numpy()))
        clients = clients.take(pa.array(order)).drop_columns(["place"])
        yield _finish(clients, info, index)
        index += len(clients)
        log.finish()
    # Row groups hold many rows, as the recorder's do: one table for the final read and one for each replica.
    for node in (None, "n1", "n2", "n3"):
        for p in range(partitions):
            table = pa.concat_tables(log.final(node, p))
            yield _finish(table, info, index)
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

    def sends(self) -> pa.Table:
        unknown = np.full(len(self.value), -1)
        asked = _records(self.partition, unknown, self.value, np.arange(len(self.value) + 1))
        told = _records(self.partition, self.offset, self.value, np.arange(len(self.value) + 1))
        common = {"f": "send", "topic": TOPIC}
        return pa.concat_tables(
            [
                _rows(self.invoke, self.process, "invoke", common, partition=self.partition, records=asked),
                _rows(self.ret, self.process, "ok", common, partition=self.partition, records=told),
            ]
        )

    def polls(self, count: int) -> pa.Table:
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
        records = _records(partition, offset, self.value[row], bounds)
        extra = [f'{{"positions":{{"{p}":{n}}}}}' for p, n in zip(where.tolist(), last.tolist(), strict=True)]
        common = {"f": "poll", "topic": TOPIC}
        process = np.concatenate(processes)
        return pa.concat_tables(
            [
                _rows(np.concatenate(invoke), process, "invoke", common),
                _rows(np.concatenate(ret), process, "ok", common, records=records, extra=pa.array(extra)),
            ]
        )

    def ends(self, count: int) -> pa.Table:
        invoke = np.linspace(self.begin_ns + 2_500_000, self.end_ns, count, endpoint=False).astype(np.int64)
        ret = invoke + max(1, (int(invoke[1] - invoke[0]) // 2 if count > 1 else 1))
        partition = self.random.integers(0, self.partitions, count)
        told = np.zeros(count, dtype=np.int64)
        for p in range(self.partitions):
            here = partition == p
            told[here] = self.base[p] + np.searchsorted(self.taken[p], ret[here])
        common = {"f": "end", "topic": TOPIC}
        process = np.full(count, 20_000)
        return pa.concat_tables(
            [
                _rows(invoke, process, "invoke", common, partition=partition),
                _rows(ret, process, "ok", common, partition=partition, high_watermark=told),
            ]
        )

    def final(self, node: str | None, p: int) -> Iterator[pa.Table]:
        """The final read (node None) of a partition or one replica of it, chunk by chunk."""
        values = np.concatenate(self.values[p])
        for start in range(0, max(len(values), 1), CHUNK):
            some = values[start : start + CHUNK]
            yield self._chunk(node, p, start, some, len(values), start + CHUNK >= len(values))

    def _chunk(self, node: str | None, p: int, start: int, values: Ints, total: int, last: bool) -> pa.Table:
        offsets = np.arange(start, start + len(values))
        records = _records(np.full(len(values), p), offsets, values, np.array([0, len(values)]), epoch=0)
        time = np.array([self.end_ns + 1_000_000])
        end = {"partition": np.array([p]), "offset": np.array([0]), "high_watermark": np.array([total])}
        if node is None:
            extra = pa.array(['{"complete":true}' if last else "{}"])
            common = {"f": "drain", "topic": TOPIC}
            process = np.array([30_000 + p])
            invoked = _rows(time, process, "invoke", common, partition=np.array([p]))
            return pa.concat_tables(
                [invoked, _rows(time, process, "ok", common, records=records, extra=extra, **end)]
            ).drop_columns(["place"])
        whole = "true" if last else "false"
        extra = pa.array([f'{{"in_isr":true,"complete":{whole},"hw":{total}}}'])
        common = {"f": "replica", "topic": TOPIC, "node": node}
        return _rows(
            time, np.array([REPLICA]), "ok", common, records=records, extra=extra, **end
        ).drop_columns(["place"])


def _records(partition: Ints, offset: Ints, value: Ints, bounds: Ints, epoch: int = -1) -> pa.Array:
    size = len(value)
    fields = [
        pa.array(partition, pa.int32()),
        pa.array(offset, pa.int64()),
        pa.array(value, pa.int64()),
        pa.array(np.full(size, epoch), pa.int32()),
        pa.array(np.full(size, 1_760_000_000_000), pa.int64()),
    ]
    return pa.ListArray.from_arrays(
        pa.array(bounds, pa.int32()), pa.StructArray.from_arrays(fields, fields=list(RECORD))
    )


def _rows(time: Ints, process: Ints, kind: str, common: dict[str, str], **columns: object) -> pa.Table:
    """Rows of the schema, but for index and test_id; ``place`` keeps an invocation before its completion."""
    size = len(time)
    data: dict[str, pa.Array] = {
        "time_ns": pa.array(time, pa.int64()),
        "process": pa.array(process, pa.int32()),
        "type": pa.array([kind] * size, pa.string()),
        "place": pa.array(np.full(size, 0 if kind == "invoke" else 1), pa.int8()),
    }
    for name in SCHEMA.names:
        if name in common:
            data[name] = pa.array([common[name]] * size, pa.string())
        elif name in columns:
            column = columns[name]
            data[name] = column if isinstance(column, pa.Array) else pa.array(column, SCHEMA.field(name).type)
        elif name not in data and name not in ("test_id", "index"):
            data[name] = pa.nulls(size, SCHEMA.field(name).type)
    return pa.table(data)


def _control(partitions: int) -> pa.Table:
    nodes = '{"1":"n1","2":"n2","3":"n3"}'
    assigned = ",".join(f'"{p}":[1,2,3]' for p in range(partitions))
    extra = ['{"phase":"main"}', f'{{"assignment":{{{assigned}}},"nodes":{nodes}}}']
    rows = [
        _rows(
            np.array([n]), np.array([CONTROL]), "info", {"f": f, "topic": TOPIC}, extra=pa.array([extra[n]])
        )
        for n, f in enumerate(["phase", "assignment"])
    ]
    return pa.concat_tables(rows).drop_columns(["place"])


def _finish(table: pa.Table, info: RunInfo, index: int) -> pa.Table:
    size = len(table)
    table = table.append_column("test_id", pa.array([info.test_id] * size, pa.string()))
    table = table.append_column("index", pa.array(np.arange(index, index + size), pa.int64()))
    return table.select(SCHEMA.names).cast(SCHEMA)
