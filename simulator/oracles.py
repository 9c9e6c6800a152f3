"""What the clients saw, judged in the process: the cheap half of the history checks (anomalies.md).

The full checkers judge the same history on Spark; these find the same classes of wrong within a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.history.model import FAILED, Event, Record, Type


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that must not be. ``oracle`` is its class (an invariant's id, or a name from anomalies.md)."""

    oracle: str
    text: str
    at_ms: float = 0.0
    step: int = 0


@dataclass(slots=True)
class _Seen:
    acked: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """value -> (partition, offset, process)"""
    failed: set[int] = field(default_factory=set)
    places: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """value -> the places it was seen at"""
    values: dict[tuple[int, int], int] = field(default_factory=dict)
    """place -> the first value seen there"""
    clashes: list[str] = field(default_factory=list)
    read: set[int] = field(default_factory=set)


def judge(
    events: Sequence[Event],
    final: Mapping[int, Sequence[Record]] | None,
    *,
    acks: int,
    idempotent: bool,
    loss_allowed: bool,
) -> list[Violation]:
    """Violations in a run's history. ``final``: what the final read found, per partition, or None when it did
    not come to an end (then nothing is said of loss)."""
    seen = _Seen()
    out: list[Violation] = []
    for event in events:
        _take(seen, event)
    if final is not None:
        for partition, records in final.items():
            _places(seen, (record._replace(partition=partition) for record in records), "the final read")
            seen.read |= {record.value for record in records}
    if not loss_allowed:
        out += [Violation("inconsistent-offsets", text) for text in seen.clashes]
    out += _failed_but_read(seen)
    if idempotent and not loss_allowed:
        out += [
            Violation("duplicate", f"value {value} is at {sorted(places)}")
            for value, places in sorted(seen.places.items())
            if len(places) > 1
        ]
    out += _polls(events) if not loss_allowed else []
    if final is not None and acks == -1 and not loss_allowed:
        out += _lost(seen, final)
    return out


def _take(seen: _Seen, event: Event) -> None:
    if event.f == "send" and event.type is Type.OK:
        for record in event.records:
            seen.acked[record.value] = record.partition, record.offset, event.process
        _places(seen, event.records, f"an ack to process {event.process}")
    elif event.f == "send" and event.type is Type.FAIL:
        seen.failed |= {record.value for record in event.records if record.offset == FAILED}
    elif event.f == "poll" and event.type is Type.OK:
        _places(seen, event.records, f"a poll of process {event.process}")
        seen.read |= {record.value for record in event.records}


def _places(seen: _Seen, records: Iterable[Record], who: str) -> None:
    for record in records:
        place = record.partition, record.offset
        first = seen.values.setdefault(place, record.value)
        if first != record.value:
            seen.clashes.append(f"{place[0]}@{place[1]} held {first}, and {who} says {record.value}")
        seen.places.setdefault(record.value, set()).add(place)


def _failed_but_read(seen: _Seen) -> list[Violation]:
    return [
        Violation("read-of-failed-write", f"value {value} was certainly not appended, and was read")
        for value in sorted(seen.failed & seen.read)
    ]


def _polls(events: Sequence[Event]) -> list[Violation]:
    """A consumer must be given every offset in turn between two assigns."""
    out: list[Violation] = []
    next_at: dict[tuple[int, int], int] = {}
    for event in events:
        if event.f == "assign" and event.type is Type.OK:
            for partition, offset in (event.extra or {}).get("positions", {}).items():
                next_at[event.process, int(partition)] = offset
        elif event.f == "poll" and event.type is Type.OK:
            for record in event.records:
                key = event.process, record.partition
                due = next_at.get(key, record.offset)
                if record.offset != due:
                    what = "poll-skip" if record.offset > due else "nonmonotonic-poll"
                    text = (
                        f"process {event.process} was given {record.partition}@{record.offset}, {due} was due"
                    )
                    out.append(Violation(what, text, event.time_ns / 1e6))
                next_at[key] = record.offset + 1
    return out


def _lost(seen: _Seen, final: Mapping[int, Sequence[Record]]) -> list[Violation]:
    there = {record.value for records in final.values() for record in records}
    missing = sorted(value for value in seen.acked if value not in there)
    if not missing:
        return []
    partition, offset, process = seen.acked[missing[0]]
    text = (
        f"{len(missing)} acknowledged values are not in the final read; the first is {missing[0]} of process "
        f"{process}, acknowledged at {partition}@{offset}"
    )
    return [Violation("lost-write", text)]
