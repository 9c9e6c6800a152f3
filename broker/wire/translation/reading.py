"""The translation from kio's entities to messages of the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING
from functools import cache
from typing import cast

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.schema import Entity
from wrackline.broker.wire.translation.classes import KioField, Scope, element_of, message_of, types_of
from wrackline.broker.wire.translation.declarations import (
    Array,
    FieldPath,
    Inline,
    Items,
    Message,
    Pairs,
    Place,
    RowKey,
    Rows,
    Shape,
    SinceVersion,
    Struct,
)
from wrackline.broker.wire.translation.source import INDEXES, TOPIC_NAMES, Part, Source
from wrackline.broker.wire.translation.values import milliseconds

Reader = Callable[[Entity, object], object]
"""(entity; the node's names of topics, or of a response the request) -> message"""


def check_reader(of: Message, kind: type) -> None:
    """Checks that ``kind``, of the newest version, has what is to be read. Raises DeclarationError."""
    _Reading(kind, newest=True).value(of, of.form, Scope(kind, "e"))


@cache
def reader(of: Message, kind: type) -> Reader:
    """Compiles the reader of entities of ``kind``."""
    source = _Reading(kind)
    read_form = cast(Reader, source.compile("e, n", source.value(of, of.form, Scope(kind, "e"))))
    check, from_form, topic_names = of.check, of.from_form, of.topic_names
    if check is None and from_form is None and topic_names is None:
        return read_form

    def read(entity: Entity, about: object) -> object:
        if check is not None and (whole := check(entity)) is not None:
            return whole
        form = read_form(entity, about if topic_names is None else topic_names(about))
        return form if from_form is None else from_form(form)

    return read


class _Reading(Source):
    """The expression of a message by that of an entity. In it ``n`` names topics by id."""

    def value(self, shape: Shape, hint: object, scope: Scope) -> str:
        values = []
        for part in self.parts(shape, hint):
            value = self._at(part.place, part.hint, scope)
            if value is None:
                self.require(shape, part)
                value = self._absent(part)
            values.append(value)
        if (of := message_of(shape)) is not None:
            return f"{self.name(of.form)}({', '.join(values)})"
        return f"({', '.join(values)},)" if isinstance(shape, Items) else values[0]

    def _absent(self, part: Part) -> str:
        place, value = part.place, part.default
        if isinstance(place, FieldPath) and place.absent is not MISSING:
            value = place.absent
        if value is MISSING:
            raise self.failure(f"there is no field for {part.suffix[1:]}, which has no default")
        return self.name(value)

    def _at(self, place: Place, hint: object, scope: Scope) -> str | None:
        """Returns the expression for the value at a place; None: this version has no such field."""
        match place:
            case RowKey():
                index = self._index(scope)
                return index if place is RowKey.INDEX else self._tp(index, scope)
            case SinceVersion():
                return repr(self.version >= place.version)
            case Inline():
                return self.value(place.shape, hint, scope)
            case FieldPath():
                field = scope.find(*place.paths)
            case _:
                field = scope.find(place.path)
        return None if field is None else self._field(field, place, hint)

    def _field(self, field: KioField, place: Place, hint: object) -> str:
        if isinstance(place, FieldPath) and place.read is not None:
            return f"{self.name(place.read)}({field.expression})"
        match self.structure(field, place, hint):
            case Struct() as struct:
                return self._struct(field, struct, hint)
            case Array() as array:
                return self._array(field, array, hint)
            case Pairs() as pairs:
                return self._pairs(field, pairs)
            case Rows() as rows:
                return self._rows(field, rows.shape, hint)
        if field.is_duration:
            return f"{self.name(milliseconds)}({field.expression})"
        if not field.nullable or types_of(hint)[1] or hint is object:
            return field.expression
        return self.non_null(field.expression, field, hint)

    def _struct(self, field: KioField, place: Struct, hint: object) -> str:
        value = field.expression
        read = self.value(place.shape, types_of(hint)[0][0], Scope(field.entity, value))
        if place.is_none is not None:
            return f"(None if {self.name(place.is_none)}({value}) else {read})"
        return f"(None if {value} is None else {read})" if field.nullable else read

    def _array(self, field: KioField, place: Array, hint: object) -> str:
        variable = self.variable()
        element = object if place.read is not None else element_of(types_of(hint)[0][0])
        each = self.value(place.shape, element, Scope(field.entity, variable))
        read = _tuple(field, each, f"for {variable} in {field.expression}", hint)
        return read if place.read is None else f"{self.name(place.read)}({read})"

    def _pairs(self, field: KioField, place: Pairs) -> str:
        key, value = self.variable(), self.variable()
        scope = Scope(field.entity, self.variable())
        pair = self.value(Items(place.key, place.value), None, scope)
        return (
            f"{{{key}: {value} for {scope.variable} in {field.expression}"
            f" for {key}, {value} in ({pair},) if {value} is not None}}"
        )

    def _rows(self, field: KioField, shape: Shape, hint: object) -> str:
        topic, rows = self.topic(field)
        outer = Scope(topic, self.variable())
        inner = Scope(rows.entity, self.variable(), outer)
        each = self.value(shape, element_of(types_of(hint)[0][0]), inner)
        topics = f"for {outer.variable} in {field.expression}"
        partitions = f"for {inner.variable} in {outer.variable}{rows.expression}"
        return _tuple(field, each, f"{topics} {partitions}", hint)

    def _index(self, scope: Scope) -> str:
        if scope.kind is None:
            return scope.variable
        field = Scope(scope.kind, scope.variable).find(*INDEXES)
        if field is None:
            raise self.failure(f"{scope.kind.__name__} has no number of a partition")
        return field.expression

    def _tp(self, index: str, scope: Scope) -> str:
        if scope.outer is None:
            raise self.failure("a partition's number stands outside of its topic")
        if (field := scope.outer.find(*TOPIC_NAMES)) is not None:
            name = f"{field.expression} or ''" if field.nullable else field.expression
        else:
            name = f"n({scope.outer.variable}.topic_id) or ''"
        return f"{self.name(TopicPartition)}({name}, {index})"


def _tuple(field: KioField, each: str, loops: str, hint: object) -> str:
    array = f"tuple([{each} {loops}])"
    if not field.nullable:
        return array
    empty = None if types_of(hint)[1] else ()
    return f"({empty} if {field.expression} is None else {array})"
