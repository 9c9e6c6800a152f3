"""Values as words of a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

_WORD = re.compile(r"[\w.*+!?/-]+")


def in_words(value: Any, most: int = 40) -> str:
    """A value as EDN has it, cut short."""
    text = _text(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def several(values: Iterable[Any], most: int = 5) -> str:
    """``1, 2, 3 and 4 more``."""
    every = list(values)
    more = len(every) - most
    some = ", ".join(in_words(one) for one in every[:most])
    return f"{some} and {more:,} more" if more > 0 else some


def _text(value: Any) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return "[" + " ".join(_text(one) for one in value) + "]"
        case Mapping():
            return "{" + ", ".join(f"{_text(key)} {_text(one)}" for key, one in value.items()) + "}"
        case Set():
            return "#{" + " ".join(sorted(map(_text, value))) + "}"
        case str() if _WORD.fullmatch(value):
            return value
    return repr(value)
