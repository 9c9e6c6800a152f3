"""Numbers, times and values as a person reads them: those of sentences (wrackline.history.wording), and those
that only a page needs."""

from __future__ import annotations

from wrackline.history.wording import (
    NOTHING,
    labels_of,
    number,
    partition_label,
    plural,
    printable,
    process_label,
    seconds,
    size,
    value_label,
)

__all__ = [
    "NOTHING", "duration", "labels_of", "lane_label", "milliseconds", "number", "partition_label", "plural",
    "printable", "seconds", "shorten", "size", "value_label",
]  # fmt: skip


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


def lane_label(process: int) -> str:
    """The label at the left of a process's lane."""
    label = process_label(process)
    return f"p{label}" if label.isdigit() else f"consumer {label.split()[0]}"


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
