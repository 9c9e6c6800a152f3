"""Times, numbers and names as a sentence on one run has them. Inside ``labels_of`` values and processes are
called as that run's system calls them (wrackline.history.labels)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from wrackline.history import labels
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED, UNKNOWN, Record

NOTHING: Final = "–"
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_system: ContextVar[str] = ContextVar("_system", default="")


@contextmanager
def labels_of(system: str) -> Iterator[None]:
    """Labels values inside as this system (``RunInfo.system``) makes them: ours by process and counter, those
    of an imported history by the number it has there."""
    before = _system.set(system)
    try:
        yield
    finally:
        _system.reset(before)


def printable(text: str, limit: int | None = None) -> str:
    """Text that XML and HTML can carry: characters they forbid become U+FFFD; cut at ``limit`` characters."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return _UNPRINTABLE.sub("\ufffd", text)


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def seconds(time_ns: float | None) -> str:
    """Nanoseconds since the start of the run, e.g. ``12.318 s``."""
    return NOTHING if time_ns is None else f"{time_ns / 1e9:,.3f} s"


def duration(span_ns: float | None) -> str:
    """A length of time in the unit that fits: ``840 µs``, ``12.5 ms``, ``6.21 s``, ``3 min 20 s``."""
    return NOTHING if span_ns is None else milliseconds(span_ns / 1e6)


def milliseconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    if value < 0:
        return "-" + milliseconds(-value)
    if value < 1:
        return f"{value * 1e3:.0f} µs"
    if value < 1_000:
        return f"{value:.3g} ms"
    if value < 100_000:
        return f"{value / 1e3:.3g} s"
    minutes, rest = divmod(round(value / 1e3), 60)
    return f"{minutes} min {rest} s"


def apart(earlier_ns: int | None, later_ns: int | None) -> tuple[str, str]:
    """Two times as ``seconds`` has them, with as many digits as it takes to distinguish them."""
    if earlier_ns is not None and later_ns is not None:
        for digits in (3, 6, 9):
            times = f"{earlier_ns / 1e9:,.{digits}f} s", f"{later_ns / 1e9:,.{digits}f} s"
            if times[0] != times[1]:
                return times
    return seconds(earlier_ns), seconds(later_ns)


def number(value: float | None) -> str:
    """Formats a number with thousands separators; whole numbers stay whole, others keep one digit."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1_000 else f"{value:,.1f}"


def size(count: float | None) -> str:
    """Bytes, in the unit that fits."""
    if count is None:
        return NOTHING
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def plural(count: int, word: str, many: str | None = None) -> str:
    return f"{number(count)} {word if count == 1 else many or word + 's'}"


def value_label(value: int | None) -> str:
    """``p3·117`` for the 117th value of process 3; ``p3·117/1`` for its second attempt."""
    return NOTHING if value is None else labels.value_label(value, imported=_system.get() == labels.IMPORTED)


def process_label(process: int) -> str:
    """The process's number; in an imported history that which it has there."""
    return labels.process_label(process, imported=_system.get() == labels.IMPORTED)


def outcome_label(record: Record) -> str:
    """A sent record and its outcome, e.g. ``p3·117 → 41``."""
    outcomes = {UNKNOWN: "?", FAILED: "not appended", ACKED_WITHOUT_OFFSET: "acked, no offset"}
    return f"{value_label(record.value)} → {outcomes.get(record.offset, number(record.offset))}"


def partition_label(topic: str | None, partition: int | None) -> str:
    """The name of a partition, as ``log-0``; only the topic or the number when the other is not known."""
    if topic is None:
        return "all partitions" if partition is None else f"partition {partition}"
    return topic if partition is None else f"{topic}-{partition}"
