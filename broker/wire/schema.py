"""Access to kio's generated entities by API key and version.

A field that a version of the message does not have is left out when an entity is made, so each API is
translated once, not once per version.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import ModuleType
from typing import Any
from uuid import UUID

from kio.index import load_payload_module, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType

from wrackline.broker.wire import elect_leaders_schema, replica_log_info_schema
from wrackline.broker.wire.guard import Guard, WireError

__all__ = ["NO_UUID", "Schema", "WireError", "request_schema", "response_schema"]

NO_UUID = UUID(int=0)
_MESSAGE = "error_message"
_MESSAGE_LENGTH = 1_000
"""Characters. It may quote a request, whose strings may be as long as strings can be, and must be one
itself."""


_OWN: Mapping[tuple[int, int], tuple[str, ModuleType]] = {
    (43, 3): ("ElectLeaders", elect_leaders_schema),
    (93, 0): ("GetReplicaLogInfo", replica_log_info_schema),
}
"""Messages that kio has not, by key and version."""


class Schema:
    """The entities of one message: one API, one version, request or response."""

    def __init__(self, key: int, version: int, *, response: bool) -> None:
        self.version = version
        self.root, self._module = _load(key, version, response=response)
        self.flexible: bool = self.root.__flexible__
        self._guard = Guard(self.root)
        self._read: Any = entity_reader(self.root)
        self._write: Any = entity_writer(self.root)
        self._fields: dict[str, tuple[Any, frozenset[str]]] = {}

    def make(self, kind: str, /, **values: object) -> Any:
        """An entity by class name, of those values that this version has fields for."""
        known = self._fields.get(kind)
        if known is None:
            entity = getattr(self._module, kind)
            known = self._fields[kind] = (entity, frozenset(field.name for field in fields(entity)))
        entity, names = known
        text = values.get(_MESSAGE)
        if isinstance(text, str) and len(text) > _MESSAGE_LENGTH:
            values[_MESSAGE] = f"{text[:_MESSAGE_LENGTH]}..."
        return entity(**{field: value for field, value in values.items() if field in names})

    def has(self, name: str) -> bool:
        return hasattr(self._module, name)

    def read(self, message: bytes, at: int) -> Any:
        """Raises WireError when the bytes do not begin with such a message."""
        message, at = self._guard(message, at)
        try:
            entity, _ = self._read(message, at)
        except (SerialError, ValueError, OverflowError) as wrong:
            raise WireError(f"{self.root.__name__} v{self.version}: {wrong}") from wrong
        return entity

    def write(self, entity: Any) -> bytes:
        buffer = io.BytesIO()
        self._write(buffer, entity)
        return buffer.getvalue()


def _load(key: int, version: int, *, response: bool) -> tuple[Any, ModuleType]:
    """The class of the message and the module that has the classes in it."""
    if (own := _OWN.get((key, version))) is not None:
        name, module = own
        return getattr(module, f"{name}{'Response' if response else 'Request'}"), module
    if response:
        return load_response_schema(key, version), load_payload_module(key, version, EntityType.response)
    return load_request_schema(key, version), load_payload_module(key, version, EntityType.request)


@cache
def request_schema(key: int, version: int) -> Schema:
    return Schema(key, version, response=False)


@cache
def response_schema(key: int, version: int) -> Schema:
    return Schema(key, version, response=True)
