"""The translation from messages of the core to kio's entities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING
from functools import cache
from operator import attrgetter, itemgetter
from typing import cast
from uuid import UUID

from wrackline.broker.wire.schema import NO_THROTTLE, Entity
from wrackline.broker.wire.translation.classes import (
    KioField,
    Scope,
    element_of,
    find_field,
    kio_fields,
    message_of,
    types_of,
)
from wrackline.broker.wire.translation.declarations import (
    Array,
    FieldPath,
    Grouping,
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
from wrackline.broker.wire.translation.values import (
    GROUPINGS,
    as_timedelta,
    group_adjacent,
    shortened,
    uuid_or_none,
)

Writer = Callable[[object, object], Entity]
"""(message, the request) -> entity"""

_Tree = dict[str, "str | _Tree"]
"""Field of an entity -> expression, or the tree of the structure in it."""


def check_writer(of: Message, kind: type) -> None:
    """Checks that ``kind``, of the newest version, takes what is to be written. Raises DeclarationError."""
    _Writing(kind, newest=True).entity(of, of.form, kind, "m")


@cache
def writer(of: Message, kind: type) -> Writer:
    """Compiles the writer of entities of ``kind``."""
    source = _Writing(kind)
    write = cast(Writer, source.compile("m, r", source.entity(of, of.form, kind, "m")))
    if (to_form := of.to_form) is None:
        return write
    return lambda message, request: write(to_form(message, request, source.version), request)


class _Writing(Source):
    """The expression of an entity by that of a message."""

    def entity(self, shape: Shape, hint: object, kind: type, value: str) -> str:
        tree = self._constants(shape, kind)
        for part in self._assign(shape, hint, kind, value, tree):
            self.require(shape, part)
        return self._built(kind, tree)

    def _built(self, kind: type, tree: _Tree) -> str:
        arguments = []
        for name, field in kio_fields(kind).items():
            written = tree.get(name)
            if isinstance(written, dict):
                inner = KioField("", field)
                assert inner.entity is not None
                written = self._built(inner.entity, written)
                if inner.is_array:
                    written = f"({written},)"
            if written is None and name == "throttle_time":
                written = self.name(NO_THROTTLE)
            if written is not None:
                arguments.append(f"{name}={written}")
            elif field.default is MISSING:
                raise self.failure(f"nothing is written to {kind.__name__}.{name}")
        return f"{self.name(kind)}({', '.join(arguments)})"

    def _constants(self, shape: Shape, kind: type) -> _Tree:
        tree: _Tree = {}
        of = message_of(shape)
        for path, value in of.constants.items() if of is not None else ():
            if find_field(kind, path) is not None:
                _put(tree, path, self.name(value))
            elif self._newest:
                raise self.failure(f"{kind.__name__} has no field {path}")
        return tree

    def _assign(self, shape: Shape, hint: object, kind: type, value: str, tree: _Tree) -> list[Part]:
        """Puts the parts of a value into the tree of an entity; returns those that it has no field for."""
        return [
            part
            for part in self.parts(shape, hint)
            if not self._put_at(part.place, part.hint, kind, f"{value}{part.suffix}", tree)
        ]

    def _put_at(self, place: Place, hint: object, kind: type, value: str, tree: _Tree) -> bool:
        """False: the entity has no such field."""
        match place:
            case SinceVersion():
                return True
            case Inline():
                return not self._assign(place.shape, hint, kind, value, tree)
            case RowKey():
                field = Scope(kind, "").find(*INDEXES)
            case FieldPath():
                field = Scope(kind, "").find(*place.paths)
            case _:
                field = find_field(kind, place.path)
        if field is None:
            return False
        _put(tree, field.expression.replace("[0]", "")[1:], self._field(field, place, hint, value))
        return True

    def _field(self, field: KioField, place: Place, hint: object, value: str) -> str:
        if isinstance(place, FieldPath) and place.write is not None:
            return f"{self.name(place.write)}({value})"
        match self.structure(field, place, hint):
            case RowKey() as key:
                return value if key is RowKey.INDEX else f"{value}.partition"
            case Struct() as struct:
                return self._struct(field, struct.shape, hint, value)
            case Array() as array if array.write is not None:
                return self._array(field, array.shape, object, f"{self.name(array.write)}({value})")
            case Array() as array:
                return self._array(field, array.shape, hint, value)
            case Pairs() as pairs:
                return self._array(field, Items(pairs.key, pairs.value), object, f"{value}.items()")
            case Rows() as rows:
                return self._topics(field, rows, hint, value)
        if field.kind is UUID:
            return f"{self.name(uuid_or_none)}({value})"
        if field.is_duration:
            return f"{self.name(as_timedelta)}({value})"
        if field.field.name == "error_message":
            value = f"{self.name(shortened)}({value})"
        return self.non_null(value, field, hint) if types_of(hint)[1] and not field.nullable else value

    def _struct(self, field: KioField, shape: Shape, hint: object, value: str) -> str:
        assert field.entity is not None
        (kind, *_), nullable = types_of(hint)
        written = self.entity(shape, kind, field.entity, value)
        if not nullable:
            return written
        none = None if field.nullable else field.field.default
        if none is MISSING:
            raise self.failure(f"{field.field.name} has no default that could stand for None")
        return f"({self.name(none)} if {value} is None else {written})"

    def _array(self, field: KioField, shape: Shape, hint: object, value: str) -> str:
        assert field.entity is not None
        (kind, *_), nullable = types_of(hint)
        variable = self.variable()
        each = self.entity(shape, element_of(kind), field.entity, variable)
        written = f"tuple([{each} for {variable} in {value}])"
        return f"(None if {value} is None else {written})" if nullable else written

    def _topics(self, field: KioField, place: Rows, hint: object, value: str) -> str:
        kind, rows = self.topic(field)
        (array, *_), nullable = types_of(hint)
        topic, group, item = self.variable(), self.variable(), self.variable()
        outer: _Tree = {}
        elsewhere = self._assign(place.shape, element_of(array), kind, f"{group}[0]", outer)
        if (name := Scope(kind, "").find(*TOPIC_NAMES)) is not None:
            outer[name.field.name] = topic
        if rows.entity is None:
            written = _number(place.shape, item)
        else:
            inner = self._constants(place.shape, rows.entity)
            for part in self._assign(place.shape, element_of(array), rows.entity, item, inner):
                if part.suffix in [other.suffix for other in elsewhere]:
                    self.require(place.shape, part)
            written = self._built(rows.entity, inner)
        outer[rows.field.name] = f"tuple([{written} for {item} in {group}])"
        groups = self._groups(place, value, by_id=name is None)
        written = f"tuple([{self._built(kind, outer)} for {topic}, {group} in {groups}])"
        return f"(None if {value} is None else {written})" if nullable else written

    def _groups(self, place: Rows, value: str, *, by_id: bool) -> str:
        if by_id:
            key: object = itemgetter(0) if isinstance(place.shape, Items) else attrgetter("topic_id")
        elif place.shape is RowKey.TP:
            key = attrgetter("topic")
        elif place.grouping is Grouping.ADJACENT:
            return f"{self.name(group_adjacent)}({value})"
        else:
            key = attrgetter("tp.topic")
        return f"{self.name(GROUPINGS[place.grouping])}({value}, {self.name(key)})"


def _number(shape: Shape, row: str) -> str:
    """The number of a partition, where that is all of a row in kio's entity."""
    if shape is RowKey.TP:
        return f"{row}.partition"
    return f"{row}[1]" if isinstance(shape, Items) else f"{row}.tp.partition"


def _put(tree: _Tree, path: str, written: str) -> None:
    *outer, name = path.split(".")
    for part in outer:
        inner = tree.setdefault(part, {})
        assert isinstance(inner, dict)
        tree = inner
    tree[name] = written
