"""Examples of every message in kio's schemas, and a writer that can put one wrong thing into them.

With nothing wrong, what it writes is byte for byte what kio writes (a test holds it to that).
"""

from __future__ import annotations

import datetime
import io
from dataclasses import dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial._implicit_defaults import get_tagged_field_default
from kio.serial._serialize import get_writer

from wrackline.broker.wire.apis import API_VERSIONS, API_VERSIONS_RANGE, BY_KEY
from wrackline.broker.wire.schema import Schema, request_schema, response_schema
from wrackline.broker.wire.unserved import UNSERVED

_LENGTH = frozenset({"string", "bytes", "records"})
_EXAMPLES: dict[str, object] = {
    "bool": True,
    "int8": 1,
    "int16": 1,
    "uint16": 1,
    "int32": 2,
    "int64": 3,
    "error_code": ErrorCode.none,
    "timedelta_i32": datetime.timedelta(seconds=1),
    "timedelta_i64": datetime.timedelta(seconds=1),
    "datetime_i64": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "string": "some",
    "bytes": b"some",
    "records": b"records",
    "uuid": UUID("00112233-4455-6677-8899-aabbccddeeff"),
}


def schemas() -> list[tuple[str, Schema]]:
    """Of everything a node reads or writes, by a name for tests."""
    ranges = [
        (api.key, api.name, span) for api in BY_KEY.values() for span in (api.clients, api.peers) if span
    ]
    ranges += [(key, api.name, api.versions) for key, api in UNSERVED.items()]
    ranges.append((API_VERSIONS, "ApiVersions", API_VERSIONS_RANGE))
    return [
        (f"{name}-v{version}-{kind}", of(key, version))
        for key, name, (low, high) in ranges
        for version in range(low, high + 1)
        for kind, of in (("request", request_schema), ("response", response_schema))
    ]


def _kind(declared: Any) -> tuple[Any, bool]:
    """(type without None, whether None is allowed)"""
    if get_origin(declared) is UnionType:
        (kind,) = (item for item in get_args(declared) if item is not type(None))
        return kind, True
    return declared, False


def filled(root: Any) -> Any:
    """An entity in which everything is there: two elements in every array, every tagged field set."""
    values = {}
    for item in fields(root):
        kind, _ = _kind(item.type)
        if get_origin(kind) is tuple:
            values[item.name] = (_filled(get_args(kind)[0], item), _filled(get_args(kind)[0], item))
        else:
            values[item.name] = _filled(kind, item)
    return root(**values)


def _filled(kind: Any, item: Any) -> Any:
    return filled(kind) if is_dataclass(kind) else _EXAMPLES[item.metadata["kafka_type"]]


@dataclass
class Writer:
    """``wrong`` is the number of a place and what to write there; ``extra_tags`` puts an unknown tagged field
    into every structure that can have one. Places are counted by kind as they are met."""

    extra_tags: bool = False
    null_at: int = -1
    """Of the arrays, strings and bytes that may not be null: which one is."""
    length_at: int = -1
    """Of all arrays, strings and bytes: which one says that it is ``length`` long."""
    length: int = 0
    nulls: int = 0
    lengths: int = 0
    out: io.BytesIO = field(default_factory=io.BytesIO)

    def message(self, entity: Any) -> bytes:
        self._entity(entity)
        return self.out.getvalue()

    def _entity(self, entity: Any) -> None:
        flexible = entity.__flexible__
        tagged = []
        for item in fields(entity):
            value = getattr(entity, item.name)
            if "tag" not in item.metadata:
                self._field(item, value, flexible=flexible)
            elif value != get_tagged_field_default(item):
                tagged.append((item.metadata["tag"], item, value))
        if flexible:
            self._tags(sorted(tagged, key=lambda entry: entry[0]))

    def _tags(self, tagged: list[tuple[int, Any, Any]]) -> None:
        self._varint(len(tagged) + self.extra_tags)
        for tag, item, value in tagged:
            whole, self.out = self.out, io.BytesIO()
            self._field(item, value, flexible=True)
            whole, self.out = self.out, whole
            self._varint(tag)
            self._varint(len(whole.getvalue()))
            self.out.write(whole.getvalue())
        if self.extra_tags:
            self._varint(1_000)
            self._varint(7)
            self.out.write(b"unknown")

    def _field(self, item: Any, value: Any, *, flexible: bool) -> None:
        kind, nullable = _kind(item.type)
        if get_origin(kind) is tuple:
            if self._length(value, flexible=flexible, nullable=nullable, bits=4):
                for element in value:
                    self._element(item, get_args(kind)[0], element, flexible=flexible)
        elif is_dataclass(kind) and nullable:
            self.out.write(b"\x01" if value is not None else b"\xff")
            if value is not None:
                self._entity(value)
        else:
            self._element(item, kind, value, flexible=flexible, nullable=nullable)

    def _element(self, item: Any, kind: Any, value: Any, *, flexible: bool, nullable: bool = False) -> None:
        if is_dataclass(kind):
            self._entity(value)
            return
        primitive = item.metadata["kafka_type"]
        if primitive not in _LENGTH:
            get_writer(primitive, flexible, nullable)(self.out, value)
            return
        raw = value.encode() if isinstance(value, str) else value
        bits = 2 if primitive == "string" else 4
        if self._length(raw, flexible=flexible, nullable=nullable, bits=bits):
            self.out.write(raw)

    def _length(self, value: Any, *, flexible: bool, nullable: bool, bits: int) -> bool:
        """Whether there are elements to follow."""
        length = -1 if value is None else len(value)
        if not nullable:
            if self.nulls == self.null_at:
                length = -1
            self.nulls += 1
        if self.lengths == self.length_at:
            length = min(self.length, (1 << 8 * bits - 1) - 1) if not flexible else self.length
        self.lengths += 1
        if flexible:
            self._varint(length + 1)
        else:
            self.out.write(length.to_bytes(bits, "big", signed=True))
        return length >= 0

    def _varint(self, value: int) -> None:
        while value >= 0x80:
            self.out.write(bytes([value & 0x7F | 0x80]))
            value >>= 7
        self.out.write(bytes([value]))
