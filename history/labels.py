"""Labels of values and processes wherever a person reads of them: ``p3·117`` is value 117 of process 3.

A history that was imported has numbers of its own, which say more to those who know the original.
"""

from __future__ import annotations

from typing import Final

from wrackline.history.model import CORRUPT, FOREIGN, parts_of

IMPORTED: Final = "imported"
"""``RunInfo.system`` of an imported history."""
NUMBERED_FROM: Final = 1 << 52
"""wrackline.history.jepsen.operations numbers values that are no integers from here on."""
CONSUMERS: Final = 1 << 24
"""There a process's consumer is a client of its own, with this added to its number."""
SPECIAL: Final = {CORRUPT: "corrupt", FOREIGN: "foreign"}


def value_label(value: int, *, imported: bool = False) -> str:
    """``p3·117`` for value 117 of process 3, ``p3·117/1`` for its second attempt; the number that an imported
    history has."""
    if value < 0:
        return SPECIAL.get(value, str(value))
    if imported:
        return f"#{value - NUMBERED_FROM}" if value >= NUMBERED_FROM else str(value & 0xFFFFFFFF)
    process, counter, attempt = parts_of(value)
    return f"p{process}·{counter}" + (f"/{attempt}" if attempt else "")


def process_label(process: int, *, imported: bool = False) -> str:
    """The process's number; in an imported history that which it has there."""
    if imported and process >= CONSUMERS:
        return f"{process - CONSUMERS} (consumer)"
    return str(process)
