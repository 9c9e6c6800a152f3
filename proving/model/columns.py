"""Rows of a history as columns: blocks of events of one kind, joined into one Arrow table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from wrackline.history.store.schema import RECORD, SCHEMA
from wrackline.proving.model.drawing import Bools, Ints, Operations, Polls
from wrackline.proving.model.log_server import Outcome

TOPIC = "log"
REFUSED_ERROR, LOST_ERROR = "MSG_SIZE_TOO_LARGE", "_TIMED_OUT"


@dataclass(frozen=True, slots=True)
class Block:
    """Events of one type and kind. Arrays have one element per event; a string holds for all of them."""

    time: Ints
    process: Ints
    type: str
    f: str
    topic: str | None = None
    partition: Ints | None = None
    offset: Ints | None = None
    key: Sequence[str | None] | None = None
    high_watermark: Ints | None = None
    records: pa.Array | None = None
    error: str | None = None
    node: str | None = None
    extra: Sequence[str | None] | None = None


def events(of: Operations, rows: Ints, kind: str, f: str, **columns: Any) -> Block:
    """Events of some operations: their invocations, or their completions of one type. ``columns``: of them,
    as in ``Block``."""
    time = of.invoke_op if kind == "invoke" else of.complete_op
    return Block(time[rows], of.process_op[rows], kind, f, topic=TOPIC, **columns)


def one_event(
    at: int, process: int, kind: str, f: str, extra: object, topic: str | None = TOPIC, **columns: Any
) -> Block:
    """A block of a single event; numbers among its ``columns`` are the event's."""
    arrays: dict[str, Any] = {
        name: np.array([it]) if isinstance(it, int) else it for name, it in columns.items()
    }
    said = None if extra is None else [orjson.dumps(extra).decode()]
    return Block(np.array([at]), np.array([process]), kind, f, topic=topic, extra=said, **arrays)


def records(
    partition: Ints,
    offset: Ints,
    value: Ints,
    bounds: Ints,
    epoch: Ints | None = None,
    *,
    timestamp_ms: int = -1,
) -> pa.Array:
    """Lists of records; ``bounds`` (one more than lists) say where each begins. ``timestamp_ms``: of all."""
    size = len(value)
    fields = [
        pa.array(partition, pa.int32()),
        pa.array(offset, pa.int64()),
        pa.array(value, pa.int64()),
        pa.array(np.full(size, -1) if epoch is None else epoch, pa.int32()),
        pa.array(np.full(size, timestamp_ms), pa.int64()),
    ]
    structs = pa.StructArray.from_arrays(fields, fields=list(RECORD))
    return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), structs).cast(pa.list_(RECORD))


def join(blocks: Sequence[Block], *, by_time: bool) -> pa.Table:
    """All events in the history's schema, in order of time or as they come; ``test_id`` and ``index`` are
    empty yet."""
    sizes = np.array([len(block.time) for block in blocks], dtype=np.int64)
    columns = {name: _column(blocks, sizes, name) for name in SCHEMA.names}
    table = pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in SCHEMA]))
    if not by_time:
        return table
    time = np.concatenate([block.time for block in blocks])
    # An invocation at the very moment of a completion comes first: the two then overlap, which promises less.
    later = np.repeat([block.type != "invoke" for block in blocks], sizes)
    return table.take(pa.array(np.lexsort((later, time))))


def _column(blocks: Sequence[Block], sizes: Ints, name: str) -> pa.Array:
    kind = SCHEMA.field(name).type
    if name == "time_ns":
        return pa.array(np.concatenate([b.time for b in blocks] or [np.zeros(0, np.int64)]), kind)
    if name in ("type", "f", "topic", "error", "node"):
        return _strings([getattr(block, name) for block in blocks], sizes)
    arrays = []
    for block, size in zip(blocks, sizes.tolist(), strict=True):
        value = getattr(block, name, None)
        if isinstance(value, pa.Array):
            arrays.append(value)
        else:
            arrays.append(pa.nulls(size, kind) if value is None else pa.array(value, kind))
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, kind)


def _strings(values: Sequence[str | None], sizes: Ints) -> pa.Array:
    """One string (or none) per block, repeated for its rows."""
    names = sorted({value for value in values if value is not None})
    codes = np.repeat([names.index(value) if value is not None else -1 for value in values], sizes)
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32(), mask=codes < 0), pa.array(names, pa.string())
    ).cast(pa.string())


def polls(outcome: Outcome, of: Polls, rows: Ints, failed: Bools) -> Iterator[Block]:
    """Polls of consumers: their invocations, and their completions with all that they were given."""
    yield events(of, rows, "invoke", "poll")
    yield events(of, rows[failed], "fail", "poll", error=LOST_ERROR)
    good = rows[~failed]
    begin, end, holds = of.begin_op[good], of.end_op[good], of.holds_op[good]
    some = given(outcome, begin, end, holds)
    yield events(of, good, "ok", "poll", records=some, extra=positions(end, holds))


def rebalanced(of: Polls, rows: Ints, begin: Ints, who: Iterable[Mapping[str, object]]) -> list[str]:
    """``extra`` of rebalances, each at one of the rows: every third is without positions. ``begin``:
    (operation, partition) where the member begins. ``who``: its group, and what else it tells of itself."""
    reported, before = list[str](), (-1, list[int]())
    for number, (row, said) in enumerate(zip(rows.tolist(), who, strict=True)):
        process, mine = int(of.process_op[row]), np.flatnonzero(of.holds_op[row]).tolist()
        extra = {**said, "partitions": mine}
        if before[0] == process:
            extra["revoked"] = [p for p in before[1] if p not in mine]
        if number % 3:
            extra["positions"] = offsets_at(begin[row], mine)
        reported.append(orjson.dumps(extra).decode())
        before = (process, mine)
    return reported


def offsets_at(offsets: Ints, partitions: Iterable[int]) -> dict[str, int]:
    """Partition -> offset, as ``extra`` has them."""
    return {str(p): int(offsets[p]) for p in partitions}


def positions(stands: Ints, holds: Bools) -> list[str]:
    """``extra`` of polls and assignments: (operation, partition) where a consumer stands, in those that it
    holds."""
    return [
        '{"positions":{' + ",".join(f'"{p}":{at}' for p, at in enumerate(row) if mine[p]) + "}}"
        for row, mine in zip(stands.tolist(), holds.tolist(), strict=True)
    ]


def given(outcome: Outcome, begin: Ints, end: Ints, holds: Bools) -> pa.Array:
    """The records between where each poll stood and where it stands, partition after partition."""
    parts = outcome.knobs.partitions
    count = np.where(holds, end - begin, 0).reshape(-1)
    partition = np.repeat(np.tile(np.arange(parts), len(begin)), count)
    before = np.repeat(np.cumsum(count) - count, count)
    offset = np.repeat(begin.reshape(-1), count) + np.arange(int(count.sum())) - before
    sizes = np.array([len(log.value) for log in outcome.logs], dtype=np.int64)
    row = (np.cumsum(sizes) - sizes)[partition] + offset
    value, epoch, shown = (
        np.concatenate([getattr(log, name) for log in outcome.logs])[row]
        for name in ("value", "epoch", "shown")
    )
    poll = np.repeat(np.arange(len(begin)), count.reshape(-1, parts).sum(axis=1))[shown]
    bounds = np.append(0, np.cumsum(np.bincount(poll, minlength=len(begin))))
    epochs = epoch if outcome.knobs.epochs_reported else np.full_like(epoch, -1)
    return records(partition[shown], offset[shown], value[shown], bounds, epochs[shown])
