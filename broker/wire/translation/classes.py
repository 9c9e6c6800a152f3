"""The declarations of our and of kio's classes about their fields: types, defaults, whether they may be
null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.schema import Entity
from wrackline.broker.wire.translation.declarations import Message, RowKey, Shape, message


class Member(NamedTuple):
    """A field of a class of ours."""

    name: str
    hint: object
    default: object


@cache
def members_of(form: type) -> tuple[Member, ...]:
    """Lists the fields of a dataclass or of a NamedTuple."""
    hints = get_type_hints(form)
    if is_dataclass(form):
        defaults = {field.name: field.default for field in fields(form)}
    else:
        of_tuple: Entity = form
        defaults = {name: of_tuple._field_defaults.get(name, MISSING) for name in of_tuple._fields}
    return tuple(Member(name, hints[name], default) for name, default in defaults.items())


def types_of(hint: object) -> tuple[tuple[object, ...], bool]:
    """Splits a type: (the types without None, whether None is one)."""
    if get_origin(hint) in (UnionType, Union):
        kinds = tuple(kind for kind in get_args(hint) if kind is not NoneType)
        return kinds, len(kinds) < len(get_args(hint))
    return (hint,), False


def element_of(kind: object) -> object:
    """The type of a tuple's elements; the type itself where it is no tuple."""
    return get_args(kind)[0] if get_origin(kind) is tuple and get_args(kind)[1:] == (...,) else kind


def message_of(shape: Shape) -> Message | None:
    """The message of a class, which alone has only fields of Kafka's names; None for other shapes."""
    if isinstance(shape, type):
        return message(shape)
    return shape if isinstance(shape, Message) else None


def row_of(kind: type) -> Shape | None:
    """The row of ``Rows`` that a class is; None: its values are no rows."""
    if kind is TopicPartition:
        return RowKey.TP
    return kind if any(member.hint is TopicPartition for member in members_of(kind)) else None


@cache
def kio_fields(kind: type) -> Mapping[str, Field[object]]:
    return {field.name: field for field in fields(kind)}


class KioField(NamedTuple):
    """A field of kio's, and the expression that reads it."""

    expression: str
    field: Field[object]

    @property
    def kind(self) -> object:
        return types_of(self.field.type)[0][0]

    @property
    def nullable(self) -> bool:
        return types_of(self.field.type)[1]

    @property
    def entity(self) -> type | None:
        """The class of the structure, or of those in the array; None: it has plain values."""
        element = element_of(self.kind)
        return cast(type, element) if is_dataclass(element) else None

    @property
    def is_array(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def is_duration(self) -> bool:
        return str(self.field.metadata.get("kafka_type")).startswith("timedelta")


def rows_of(topic: type) -> KioField | None:
    """The field of a topic in which its partitions are; None: the class has no array."""
    result = (KioField(f".{name}", field) for name, field in kio_fields(topic).items())
    return next((field for field in result if field.is_array), None)


def find_field(kind: type, path: str, variable: str = "") -> KioField | None:
    """The field at the end of a path; None: the class has no such field."""
    result = None
    for name in path.split("."):
        if result is not None:
            if result.entity is None:
                return None
            kind, variable = result.entity, result.expression + ("[0]" if result.is_array else "")
        if (field := kio_fields(kind).get(name)) is None:
            return None
        result = KioField(f"{variable}.{name}", field)
    return result


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope in which names are looked up: an entity, then the one around it. ``kind`` None: it is a
    plain value."""

    kind: type | None
    variable: str
    outer: Scope | None = None

    def find(self, *paths: str) -> KioField | None:
        for path in paths:
            if self.kind is not None and (result := find_field(self.kind, path, self.variable)) is not None:
                return result
            if self.outer is not None and (result := self.outer.find(path)) is not None:
                return result
        return None
