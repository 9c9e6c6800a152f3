"""The offsets around a finding: what clients were given there, and what each log really holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wrackline.checkers.explain.model import Cell, Column, Held, Line, Neighbourhood
from wrackline.checkers.explain.observations import LogEnd, Observations, Sighting
from wrackline.history.model import POLLS, Record
from wrackline.history.wording import number, value_label

REACH: Final = 3
"""Offsets shown on either side."""
_VALUES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """The records that one cited operation was given of the partition, in the order in which it got them."""

    name: str
    who: str
    records: tuple[Record, ...]


def with_readings(around: Neighbourhood, readings: Sequence[Reading]) -> Neighbourhood:
    """The neighbourhood with a column more for each reading: what *this* consumer was given."""
    columns = [*around.columns, *(Column(reading.name, f"by {reading.who}") for reading in readings)]
    earlier = [
        {r.offset for other in readings[:at] if other.who == reading.who for r in other.records}
        for at, reading in enumerate(readings)
    ]
    lines = [
        replace(
            line,
            cells=(
                *line.cells,
                *(_given(one, line, had) for one, had in zip(readings, earlier, strict=True)),
            ),
        )
        for line in around.lines
    ]
    return Neighbourhood(tuple(columns), tuple(lines))


def _given(reading: Reading, line: Line, had: Collection[int]) -> Cell:
    """``had``: offsets that the same consumer was given before, by another of the operations."""
    here = [record for record in reading.records if record.offset == line.offset]
    if not here:
        offsets = [record.offset for record in reading.records]
        passed = bool(offsets) and min(offsets) < line.offset < max(offsets) and line.expected is not None
        return Cell(note="not given", state="missing") if passed else Cell()
    times = Counter((record.value, record.leader_epoch) for record in here)
    held = tuple(
        Held(value_label(value), value, None if epoch < 0 else epoch, count)
        for (value, epoch), count in times.items()
    )
    error = len(here) > 1 or line.offset in had or any(item.value != line.expected for item in held)
    return Cell(held[:_VALUES_SHOWN], max(0, len(held) - _VALUES_SHOWN), "differs" if error else "same")


def reach(offset: int) -> range:
    return range(max(0, offset - REACH), offset + REACH + 1)


def neighbourhood(topic: str, partition: int, offset: int, seen: Observations) -> Neighbourhood | None:
    """The neighbourhood of one offset; None when the history shows nothing there."""
    near = {at: seen.at(topic, partition, at) for at in reach(offset)}
    ends = seen.ends_of(topic, partition)
    if not any(near.values()) and not ends:
        return None
    replicas = sorted(
        {s.node for own in near.values() for s in own if s.f == "replica" and s.node}
        | {node for node in ends if node}
    )
    columns = [Column("acked", "by sends")]
    columns += [Column(f"log of {node}", _bounds(ends.get(node))) for node in replicas]
    columns += [Column("final read", _bounds(ends.get(None))), Column("polls", "by consumers")]
    lines = []
    for at in reach(offset):
        here = near[at]
        lines.append(Line(at, at == offset, _cells(here, at, replicas, ends, seen), _expected(here)))
    return Neighbourhood(tuple(columns), tuple(lines))


def _bounds(end: LogEnd | None) -> str:
    if end is None:
        return "not read"
    bounds = [] if end.end is None else [f"ends at {number(end.end)}"]
    if end.hw is not None and end.hw >= 0:
        bounds.append(f"checkpointed HW {number(end.hw)}")
    if end.in_isr is not None:
        bounds.append("in ISR" if end.in_isr else "not in ISR")
    if end.complete is False:
        bounds.append("incomplete")
    return ", ".join(bounds)


def _cells(
    here: Sequence[Sighting],
    at: int,
    replicas: Sequence[str],
    ends: Mapping[str | None, LogEnd],
    seen: Observations,
) -> tuple[Cell, ...]:
    right = _expected(here)
    epoch = _common_epoch(here)
    acked = _cell([s for s in here if s.f == "send"], seen, right, None)
    polled = _cell([s for s in here if s.f in POLLS], seen, right, None)
    logs = [
        _log_cell(
            [s for s in here if s.f == "replica" and s.node == node], seen, right, epoch, at, ends.get(node)
        )
        for node in replicas
    ]
    final = _log_cell([s for s in here if s.f == "drain"], seen, right, None, at, ends.get(None))
    return (acked, *logs, final, polled)


def _expected(here: Iterable[Sighting]) -> int | None:
    """The value that ought to be there: the acknowledged one, else the one that most logs hold."""
    by_kind: dict[str, Counter[int]] = {}
    for s in here:
        by_kind.setdefault(s.f, Counter())[s.value] += 1
    for f in ("send", "replica", "drain", *POLLS):
        if f in by_kind:
            return by_kind[f].most_common(1)[0][0]
    return None


def _common_epoch(here: Iterable[Sighting]) -> int | None:
    epochs = Counter(s.leader_epoch for s in here if s.f == "replica" and s.leader_epoch >= 0)
    return epochs.most_common(1)[0][0] if epochs else None


def _cell(own: Sequence[Sighting], seen: Observations, right: int | None, epoch: int | None) -> Cell:
    if not own:
        return Cell()
    times: Counter[tuple[int, int]] = Counter()
    for s in own:
        times[(s.value, s.leader_epoch)] += seen.counts[s]
    held = tuple(
        Held(value_label(value), value, None if e < 0 else e, count)
        for (value, e), count in times.most_common()
    )
    error = any(item.value != right for item in held)
    error |= epoch is not None and any(item.leader_epoch not in (None, epoch) for item in held)
    return Cell(held[:_VALUES_SHOWN], max(0, len(held) - _VALUES_SHOWN), "differs" if error else "same")


def _log_cell(
    own: Sequence[Sighting],
    seen: Observations,
    right: int | None,
    epoch: int | None,
    at: int,
    end: LogEnd | None,
) -> Cell:
    """The cell of a log, which must hold a record at every offset between its start and its end."""
    if own:
        return _cell(own, seen, right, epoch)
    if end is None:
        return Cell(note="not read")
    if end.end is not None and at >= end.end:
        note = "past the end"
    elif end.start is not None and at < end.start:
        return Cell(note="before the start")
    else:
        note = "nothing"
    return Cell(note=note, state="missing" if right is not None else "")
