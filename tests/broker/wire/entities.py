"""kio's entities by the names of their classes, as tests write them down whatever the version."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

from wrackline.broker.wire.schema import Schema


def make(schema: Schema, kind: str, /, **values: object) -> Any:
    """An entity by class name, of those values that this version has fields for."""
    entity = getattr(sys.modules[schema.root.__module__], kind)
    names = {field.name for field in fields(entity)}
    return entity(**{name: value for name, value in values.items() if name in names})


def has(schema: Schema, kind: str) -> bool:
    return hasattr(sys.modules[schema.root.__module__], kind)
