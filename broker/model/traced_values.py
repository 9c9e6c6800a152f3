"""Values of the model in a line of the trace (docs/broker.md, "Trace"): for orjson, which knows the plain
ones."""

from __future__ import annotations

from typing import Final

import orjson

from wrackline.broker.model.types import TopicPartition

OPTIONS: Final = orjson.OPT_APPEND_NEWLINE | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_NON_STR_KEYS


def plain(value: object) -> object:
    match value:
        case TopicPartition():
            return str(value)
        case tuple():
            return list(value)
        case set() | frozenset():
            return sorted(value)
        case _:
            return str(value)
