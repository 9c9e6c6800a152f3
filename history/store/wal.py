"""The write-ahead file of a history: one JSON line per event, in the order of the clock.

A line holds the columns of ``wrackline.history.store.schema`` that are not null; ``extra`` is JSON inside a
string, as it is in Parquet, so Arrow's own JSON reader turns lines into columns without Python touching a
row. The first line is ``{"wrackline": <RunInfo>, "format": 1}``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pa_json

from wrackline.history.model import Event, RunInfo
from wrackline.history.store.schema import SCHEMA

FORMAT = 1
_LINE_SCHEMA = pa.schema([pa.field(f.name, f.type) for f in SCHEMA if f.name != "test_id"])


_OPTIONAL = (
    *("topic", "partition", "offset", "value", "key", "leader_epoch", "high_watermark"),
    *("error", "node", "latency_ns"),
)
_optional_of = attrgetter(*_OPTIONAL)
"""All at once: to ask for one after another costs as much as all else of a line."""


def header_line(info: RunInfo) -> bytes:
    return b'{"wrackline":' + info.to_json() + b',"format":%d}\n' % FORMAT


def read_header(line: bytes) -> RunInfo:
    """Raises ValueError when the line is no header of a format we know."""
    header = orjson.loads(line)
    if not isinstance(header, dict) or "wrackline" not in header:
        raise ValueError("the first line is no header")
    if header.get("format") != FORMAT:
        raise ValueError(f"format {header.get('format')} is not known (this version reads {FORMAT})")
    return RunInfo.from_json(orjson.dumps(header["wrackline"]))


def encode_tail(event: Event) -> bytes:
    """The line of an event but for its beginning, ``{"index":..,"time_ns":..``, which is given under the
    lock. ``records`` is there even when empty: an empty list and a null are two things to whoever counts."""
    row: dict[str, object] = {"process": event.process, "type": event.type, "f": event.f}
    for name, value in zip(_OPTIONAL, _optional_of(event), strict=False):
        if value is not None:
            row[name] = value
    row["records"] = [
        {"partition": p, "offset": o, "value": v, "leader_epoch": e, "timestamp": t}
        for p, o, v, e, t in event.records
    ]
    if event.extra is not None:
        row["extra"] = orjson.dumps(event.extra, option=orjson.OPT_NON_STR_KEYS).decode()
    return b"," + orjson.dumps(row)[1:] + b"\n"


def with_beginning(index: int, time_ns: int, tail: bytes) -> bytes:
    return b'{"index":%d,"time_ns":%d' % (index, time_ns) + tail


def table_of(lines: bytes, test_id: str) -> pa.Table:
    """Whole lines (without the header) as a table of the history's schema.

    Raises ValueError (pyarrow's ArrowInvalid is one) on a line that is no event."""
    if not lines:
        return SCHEMA.empty_table()
    table = pa_json.read_json(
        pa.BufferReader(lines),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=pa_json.ParseOptions(explicit_schema=_LINE_SCHEMA, unexpected_field_behavior="error"),
    )
    columns = [_repeated(test_id, len(table))]
    columns += [table.column(name).cast(SCHEMA.field(name).type) for name in _LINE_SCHEMA.names]
    return pa.table(columns, schema=SCHEMA)


def _repeated(text: str, count: int) -> pa.Array:
    """Repeats a text as an array from buffers, since ``pa.array`` and ``pa.scalar`` import pandas to see
    whether they were given one of its objects: a second of processor time in the middle of a run."""
    once = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * len(once)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(once * count))


def read_chunks(fd: int, start: int, limit: int, chunk_bytes: int) -> Iterator[bytes]:
    """Yields the file from ``start`` to ``limit`` (both where lines end), in pieces of about ``chunk_bytes``
    that end where a line ends. Unbuffered, since the file may be growing."""
    size = chunk_bytes
    while start < limit:
        chunk = os.pread(fd, min(size, limit - start), start)
        end = chunk.rfind(b"\n") + 1
        if end:
            yield chunk[:end]
            start, size = start + end, chunk_bytes
        elif len(chunk) < min(size, limit - start):
            raise ValueError(f"the file ends before {limit} bytes")
        else:
            size *= 2  # a line longer than a chunk


@dataclass(frozen=True, slots=True)
class Whole:
    """The complete part of a write-ahead file."""

    info: RunInfo
    body_start: int
    body_end: int
    events: int
    file_bytes: int
    problem: str | None
    """Why reading stopped before the end of the file; None when everything is whole."""


def examine(path: Path) -> Whole:
    """Find the longest prefix of a write-ahead file that is a history: what follows a broken line is left out
    even when it could be read, since a history with a hole would accuse the system of what the file lost.

    Raises ValueError when not even the header can be read, OSError when the file cannot."""
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.readline()
        if not header.endswith(b"\n"):
            raise ValueError("not even its first line is whole")
        info = read_header(header)
        position, count, problem = len(header), 0, None
        for line in file:
            if not line.endswith(b"\n"):
                rest = line.rstrip(b"\0")  # what was allocated ahead reads as zeros
                size = position + len(rest)
                problem = "the last line is cut off" if rest else None
                break
            if not _is_event(line, count):
                problem = f"event {count} is garbled"
                break
            position += len(line)
            count += 1
    return Whole(info, len(header), position, count, size, problem)


def _is_event(line: bytes, index: int) -> bool:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return (
        isinstance(row, dict)
        and row.get("index") == index
        and all(isinstance(row.get(name), kind) for name, kind in _NEEDED)
        and row.keys() <= _KNOWN
    )


_NEEDED: tuple[tuple[str, type], ...] = (("time_ns", int), ("process", int), ("type", str), ("f", str))
_KNOWN = frozenset(_LINE_SCHEMA.names)
