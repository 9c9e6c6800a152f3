"""Numbers, times and values as a person reads them."""

from __future__ import annotations

import re
from typing import Final

from harness.history.model import ACKED_WITHOUT_OFFSET, CORRUPT, FAILED, FOREIGN, UNKNOWN, Record, parts_of

NOTHING: Final = "–"
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str, limit: int | None = None) -> str:
    """Text that XML and HTML can carry: characters they forbid become U+FFFD; cut at ``limit`` characters."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    return _UNPRINTABLE.sub("\ufffd", text)


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


def number(value: float | None) -> str:
    """With thousands separators; whole numbers stay whole, others keep one digit."""
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


def value_label(value: int | None) -> str:
    """``p3·117`` for the 117th value of process 3; ``p3·117/1`` for its second attempt."""
    if value is None:
        return NOTHING
    if value == CORRUPT:
        return "corrupt"
    if value == FOREIGN:
        return "foreign"
    if value < 0:
        return str(value)
    process, counter, attempt = parts_of(value)
    return f"p{process}·{counter}" + (f"/{attempt}" if attempt else "")


def outcome_label(record: Record) -> str:
    """What became of a record sent, e.g. ``p3·117 → 41``."""
    outcomes = {UNKNOWN: "?", FAILED: "not appended", ACKED_WITHOUT_OFFSET: "acked, no offset"}
    return f"{value_label(record.value)} → {outcomes.get(record.offset, number(record.offset))}"


def partition_label(topic: str | None, partition: int | None) -> str:
    """``log-0``; just what is known when one of the two is not."""
    if topic is None:
        return "all partitions" if partition is None else f"partition {partition}"
    return topic if partition is None else f"{topic}-{partition}"


def plural(count: int, word: str, many: str | None = None) -> str:
    return f"{number(count)} {word if count == 1 else many or word + 's'}"


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
