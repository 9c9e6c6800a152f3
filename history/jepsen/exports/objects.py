"""The models ``log``, ``register`` and ``queue``: one object per partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from wrackline.history.jepsen.exports.common import (
    READ_BY_POLL,
    Keys,
    Processes,
    Row,
    numbered,
    operation,
    outcome_of,
)
from wrackline.history.jepsen.text import Operation
from wrackline.history.model import MARKER, parts_of


def log(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:append [k v]`` (ok: ``[k [offset v]]``), ``:read [k [[offset v] ...]]`` and ``:end [k offset]`` of
    independent logs.

    A poll shows records of several partitions that were fetched at any time before, so it becomes one read of
    each that is invoked when it completes: that records are there holds from then on."""
    processes = Processes()
    clients = (row for row in events if row["process"] >= 0)
    return numbered(one for row in clients for one in _of_logs(row, keys, processes))


def _of_logs(row: Row, keys: Keys, processes: Processes) -> Iterator[Operation]:
    if row["f"] == "send":
        for at, record in enumerate(row["records"] or ()):
            kind = "invoke" if row["type"] == "invoke" else outcome_of(row, record)
            key, offset, value = keys.of(row["topic"], record["partition"]), record["offset"], record["value"]
            content = [offset if offset >= 0 else None, value] if kind == "ok" else value
            yield operation(row, processes.of(row["process"], at), kind, "append", [key, content])
    elif row["f"] == "end":
        key = keys.of(row["topic"], row["partition"])
        end = row["high_watermark"] if row["type"] == "ok" else None
        yield operation(row, processes.of(row["process"], 0), row["type"], "end", [key, end])
    elif row["f"] in READ_BY_POLL and row["type"] == "ok":
        shown: dict[int, list[list[int]]] = {}
        for record in row["records"] or ():
            key = keys.of(row["topic"], record["partition"])
            shown.setdefault(key, []).append([record["offset"], record["value"]])
        for key, records in shown.items():
            process = processes.of(row["process"], "poll")
            yield operation(row, process, "invoke", "read", [key, None])
            yield operation(row, process, "ok", "read", [key, records])


def register(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:write`` and ``:read`` of independent registers, one per partition."""
    return _objects(events, keys, "write", "read")


def queue(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:enqueue`` and ``:dequeue`` of independent queues, one per partition."""
    return _objects(events, keys, "enqueue", "dequeue")


def _objects(events: Iterable[Row], keys: Keys, put: str, take: str) -> Iterator[Operation]:
    """Each record sent is an operation (markers are none of the object's); so is each read or dequeue.
    Knossos takes a nil read for one of unknown value, which is the nearest there is to an empty register."""
    processes = Processes()
    clients = (row for row in events if row["process"] >= 0)
    return numbered(one for row in clients for one in _of_objects(row, keys, processes, put, take))


def _of_objects(row: Row, keys: Keys, processes: Processes, put: str, take: str) -> Iterator[Operation]:
    if row["f"] == "send":
        for at, record in enumerate(row["records"] or ()):
            if parts_of(record["value"])[2] != MARKER:
                kind = "invoke" if row["type"] == "invoke" else outcome_of(row, record)
                process = processes.of(row["process"], at)
                yield operation(row, process, kind, put, _tuple(row, record, keys))
    elif row["f"] == take:
        result = [_tuple(row, record, keys) for record in row["records"] or ()]
        value = result[0] if result else [keys.of(row["topic"], row["partition"]), None]
        yield operation(row, processes.of(row["process"], 0), row["type"], take, value)


def _tuple(row: Row, record: Mapping[str, int], keys: Keys) -> list[int]:
    return [keys.of(row["topic"], record["partition"]), record["value"]]
