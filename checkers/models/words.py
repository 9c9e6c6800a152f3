"""Values as words of a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wrackline.values import spelt


def in_words(value: Any, most: int = 40) -> str:
    """A value as EDN has it, cut short."""
    text = spelt(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def several(values: Iterable[Any], most: int = 5) -> str:
    """``1, 2, 3 and 4 more``."""
    every = list(values)
    more = len(every) - most
    some = ", ".join(in_words(one) for one in every[:most])
    return f"{some} and {more:,} more" if more > 0 else some
