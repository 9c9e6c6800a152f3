"""The model ``kafka``: operations of ``jepsen.tests.kafka``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from wrackline.history.jepsen.consumers import ours_out
from wrackline.history.jepsen.exports.common import READ_BY_POLL, Keys, Row, extra_of, numbered, operation
from wrackline.history.jepsen.text import Operation
from wrackline.history.model import ACKED_WITHOUT_OFFSET, NEMESIS
from wrackline.values import Keyword

FAULT_WORDS = ("id", "phase", "targets", "role", "proved", "proof", "restored", "lossy")
"""What an operation of the nemesis says of a fault."""


def kafka(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """Operations of ``jepsen.tests.kafka``, one per event that has a counterpart."""
    return numbered(
        {name: value for name, value in one.items() if value is not None or name == "value"}
        for one in _kafka_operations(events, keys)
    )


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
            numbered = {"txn": _txn_number(row, several=len(mops) > 1), "key": row["key"]}
            yield {**_operation(row, "send", mops), **numbered, **_ours(row)}
        elif f == "drain" and extra_of(row).get("derived"):
            continue  # an import made it of polls: it says nothing that they do not say
        elif f in READ_BY_POLL:
            if f == "drain" and process not in drains:
                drains.add(process)
                yield from _from_the_beginning(row, keys)
            log = rebalances.pop(process, None) if row["type"] != "invoke" else None
            poll = _operation(_as_it_ended(row), "poll", [_poll_mop(row, keys)])
            yield {**poll, "rebalance-log": log, "txn": _txn_number(row), **_ours(row)}
        elif f == "assign":
            yield from _assign(row, keys)
        elif f == "subscribe":
            partitions = extra_of(row).get("partitions") or ()
            expected = [keys.of(row["topic"], int(p)) for p in partitions]
            yield {**_operation(row, "subscribe", expected), **_ours(row)}
        elif f == "rebalance":
            rebalances.setdefault(process, []).append(_rebalance(row, keys))
        elif f in ("commit", "committed"):
            offsets = {
                keys.of(row["topic"], int(p)): at for p, at in extra_of(row).get("offsets", {}).items()
            }
            yield {**_operation(row, f, offsets), "txn": _txn_number(row), **_ours(row)}
        elif f == "crash":
            for kind in ("invoke", "info"):
                yield {**_operation({**row, "type": kind}, "crash", None), **_ours(row)}


def _ours(row: Row) -> Operation:
    """Returns what else rows of transactions and groups say."""
    extra = row["extra"] or ""
    return ours_out(extra_of(row)) if '"txn"' in extra or '"group"' in extra else {}


def _txn_number(row: Row, *, several: bool = False) -> int | bool | None:
    """Returns the number of the transaction: for Jepsen an operation of several sends is a transaction; what
    is none of them must say so."""
    number = extra_of(row).get("txn") if "txn" in (row["extra"] or "") else None
    return False if number is None and several else number


def _as_it_ended(row: Row) -> Row:
    """A poll gave what it gave, and its transaction may have failed all the same."""
    ended = extra_of(row).get("aborted") if "aborted" in (row["extra"] or "") else None
    return row if ended is None else {**row, "type": ended}


def _assign(row: Row, keys: Keys) -> Iterator[Operation]:
    """Ours says where each partition begins, and one that the consumer had already may begin elsewhere. In
    Jepsen's words such a one goes on where it was; so all of them are given up first."""
    positions = extra_of(row).get("positions") or {}
    starts = {keys.of(row["topic"], int(p)): offset for p, offset in positions.items()}
    if row["type"] == "invoke":
        for kind in ("invoke", "ok"):
            yield _operation({**row, "type": kind}, "assign", [])
    yield {**_operation(row, "assign", list(starts)), "positions": starts, **_ours(row)}


def _rebalance(row: Row, keys: Keys) -> Operation:
    """Returns the partitions of a member and its positions, for the ``:rebalance-log`` of the poll in which
    it learned them."""
    extra = extra_of(row)
    entry: Operation = {"keys": [keys.of(row["topic"], int(p)) for p in extra.get("partitions") or ()]}
    positions = extra.get("positions") or {}
    entry["positions"] = {keys.of(row["topic"], int(p)): offset for p, offset in positions.items()}
    if "revoked" in extra:
        entry["revoked"] = [keys.of(row["topic"], int(p)) for p in extra["revoked"]]
    return entry | _ours(row)


def _operation(row: Row, f: str, value: Any) -> Operation:
    return {**operation(row, row["process"], row["type"], f, value), "error": row["error"]}


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
    for partition, value in extra_of(row).get("placeless", ()) if "placeless" in (row["extra"] or "") else ():
        polled.setdefault(keys.of(row["topic"], partition), []).append([None, value])
    return [Keyword("poll"), polled]


def _fault(row: Row) -> Operation:
    extra = extra_of(row)
    words = {name: extra[name] for name in FAULT_WORDS if name in extra}
    return operation(row, Keyword("nemesis"), "info", row["f"], words)
