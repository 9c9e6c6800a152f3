"""kio's entities of one message, by API key and version: how it is read, written and filled."""

from __future__ import annotations

import io
from dataclasses import fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import UnionType
from typing import Any, TypeAlias, get_args, get_origin
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from wrackline.broker.wire.guard import Guard, WireError
from wrackline.broker.wire.own_schemas import OWN

__all__ = ["NO_THROTTLE", "NO_UUID", "Entity", "Schema", "WireError", "request_schema", "response_schema"]

NO_UUID = UUID(int=0)
NO_THROTTLE = timedelta(0)
Entity: TypeAlias = Any
"""A message, or a structure in one, as kio has it. Which fields it has depends on its version."""


def entity_class(key: int, version: int, *, response: bool) -> Entity:
    if (own := OWN.get((key, version))) is not None:
        return own[response]
    return (load_response_schema if response else load_request_schema)(key, version)


class Schema:
    """Struct message: one API, one version, request or response."""

    def __init__(self, key: int, version: int, *, response: bool) -> None:
        self.version = version
        self.root = entity_class(key, version, response=response)
        self.flexible: bool = self.root.__flexible__
        self._guard = Guard(self.root)
        self._read: Entity = entity_reader(self.root)
        self._write: Entity = entity_writer(self.root)

    def read(self, message: bytes, at: int) -> Entity:
        """Raises WireError when the bytes do not begin with such a message."""
        message, at = self._guard(message, at)
        try:
            entity, _ = self._read(message, at)
        except (SerialError, ValueError, OverflowError) as error:
            raise WireError(f"{self.root.__name__} v{self.version}: {error}") from error
        return entity

    def write(self, entity: Entity) -> bytes:
        buffer = io.BytesIO()
        self._write(buffer, entity)
        return buffer.getvalue()

    def filled(self, **values: object) -> bytes:
        """A message of values by the names of fields, a structure being a mapping of such; those that this
        version has no field for are left out. Nothing is ever throttled."""
        return self.write(_filled(self.root, {"throttle_time": NO_THROTTLE, **values}))


def _filled(kind: Entity, values: Entity) -> Entity:
    arguments = {}
    for field in fields(kind):
        if field.name not in values:
            continue
        value, declared = values[field.name], field.type
        if get_origin(declared) is UnionType:
            declared = get_args(declared)[0]
        element = get_args(declared)[0] if get_origin(declared) is tuple else declared
        if is_dataclass(element) and isinstance(value, tuple):
            value = tuple(_filled(element, each) for each in value)
        elif is_dataclass(element) and value is not None:
            value = _filled(element, value)
        arguments[field.name] = value
    return kind(**arguments)


@cache
def request_schema(key: int, version: int) -> Schema:
    return Schema(key, version, response=False)


@cache
def response_schema(key: int, version: int) -> Schema:
    return Schema(key, version, response=True)
