"""``explanations.json`` as bytes. What is as if it were not there (None, empty, zero) is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import orjson
from pydantic import TypeAdapter

from wrackline.checkers.explain.model import VERSION, Explanation, Explanations

_FORM: Final = TypeAdapter(Explanations)
_LIST: Final = TypeAdapter(list[Explanation])


def to_json(explanations: Explanations) -> bytes:
    return _FORM.dump_json(explanations, exclude_defaults=True, warnings="error") + b"\n"


def from_json(content: bytes) -> Explanations:
    """Raises ValueError, in one line, for what is no such file, or one of another version."""
    found = orjson.loads(content)
    version = found.get("version", 0) if isinstance(found, dict) else None
    if version != VERSION:
        raise ValueError(f"its version is {version}, not {VERSION}")
    return _FORM.validate_python(found)


def list_to_json(explanations: Iterable[Explanation]) -> bytes:
    """Some of them, without their windows: the operations of those are in the file alone."""
    found = [replace(one, windows=()) for one in explanations]
    return _LIST.dump_json(found, indent=2, exclude_defaults=True, warnings="error")
