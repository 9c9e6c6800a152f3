"""A run's history in Jepsen's words, so that other checkers can judge it.

==============  ============================================================================================
``kafka``       what Jepsen's Kafka and Redpanda queue tests record: ``:send``, ``:poll``, ``:assign``,
                ``:subscribe``; a key is a partition. What a group's member was given is in its next poll's
                ``:rebalance-log``. The final read is polls of its own process, after an ``:assign`` with
                ``:seek-to-beginning? true``.
``list-append`` Elle (``elle-cli -m list-append``): a record sent is ``[:append k v]``, the final read of a
                partition one ``[:r k [...]]``. Polls do not fit: a read of this model is a whole prefix of
                the list.
``log``         ``wrackline check -m log --independent``: ``:append``, ``:read``, ``:end`` of ``[k ...]``
                tuples, with the offsets and ends of responses
``register``    Knossos: ``:write``, ``:read`` of ``[k v]`` tuples (``jepsen.independent``), of the workload
                ``register``
``queue``       Knossos: ``:enqueue``, ``:dequeue`` of ``[k v]`` tuples, of the workload ``queue``
==============  ============================================================================================

Rows of runner and replicas have no counterpart and are left out; faults are ``:nemesis`` operations of
``kafka``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.history import history_files
from wrackline.history.jepsen.text import Keyword, Operation
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, MARKER, NEMESIS, parts_of

Row = Mapping[str, Any]
Place = tuple[str, int]

RECORDS_AT_ONCE = 50_000
FAULT_WORDS = ("id", "phase", "targets", "role", "proved", "proof", "lossy")
"""What an operation of the nemesis says of a fault."""
_READ_BY_POLL = ("poll", "drain")


def rows(run_dir: Path) -> Iterator[Row]:
    """The events of clients and of the nemesis, in their order, a bounded piece of the file at a time. Raises
    HistoryError."""
    wanted = pc.field("process") >= NEMESIS
    for path in history_files(run_dir):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=8192):
                for piece in _pieces(batch.filter(wanted)):
                    yield from piece.to_pylist()


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Rows of final reads have thousands of records: as many rows at once as have ``RECORDS_AT_ONCE``
    together."""
    sizes = pc.list_value_length(batch.column("records")).fill_null(0).to_numpy()
    until = np.cumsum(sizes) // RECORDS_AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(until)) + 1), len(batch)]
    for start, end in itertools.pairwise(edges):
        yield batch.slice(start, end - start)


@dataclass
class Keys:
    """The integer that stands for a partition: partitions of the first topic keep their own numbers."""

    numbers: dict[Place, int] = field(default_factory=dict)

    def of(self, topic: str, partition: int) -> int:
        place = (topic, partition)
        if place not in self.numbers:
            first = next(iter(self.numbers), place)[0]
            taken = set(self.numbers.values())
            free = partition if topic == first and partition not in taken else max(taken, default=-1) + 1
            self.numbers[place] = free
        return self.numbers[place]


def kafka(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """Operations of ``jepsen.tests.kafka``, one per event that has a counterpart."""
    for index, operation in enumerate(_kafka_operations(events, keys)):
        fields = {name: value for name, value in operation.items() if value is not None or name == "value"}
        yield {"index": index, **fields}


def _kafka_operations(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    drains: set[int] = set()
    rebalances: dict[int, list[Operation]] = {}
    for row in events:
        process, f = row["process"], row["f"]
        if process == NEMESIS:
            yield _fault(row)
        elif process < 0:
            continue
        elif f == "send":
            mops = [_send_mop(row, record, keys) for record in row["records"] or ()]
            yield {**_operation(row, "send", mops), "txn": _txn_number(row, several=len(mops) > 1)}
        elif f == "drain" and _extra(row).get("derived"):
            continue  # an import made it of polls: it says nothing that they do not say
        elif f in _READ_BY_POLL:
            if f == "drain" and process not in drains:
                drains.add(process)
                yield from _from_the_beginning(row, keys)
            log = rebalances.pop(process, None) if row["type"] != "invoke" else None
            poll = _operation(_as_it_ended(row), "poll", [_poll_mop(row, keys)])
            yield {**poll, "rebalance-log": log, "txn": _txn_number(row)}
        elif f == "assign":
            yield from _assign(row, keys)
        elif f == "subscribe":
            partitions = (orjson.loads(row["extra"] or "{}").get("partitions")) or ()
            yield _operation(row, "subscribe", [keys.of(row["topic"], int(p)) for p in partitions])
        elif f == "rebalance":
            rebalances.setdefault(process, []).append(_rebalance(row, keys))


def _extra(row: Row) -> Mapping[str, Any]:
    return orjson.loads(row["extra"] or "{}")  # type: ignore[no-any-return]


def _txn_number(row: Row, *, several: bool = False) -> int | bool | None:
    """For Jepsen an operation of several sends is a transaction; what is none of them must say so."""
    number = _extra(row).get("txn") if "txn" in (row["extra"] or "") else None
    return False if number is None and several else number


def _as_it_ended(row: Row) -> Row:
    """A poll gave what it gave, and its transaction may have failed all the same."""
    ended = _extra(row).get("aborted") if "aborted" in (row["extra"] or "") else None
    return row if ended is None else {**row, "type": ended}


def _assign(row: Row, keys: Keys) -> Iterator[Operation]:
    """Ours says where each partition begins, and one that the consumer had already may begin elsewhere. In
    Jepsen's words such a one goes on where it was; so all of them are given up first."""
    positions = (orjson.loads(row["extra"] or "{}").get("positions")) or {}
    starts = {keys.of(row["topic"], int(p)): offset for p, offset in positions.items()}
    if row["type"] == "invoke":
        for kind in ("invoke", "ok"):
            yield _operation({**row, "type": kind}, "assign", [])
    yield {**_operation(row, "assign", list(starts)), "positions": starts}


def _rebalance(row: Row, keys: Keys) -> Operation:
    """What a member has now, and where it goes on, for the ``:rebalance-log`` of the poll in which it
    learned it."""
    extra = orjson.loads(row["extra"] or "{}")
    entry: Operation = {"keys": [keys.of(row["topic"], int(p)) for p in extra.get("partitions") or ()]}
    positions = extra.get("positions") or {}
    entry["positions"] = {keys.of(row["topic"], int(p)): offset for p, offset in positions.items()}
    return entry


def _operation(row: Row, f: str, value: Any) -> Operation:
    return {
        "time": row["time_ns"],
        "type": Keyword(row["type"]),
        "process": row["process"],
        "f": Keyword(f),
        "value": value,
        "error": row["error"],
    }


def _from_the_beginning(row: Row, keys: Keys) -> Iterator[Operation]:
    """The final reader's assignment, which our history does not record."""
    value = [keys.of(row["topic"], row["partition"])]
    for kind in ("invoke", "ok"):
        assigned = _operation({**row, "type": kind, "error": None}, "assign", value)
        yield {**assigned, "seek-to-beginning?": True}


def _send_mop(row: Row, record: Mapping[str, int], keys: Keys) -> list[Any]:
    key, value, offset = keys.of(row["topic"], record["partition"]), record["value"], record["offset"]
    if row["type"] == "ok" and offset == ACKED_WITHOUT_OFFSET:
        return [Keyword("send"), key, [None, value]]
    if row["type"] in ("ok", "info") and offset >= 0:
        return [Keyword("send"), key, [offset, value]]
    return [Keyword("send"), key, value]


def _poll_mop(row: Row, keys: Keys) -> list[Any]:
    if row["type"] != "ok":
        return [Keyword("poll")]
    polled: dict[int, list[list[int | None]]] = {}
    for record in row["records"] or ():
        polled.setdefault(keys.of(row["topic"], record["partition"]), []).append(
            [record["offset"], record["value"]]
        )
    for partition, value in _extra(row).get("placeless", ()) if "placeless" in (row["extra"] or "") else ():
        polled.setdefault(keys.of(row["topic"], partition), []).append([None, value])
    return [Keyword("poll"), polled]


def _fault(row: Row) -> Operation:
    extra = orjson.loads(row["extra"] or "{}")
    words = {name: extra[name] for name in FAULT_WORDS if name in extra}
    return {
        "time": row["time_ns"],
        "type": Keyword("info"),
        "process": Keyword("nemesis"),
        "f": Keyword(row["f"]),
        "value": words,
    }


def list_append(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """Transactions of one append or one read each, for Elle.

    A send of several records is no transaction (each record has its own outcome), so each of them is a
    process of its own, with the send's invocation and completion."""
    processes = _Processes()
    prefixes: dict[Place, _Prefix] = {}
    index = 0
    for row in events:
        if row["process"] < 0:
            continue
        if row["f"] == "send":
            operations = list(_appends(row, keys, processes))
        elif row["f"] == "drain":
            operations = list(_prefix_read(row, keys, processes, prefixes))
        else:
            continue
        for operation in operations:
            yield {"index": index, **operation}
            index += 1


class _Processes:
    """A process for the n-th record of a process's sends: new ones after an unknown outcome."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def of(self, *name: Any) -> int:
        return self._numbers.setdefault(name, len(self._numbers))


def _appends(row: Row, keys: Keys, processes: _Processes) -> Iterator[Operation]:
    for at, record in enumerate(row["records"] or ()):
        process = processes.of(row["process"], at)
        mop = [Keyword("append"), keys.of(row["topic"], record["partition"]), record["value"]]
        yield _txn(row, process, _outcome(row, record), [mop])


def _outcome(row: Row, record: Mapping[str, int]) -> str:
    if row["type"] != "ok":
        return str(row["type"])
    offset = record["offset"]
    if offset >= 0 or offset == ACKED_WITHOUT_OFFSET:
        return "ok"
    return "fail" if offset == FAILED else "info"


@dataclass
class _Prefix:
    invoked: bool = False
    values: list[int] = field(default_factory=list)


def _prefix_read(
    row: Row, keys: Keys, processes: _Processes, prefixes: dict[Place, _Prefix]
) -> Iterator[Operation]:
    """One read from the first chunk's invocation to the last chunk's completion, if the read came to its
    end."""
    prefix = prefixes.setdefault((row["topic"], row["partition"]), _Prefix())
    key = keys.of(row["topic"], row["partition"])
    process = processes.of("drain", row["topic"], row["partition"])
    if not prefix.invoked:
        prefix.invoked = True
        yield _txn(row, process, "invoke", [[Keyword("r"), key, None]])
    if row["type"] == "ok":
        prefix.values.extend(record["value"] for record in row["records"] or ())
        if orjson.loads(row["extra"] or "{}").get("complete") is True:
            yield _txn(row, process, "ok", [[Keyword("r"), key, prefix.values]])


def log(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:append [k v]`` (ok: ``[k [offset v]]``), ``:read [k [[offset v] ...]]`` and ``:end [k offset]`` of
    independent logs.

    A poll shows records of several partitions that were fetched at any time before, so it becomes one read of
    each that is invoked when it completes: that records are there holds from then on."""
    processes = _Processes()
    index = 0
    for row in events:
        if row["process"] < 0:
            continue
        for process, kind, f, value in _of_logs(row, keys, processes):
            head = {"index": index, "time": row["time_ns"], "type": Keyword(kind), "process": process}
            yield {**head, "f": Keyword(f), "value": value}
            index += 1


def _of_logs(row: Row, keys: Keys, processes: _Processes) -> Iterator[tuple[int, str, str, Any]]:
    """(process, type, f, value)."""
    if row["f"] == "send":
        for at, record in enumerate(row["records"] or ()):
            kind = "invoke" if row["type"] == "invoke" else _outcome(row, record)
            key, offset, value = keys.of(row["topic"], record["partition"]), record["offset"], record["value"]
            content = [offset if offset >= 0 else None, value] if kind == "ok" else value
            yield processes.of(row["process"], at), kind, "append", [key, content]
    elif row["f"] == "end":
        key = keys.of(row["topic"], row["partition"])
        end = row["high_watermark"] if row["type"] == "ok" else None
        yield processes.of(row["process"], 0), row["type"], "end", [key, end]
    elif row["f"] in _READ_BY_POLL and row["type"] == "ok":
        shown: dict[int, list[list[int]]] = {}
        for record in row["records"] or ():
            key = keys.of(row["topic"], record["partition"])
            shown.setdefault(key, []).append([record["offset"], record["value"]])
        for key, records in shown.items():
            process = processes.of(row["process"], "poll")
            yield process, "invoke", "read", [key, None]
            yield process, "ok", "read", [key, records]


def register(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:write`` and ``:read`` of independent registers, one per partition."""
    return _objects(events, keys, "write", "read")


def queue(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:enqueue`` and ``:dequeue`` of independent queues, one per partition."""
    return _objects(events, keys, "enqueue", "dequeue")


def _objects(events: Iterable[Row], keys: Keys, put: str, take: str) -> Iterator[Operation]:
    """Each record sent is an operation (markers are none of the object's); so is each read or dequeue.
    Knossos takes a nil read for one of unknown value, which is the nearest there is to an empty register."""
    processes = _Processes()
    index = 0
    for row in events:
        if row["process"] < 0:
            continue
        made: list[tuple[int, str, str, Any]] = []
        if row["f"] == "send":
            for at, record in enumerate(row["records"] or ()):
                if parts_of(record["value"])[2] != MARKER:
                    kind = "invoke" if row["type"] == "invoke" else _outcome(row, record)
                    made.append((processes.of(row["process"], at), kind, put, _tuple(row, record, keys)))
        elif row["f"] == take:
            found = [_tuple(row, record, keys) for record in row["records"] or ()]
            nothing = [keys.of(row["topic"], row["partition"]), None]
            made.append((processes.of(row["process"], 0), row["type"], take, found[0] if found else nothing))
        for process, kind, f, value in made:
            yield {
                "index": index,
                "time": row["time_ns"],
                "type": Keyword(kind),
                "process": process,
                "f": Keyword(f),
                "value": value,
            }
            index += 1


def _tuple(row: Row, record: Mapping[str, int], keys: Keys) -> list[int]:
    return [keys.of(row["topic"], record["partition"]), record["value"]]


def _txn(row: Row, process: int, kind: str, value: list[Any]) -> Operation:
    return {
        "time": row["time_ns"],
        "type": Keyword(kind),
        "process": process,
        "f": Keyword("txn"),
        "value": value,
    }


MODELS: Mapping[str, Callable[[Iterable[Row], Keys], Iterator[Operation]]] = {
    "kafka": kafka,
    "list-append": list_append,
    "log": log,
    "register": register,
    "queue": queue,
}
