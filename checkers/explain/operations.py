"""Operations from the rows of a history: an invocation and its completion are one bar of a drawing, and one
line of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from wrackline.checkers.explain.model import OPEN, Operation
from wrackline.history.excerpts import KEPT_RECORDS, Excerpt
from wrackline.history.model import CONTROL, LIVENESS, NEMESIS, POLLS, REPLICA, Event, Type
from wrackline.history.wording import (
    number,
    outcome_label,
    partition_label,
    plural,
    printable,
    process_label,
    value_label,
)

_RECORDS_SPELT: Final = 3
_PARTITIONS_SPELT: Final = 6
_NAMES: Final = {
    "delete": "DeleteRecords", "end": "end-offset request", "drain": "final read",
    "committed": "request for what is committed", LIVENESS: "look at what does not move",
}  # fmt: skip


def operation(excerpt: Excerpt, completion: Excerpt | None = None) -> Operation:
    """One operation from its completion, or from its invocation and the completion that was found for it."""
    invoke = excerpt.event
    end = excerpt if invoke.type != Type.INVOKE else completion
    if end is None:
        return _make((invoke.index,), excerpt, OPEN, invoke.time_ns, None)
    if invoke.type == Type.INVOKE:
        return _make(
            (invoke.index, end.event.index), end, end.event.type.value, invoke.time_ns, end.event.time_ns
        )
    return _make((invoke.index,), end, end.event.type.value, end.begin_ns, end.event.time_ns)


def _make(
    indexes: tuple[int, ...], row: Excerpt, outcome: str, begin_ns: int, end_ns: int | None
) -> Operation:
    event = row.event
    partition = event.partition
    if partition is None and event.records and len({record.partition for record in event.records}) == 1:
        partition = event.records[0].partition
    return Operation(
        indexes=indexes,
        process=event.process,
        who=_who(event),
        f=event.f,
        name=_name(event),
        outcome=outcome,
        begin_ns=begin_ns,
        end_ns=end_ns,
        node=event.node,
        error=printable(event.error, 300) if event.error else None,
        what=_what(row),
        topic=event.topic,
        partition=partition,
        txn=_number((event.extra or {}).get("txn")),
    )


def _who(event: Event) -> str:
    special = {NEMESIS: "nemesis", CONTROL: "runner", REPLICA: f"replica {event.node or '?'}"}
    return special.get(event.process, f"p{process_label(event.process)}")


def _name(event: Event) -> str:
    if event.f == "replica":
        return f"log of {event.node}"
    return _NAMES.get(event.f, event.f)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def pair(excerpts: Iterable[Excerpt], *, complete: bool = True) -> list[Operation]:
    """The operations of a window: completions joined with the invocations before them, in order of
    invocation.

    With ``complete`` false the rows were cut off, so the completion of an invocation may be missing: an
    invocation without one is dropped.
    """
    waiting: dict[int, Excerpt] = {}
    result: list[Operation] = []
    for excerpt in sorted(excerpts, key=lambda e: e.event.index):
        process = excerpt.event.process
        invoke = waiting.pop(process, None)
        if excerpt.event.type == Type.INVOKE:
            if invoke is not None:
                result.append(operation(invoke))
            waiting[process] = excerpt
        else:
            result.append(operation(invoke, excerpt) if invoke is not None else operation(excerpt))
    if complete:
        result += [operation(invoke) for invoke in waiting.values()]
    return sorted(result, key=lambda op: (op.begin_ns, op.indexes))


def _what(row: Excerpt) -> str:
    event = row.event
    where = partition_label(event.topic, event.partition)
    if event.f == "send":
        return _sent(row)
    if event.f == "end":
        start = "" if event.offset is None else f", from {number(event.offset)}"
        asked = "" if event.high_watermark is None else f" → {number(event.high_watermark)}{start}"
        return f"{where}{asked}"
    if event.f == "delete":
        low = (event.extra or {}).get("low_watermark")
        start = "" if low is None else f" → low watermark {_offset(low)}"
        return f"{where} up to {_offset(event.offset)}{start}"
    if event.f == "assign":
        return _positions(event)
    if event.f in ("read", "dequeue"):
        return _taken(event)
    if event.f in ("commit", "committed", "rebalance", "subscribe"):
        return _of_a_group(event)
    if event.f in ("acknowledge", "lag"):
        return _of_a_share_group(event)
    if event.f in (*POLLS, "drain", "replica"):
        end = "" if event.high_watermark is None else f", log ends at {number(event.high_watermark)}"
        log_dirs = (event.extra or {}).get("log_dirs", ())
        several = f", in {' and '.join(map(str, log_dirs))}" if log_dirs else ""
        return f"{_read(row)}{end}{several}"
    if event.f == LIVENESS:
        return _stall(event)
    return where if event.topic is not None else ""


def _stall(event: Event) -> str:
    extra = event.extra or {}
    excuse = f" ({extra['excuse']})" if extra.get("excuse") else ""
    return printable(f"{extra.get('subject')}: {extra.get('state')}{excuse}", 400)


def _sent(row: Excerpt) -> str:
    event = row.event
    if not row.records:
        return f"{value_label(event.value)} to {partition_label(event.topic, event.partition)}"
    records = event.records[:_RECORDS_SPELT]
    if event.type == Type.INVOKE:
        spelt = [value_label(record.value) for record in records]
    else:
        spelt = [outcome_label(record) for record in records]
    more = f" and {row.records - len(records)} more" if row.records > len(records) else ""
    places = {record.partition for record in event.records}
    partition = (
        event.partition if event.partition is not None else (places.pop() if len(places) == 1 else None)
    )
    return f"{', '.join(spelt)}{more} · {partition_label(event.topic, partition)}"


def _read(row: Excerpt) -> str:
    topic = row.event.topic
    if not row.records:
        return f"no records of {partition_label(topic, row.event.partition)}"
    if row.records == 1:
        record = row.event.records[0]
        place = partition_label(topic, record.partition)
        return f"{value_label(record.value)} at {number(record.offset)} of {place}"
    spelt = [
        f"{partition_label(topic, partition)} {number(first)}"
        + (f" to {number(last)}" if last != first else "")
        for partition, _, first, last in row.ranges
    ]
    more = " …" if len(row.ranges) == KEPT_RECORDS else ""
    return f"{plural(row.records, 'record')}: {', '.join(spelt)}{more}"


def _positions(event: Event) -> str:
    positions = event.extra.get("positions") if event.extra else None
    if not isinstance(positions, Mapping):
        return partition_label(event.topic, event.partition)
    return _listed(f"{event.topic}-{p} from {_offset(offset)}" for p, offset in positions.items())


def _taken(event: Event) -> str:
    """The result of a read of a register or of a dequeue."""
    where = partition_label(event.topic, event.partition)
    if event.type != Type.OK:
        return where
    if not event.records:
        return f"nothing · {where}"
    return f"{value_label(event.records[0].value)} · {where}"


def _of_a_group(event: Event) -> str:
    """The partitions and offsets of an operation on a consumer group, and the consumer's group and
    generation."""
    extra = event.extra or {}
    offsets, positions = extra.get("offsets"), extra.get("positions")
    if isinstance(offsets, Mapping):
        listed = _listed(f"offset {_offset(offset)} of {event.topic}-{p}" for p, offset in offsets.items())
    else:
        starts = positions if isinstance(positions, Mapping) else {}
        taken = extra.get("partitions")
        listed = _listed(
            f"{event.topic}-{p}" + (f" from {_offset(starts[str(p)])}" if str(p) in starts else "")
            for p in (taken if isinstance(taken, list) else ())
        )
    listed = listed or (event.topic or "") if event.type == Type.INVOKE else listed or "nothing"
    names = [f"{name} {extra[name]}" for name in ("group", "generation") if extra.get(name) is not None]
    return f"{listed} · {', '.join(names)}" if names else listed


def _of_a_share_group(event: Event) -> str:
    """The kinds of acknowledgements with their offsets, or the lags of a share group, and the group."""
    extra = event.extra or {}
    kinds = [
        f"{kind} {_ranges(offsets)} of {event.topic}-{p}"
        for kind, places in _pairs(extra.get("acks"))
        for p, offsets in _pairs(places)
    ]
    lags = [f"{_offset(lag)} of {event.topic}-{p}" for p, lag in _pairs(extra.get("lags"))]
    return f"{_listed([*kinds, *lags]) or 'nothing'} · group {extra.get('group')}"


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    return value.items() if isinstance(value, Mapping) else ()


def _ranges(offsets: object) -> str:
    """``3, 5 and 9``, cut short."""
    every = list(map(_offset, offsets)) if isinstance(offsets, list) else [str(offsets)]
    more = f" and {len(every) - _PARTITIONS_SPELT} more" if len(every) > _PARTITIONS_SPELT else ""
    return ", ".join(every[:_PARTITIONS_SPELT]) + more


def _offset(offset: object) -> str:
    """Returns an offset in words; a history can have anything under ``extra``."""
    return number(offset) if isinstance(offset, int) else str(offset)


def _listed(items: Iterable[str]) -> str:
    listed = list(items)
    more = f" and {len(listed) - _PARTITIONS_SPELT} more" if len(listed) > _PARTITIONS_SPELT else ""
    return ", ".join(listed[:_PARTITIONS_SPELT]) + more
