"""Access to JSON that somebody else may have written: each question has an answer, and none raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rows(holder: Mapping[str, Any] | None, key: str) -> list[Mapping[str, Any]]:
    """The list of objects under ``key``; empty when there is none."""
    result = holder.get(key) if holder is not None else None
    return [row for row in result if isinstance(row, dict)] if isinstance(result, list) else []


def texts(holder: Mapping[str, Any] | None, key: str) -> tuple[str, ...]:
    """The list of strings under ``key``; a lone string counts as a list of one."""
    result = holder.get(key) if holder is not None else None
    if isinstance(result, str):
        return (result,)
    return tuple(str(item) for item in result) if isinstance(result, list) else ()


def mapping(holder: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    result = holder.get(key) if holder is not None else None
    return result if isinstance(result, dict) else {}


def numeric(holder: Mapping[str, Any] | None, key: str) -> float | None:
    """The number under ``key``; None when there is none (booleans are no numbers)."""
    result = holder.get(key) if holder is not None else None
    return result if isinstance(result, int | float) and not isinstance(result, bool) else None


def whole(holder: Mapping[str, Any] | None, key: str) -> int | None:
    result = numeric(holder, key)
    return None if result is None else int(result)
