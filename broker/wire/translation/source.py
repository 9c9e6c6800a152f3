"""The Python expression of a translation, under construction.

For each message and version one expression is written out and compiled, as ``dataclasses`` does it: that is
as fast as a translation by hand, and what a version has no field for costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING
from typing import NamedTuple, cast, get_args, get_origin

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.schema import Entity
from wrackline.broker.wire.translation.classes import (
    KioField,
    element_of,
    members_of,
    message_of,
    row_of,
    rows_of,
    types_of,
)
from wrackline.broker.wire.translation.declarations import (
    KAFKA_NAMES,
    Array,
    FieldPath,
    Items,
    Message,
    Place,
    PlaceOrPath,
    RowKey,
    Rows,
    Shape,
    Struct,
)
from wrackline.broker.wire.translation.values import EMPTY

TOPIC_NAMES = ("name", "topic", "topic_name")
INDEXES = ("partition_index", "partition", "index", "partition_id")
"""Kafka's names of a topic's name, and of a partition's number."""


class DeclarationError(TypeError):
    """A declaration that does not fit kio's classes, or ours."""


class Part(NamedTuple):
    """One part of a value of ours: how it is taken (``.name``, ``[0]``), where it is in kio's entity."""

    suffix: str
    place: Place
    hint: object
    default: object


class Source:
    """One expression for entities of one class, and the objects that it names. ``newest``: every field of
    ours must have one of the entity's."""

    def __init__(self, kind: Entity, *, newest: bool = False) -> None:
        self._root = kind
        self._newest = newest
        self._objects: dict[str, object] = {}
        self._variables = 0
        self.version: int = kind.__version__

    def compile(self, parameters: str, expression: str) -> object:
        return eval(f"lambda {parameters}: {expression}", self._objects)

    def failure(self, what: str) -> DeclarationError:
        return DeclarationError(f"{self._root.__name__} v{self.version}: {what}")

    def name(self, value: object) -> str:
        """The name of an object in the expression, or the literal of a plain value."""
        if value is None or type(value) in (bool, int, str, bytes) or value == ():
            return repr(value)
        for name, known in self._objects.items():
            if known is value:
                return name
        word = getattr(value, "__name__", "value")
        name = f"{word if word.isidentifier() else 'value'}_{len(self._objects)}"
        self._objects[name] = value
        return name

    def variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def parts(self, shape: Shape, hint: object) -> Iterator[Part]:
        """Lists the parts of a value of this shape and type. Raises DeclarationError."""
        if (of := message_of(shape)) is not None:
            members = members_of(of.form)
            if strangers := of.places.keys() - {member.name for member in members}:
                raise self.failure(f"{of.form.__name__} has no field {', '.join(sorted(strangers))}")
            for name, kind, default in members:
                yield Part(f".{name}", _place(of, name, kind), kind, default)
        elif isinstance(shape, Items):
            kinds = get_args(hint) or (object,) * len(shape.places)
            for number, (place, kind) in enumerate(zip(shape.places, kinds, strict=True)):
                yield Part(f"[{number}]", _at(place), kind, MISSING)
        else:
            yield Part("", _at(cast(PlaceOrPath, shape)), hint, MISSING)

    def require(self, shape: Shape, part: Part) -> None:
        """Called for a part that this version has no field for. Raises DeclarationError."""
        of = message_of(shape)
        if self._newest and of is not None and part.suffix[1:] not in of.missing:
            raise self.failure(f"there is no field for {of.form.__name__}{part.suffix}")

    def structure(self, field: KioField, place: Place, hint: object) -> Place:
        """The place of a field without conversions: an array or a structure by the class of ours in it."""
        if field.entity is None or not isinstance(place, FieldPath):
            return place
        kind = cast(type, element_of(types_of(hint)[0][0]))
        if not field.is_array:
            return Struct("", kind)
        row = row_of(kind)
        return Array("", kind) if row is None else Rows("", row)

    def topic(self, field: KioField) -> tuple[type, KioField]:
        """(the class of a topic in an array of topics, its field with the partitions)"""
        if field.entity is None or (rows := rows_of(field.entity)) is None:
            raise self.failure(f"{field.field.name} has no partitions in it")
        return field.entity, rows

    def non_null(self, value: str, field: KioField, hint: object) -> str:
        """``value``, or what stands for null on the side that does not know it."""
        for kind in types_of(hint)[0]:
            if (plain := get_origin(kind) or kind) in EMPTY:
                return f"({value} or {self.name(EMPTY[cast(type, plain)])})"
        raise self.failure(f"{field.field.name} may be null on one side alone")


def _at(place: PlaceOrPath) -> Place:
    return FieldPath(place) if isinstance(place, str) else place


def _place(of: Message, name: str, hint: object) -> Place:
    place = _at(of.places.get(name, RowKey.TP if hint is TopicPartition else FieldPath()))
    if not isinstance(place, FieldPath):
        return place
    paths = place.paths or (name, KAFKA_NAMES.get(name, name), name.removesuffix("_ms"))
    if of.prefix:
        paths = (*(f"{of.prefix}.{path}" for path in paths), *paths)
    return FieldPath(*paths, absent=place.absent, read=place.read, write=place.write)
