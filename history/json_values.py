"""Access to JSON that somebody else may have written: each question has an answer, and none raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rows(holder: Mapping[str, Any] | None, key: str) -> list[Mapping[str, Any]]:
    """The list of objects under ``key``; empty when there is none."""
    found = holder.get(key) if holder is not None else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def texts(holder: Mapping[str, Any] | None, key: str) -> tuple[str, ...]:
    """The list of strings under ``key``; a lone string counts as a list of one."""
    found = holder.get(key) if holder is not None else None
    if isinstance(found, str):
        return (found,)
    return tuple(str(item) for item in found) if isinstance(found, list) else ()


def mapping(holder: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    found = holder.get(key) if holder is not None else None
    return found if isinstance(found, dict) else {}


def numeric(holder: Mapping[str, Any] | None, key: str) -> float | None:
    """The number under ``key``; None when there is none (booleans are no numbers)."""
    found = holder.get(key) if holder is not None else None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def whole(holder: Mapping[str, Any] | None, key: str) -> int | None:
    found = numeric(holder, key)
    return None if found is None else int(found)
