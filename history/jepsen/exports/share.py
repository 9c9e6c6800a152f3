"""The model ``share``: records of share groups, each an object of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wrackline.history.jepsen.exports.common import Keys, Row, extra_of, numbered, operation
from wrackline.history.jepsen.text import Operation

Record = tuple[str, int, int]
"""Group, key and offset."""
ACQUIRE, ACKNOWLEDGE, SUBSCRIBE, CRASH = "acquire", "acknowledge", "subscribe", "crash"
RELEASE, RENEW = "release", "renew"


def share(events: Iterable[Row], keys: Keys) -> Iterator[Operation]:
    """``:acquire``, ``:accept``, ``:reject``, ``:release``, ``:renew`` of one record each, and an ``:expire``
    of unknown outcome from when on each lock may have ended. A member that leaves or crashes may release what
    it has, then or later. Every operation has a process of its own.

    A member has records that were sent to it before it polled, so an ``:acquire`` begins at the time that its
    poll says (``since_ns``), and operations are put in the order of time."""
    rows = _Rows(keys)
    for row in events:
        rows.take(row)
    return numbered(one for _, _, _, one in sorted(rows.operations, key=lambda each: each[:3]))


@dataclass
class _Rows:
    keys: Keys
    operations: list[tuple[int, bool, int, Operation]] = field(default_factory=list)
    """(time, whether it completes one, number, operation): of equal times those that begin come first, since
    operations that touch are concurrent."""
    _locks: dict[str, int] = field(default_factory=dict)
    """Group -> how long a lock lasts, in ns."""
    _open: dict[int, dict[tuple[str, Record], tuple[int, Any]]] = field(default_factory=dict)
    """Process -> (kind, record) of each acknowledgement under way -> process and value."""
    _delivered: dict[int, dict[Record, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    """Member -> record that it has -> the value of its last delivery, with the number of renewals."""
    _processes: int = 0

    def take(self, row: Row) -> None:
        if row["f"] == SUBSCRIBE:
            extra = extra_of(row)
            lock_ms = (extra.get("share") or {}).get("lock_ms")
            self._locks[extra.get("group", "")] = int(lock_ms or 0) * 1_000_000
        elif row["f"] == ACQUIRE and row["type"] == "ok":
            self._acquire(row, extra_of(row))
        elif row["f"] == ACKNOWLEDGE and row["type"] == "invoke":
            self._begin(row, extra_of(row))
        elif row["f"] == ACKNOWLEDGE:
            self._complete(row, extra_of(row))
        elif row["f"] == CRASH:
            for record in self._delivered.pop(row["process"], {}):
                value = {"record": record, "member": row["process"]}
                self._add(row["time_ns"], self._process(), "invoke", RELEASE, value)

    def _acquire(self, row: Row, extra: Mapping[str, Any]) -> None:
        begin_ns = min(int(extra.get("since_ns", row["time_ns"])), row["time_ns"])
        again = {(partition, offset) for partition, offset in extra.get("renewed") or ()}
        counts = [*(extra.get("counts") or ())]
        for at, record in enumerate(row["records"] or ()):
            if (record["partition"], record["offset"]) in again:
                continue  # its member had it already
            key = self.keys.of(row["topic"], record["partition"])
            mine: Record = (extra["group"], key, record["offset"])
            count = counts[at] if at < len(counts) and counts[at] else None
            value = {"record": mine, "member": row["process"]}
            process = self._process()
            self._add(begin_ns, process, "invoke", ACQUIRE, value)
            self._add(row["time_ns"], process, "ok", ACQUIRE, {**value, "count": count})
            delivery = {**value, "count": count, "renewals": 0}
            self._delivered[row["process"]][mine] = delivery
            self._expire(begin_ns, delivery)

    def _expire(self, since_ns: int, delivery: Mapping[str, Any]) -> None:
        if lock_ns := self._locks.get(delivery["record"][0]):
            self._add(since_ns + lock_ns, self._process(), "invoke", "expire", dict(delivery))

    def _begin(self, row: Row, extra: Mapping[str, Any]) -> None:
        member, under_way = int(extra.get("member", row["process"])), {}
        for kind, record in self._named(row, extra):
            process, value = self._process(), {"record": record, "member": member}
            under_way[kind, record] = process, value
            self._add(row["time_ns"], process, "invoke", kind, value)
            delivery = self._delivered[member].get(record)
            if kind == RENEW and delivery is not None:
                delivery["renewals"] += 1
                self._expire(row["time_ns"], delivery)
        self._open[row["process"]] = under_way

    def _complete(self, row: Row, extra: Mapping[str, Any]) -> None:
        """Whatever is not confirmed may have taken effect."""
        under_way = self._open.pop(row["process"], {})
        confirmed = {*self._named(row, extra)} if row["type"] in ("ok", "info") else set()
        for (kind, record), (process, value) in under_way.items():
            outcome = "ok" if (kind, record) in confirmed else "info"
            self._add(row["time_ns"], process, outcome, kind, value)
            if outcome == "ok" and kind != RENEW:
                self._delivered[value["member"]].pop(record, None)

    def _named(self, row: Row, extra: Mapping[str, Any]) -> Iterator[tuple[str, Record]]:
        for kind, places in (extra.get("acks") or {}).items():
            for partition, offsets in places.items():
                key = self.keys.of(row["topic"], int(partition))
                yield from ((kind, (extra["group"], key, int(offset))) for offset in offsets)

    def _process(self) -> int:
        self._processes += 1
        return self._processes - 1

    def _add(self, time_ns: int, process: int, kind: str, f: str, value: Any) -> None:
        one = operation({"time_ns": time_ns}, process, kind, f, value)
        self.operations.append((time_ns, kind != "invoke", len(self.operations), one))
