"""From a declaration (`wrackline.broker.wire.declarations`) to functions that translate between messages of
the core and kio's entities.

For each message and version one Python expression is written out and compiled, as ``dataclasses`` does it:
that is as fast as a translation by hand, and what a version has no field for costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from itertools import groupby
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import NamedTuple, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from wrackline.broker.model.types import TopicPartition
from wrackline.broker.wire.declarations import (
    KAFKA_NAMES,
    At,
    Each,
    Grouped,
    Grouping,
    Inline,
    Located,
    Location,
    Message,
    One,
    Pairs,
    Row,
    Shape,
    Since,
    message,
)
from wrackline.broker.wire.schema import NO_THROTTLE, NO_UUID, Entity

_TOPIC_NAMES = ("name", "topic", "topic_name")
_INDEXES = ("partition_index", "partition", "index", "partition_id")
_MESSAGE_LENGTH = 1_000
"""Characters. It may quote a request, whose strings may be as long as strings can be, and must be one
itself."""

Reader = Callable[[Entity, object], object]
"""(entity; the node's names of topics, or of a response the request) -> message"""
Writer = Callable[[object, object], Entity]
"""(message, the request) -> entity"""


class DeclarationError(TypeError):
    """A declaration that does not fit kio's classes, or ours."""


def check_reader(of: Message, kind: type) -> None:
    """Whether ``kind``, of the newest version, has what is to be read. Raises DeclarationError."""
    _Source(kind, newest=True).read(of, of.form, _Scope(kind, "e"))


def check_writer(of: Message, kind: type) -> None:
    """Whether ``kind``, of the newest version, takes what is to be written. Raises DeclarationError."""
    _Source(kind, newest=True).write(of, of.form, kind, "m")


@cache
def reader(of: Message, kind: type) -> Reader:
    """From entities of ``kind``."""
    source = _Source(kind)
    made = cast(Reader, source.compiled("e, n", source.read(of, of.form, _Scope(kind, "e"))))
    first, finish, names = of.first, of.finish, of.names
    if first is None and finish is None and names is None:
        return made

    def read(entity: Entity, about: object) -> object:
        if first is not None and (whole := first(entity)) is not None:
            return whole
        part = made(entity, about if names is None else names(about))
        return part if finish is None else finish(part)

    return read


@cache
def writer(of: Message, kind: type) -> Writer:
    """To entities of ``kind``."""
    source = _Source(kind)
    write = cast(Writer, source.compiled("m, r", source.write(of, of.form, kind, "m")))
    if (prepare := of.prepare) is None:
        return write
    return lambda message, request: write(prepare(message, request, source.version), request)


# --- values -------------------------------------------------------------------------------------------------


def milliseconds(value: timedelta) -> int:
    return value.days * 86_400_000 + value.seconds * 1_000 + value.microseconds // 1_000


def as_timedelta(value_ms: int) -> timedelta:
    return timedelta(milliseconds=value_ms)


def uuid_or_none(value: UUID | None) -> UUID | None:
    """kio's word for the zero id is None."""
    return None if value is None or value == NO_UUID else value


def shortened(text: str | None) -> str | None:
    """An error's message, of a length that every version has room for."""
    return f"{text[:_MESSAGE_LENGTH]}..." if text is not None and len(text) > _MESSAGE_LENGTH else text


class _HasTp(Protocol):
    @property
    def tp(self) -> TopicPartition: ...


T = TypeVar("T")
WithTp = TypeVar("WithTp", bound=_HasTp)


def by_topic(items: Iterable[WithTp]) -> list[tuple[str, list[WithTp]]]:
    """Neighbours of one topic together, in the order given (order can matter: KIP-74)."""
    return [(topic, list(group)) for topic, group in groupby(items, key=lambda item: item.tp.topic)]


def together(items: Iterable[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    """All of one topic together."""
    topics: dict[str, list[T]] = {}
    for item in items:
        topics.setdefault(key(item), []).append(item)
    return list(topics.items())


def _apart(items: Iterable[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    return [(key(item), [item]) for item in items]


def _neighbours(items: Iterable[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
    return [(topic, list(group)) for topic, group in groupby(items, key=key)]


_GROUPINGS: Mapping[Grouping, Callable[..., object]] = {
    Grouping.NEIGHBOURS: _neighbours,
    Grouping.TOGETHER: together,
    Grouping.APART: _apart,
}
_EMPTY: Mapping[type, object] = {str: "", bytes: b"", tuple: (), UUID: NO_UUID}
"""What null becomes where only one side knows it."""


# --- classes of ours and of kio -----------------------------------------------------------------------------


class _Member(NamedTuple):
    """A field of a class of ours."""

    name: str
    hint: object
    default: object


@cache
def _members(form: type) -> tuple[_Member, ...]:
    hints = get_type_hints(form)
    if is_dataclass(form):
        defaults = {field.name: field.default for field in fields(form)}
    else:
        defaults = {name: form._field_defaults.get(name, MISSING) for name in form._fields}  # type: ignore[attr-defined]
    return tuple(_Member(name, hints[name], default) for name, default in defaults.items())


def _kinds(hint: object) -> tuple[tuple[object, ...], bool]:
    """(the types without None, whether None is one)"""
    if get_origin(hint) in (UnionType, Union):
        kinds = tuple(kind for kind in get_args(hint) if kind is not NoneType)
        return kinds, len(kinds) < len(get_args(hint))
    return (hint,), False


def _element(kind: object) -> object:
    """The type of a tuple's elements; the type itself where it is no tuple."""
    return get_args(kind)[0] if get_origin(kind) is tuple and get_args(kind)[1:] == (...,) else kind


def _message(shape: Shape) -> Message | None:
    """A class alone has only fields of Kafka's names. None: the shape is of another kind."""
    if isinstance(shape, type):
        return message(shape)
    return shape if isinstance(shape, Message) else None


def _row(kind: type) -> Shape | None:
    """What a row of ``Grouped`` is; None: the class is not one of rows."""
    if kind is TopicPartition:
        return Location.TP
    return kind if any(member.hint is TopicPartition for member in _members(kind)) else None


@cache
def _kio_fields(kind: type) -> Mapping[str, Field[object]]:
    return {field.name: field for field in fields(kind)}


class _Found(NamedTuple):
    """A field of kio's."""

    expression: str
    field: Field[object]

    @property
    def kind(self) -> object:
        return _kinds(self.field.type)[0][0]

    @property
    def nullable(self) -> bool:
        return _kinds(self.field.type)[1]

    @property
    def element(self) -> type | None:
        """Of an entity, or of an array of them: their class."""
        element = _element(self.kind)
        return cast(type, element) if is_dataclass(element) else None

    @property
    def is_array(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def is_duration(self) -> bool:
        return str(self.field.metadata.get("kafka_type")).startswith("timedelta")


def _walk(kind: type, path: str, variable: str = "") -> _Found | None:
    found = None
    for name in path.split("."):
        if found is not None:
            if found.element is None:
                return None
            kind, variable = found.element, found.expression + ("[0]" if found.is_array else "")
        if (field := _kio_fields(kind).get(name)) is None:
            return None
        found = _Found(f"{variable}.{name}", field)
    return found


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where names are looked up: an entity, then the one around it. ``kind`` None: it is a plain value."""

    kind: type | None
    variable: str
    outer: _Scope | None = None

    def find(self, *paths: str) -> _Found | None:
        for path in paths:
            if self.kind is not None and (found := _walk(self.kind, path, self.variable)) is not None:
                return found
            if self.outer is not None and (found := self.outer.find(path)) is not None:
                return found
        return None


# --- expressions --------------------------------------------------------------------------------------------

_Tree = dict[str, "str | _Tree"]
"""Field of an entity -> expression, or the tree of the structure in it."""


class _Source:
    """One function under construction: its expression, and the objects that are named in it."""

    def __init__(self, kind: type, *, newest: bool = False) -> None:
        self._root = kind
        self._newest = newest
        self._objects: dict[str, object] = {}
        self._variables = 0
        self.version: int = kind.__version__  # type: ignore[attr-defined]

    def compiled(self, parameters: str, expression: str) -> object:
        return eval(f"lambda {parameters}: {expression}", self._objects)

    def _fail(self, what: str) -> DeclarationError:
        return DeclarationError(f"{self._root.__name__} v{self.version}: {what}")

    def _name(self, value: object) -> str:
        if value is None or type(value) in (bool, int, str, bytes) or value == ():
            return repr(value)
        for name, known in self._objects.items():
            if known is value:
                return name
        word = getattr(value, "__name__", "value")
        name = f"{word if word.isidentifier() else 'value'}_{len(self._objects)}"
        self._objects[name] = value
        return name

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _places(self, shape: Shape, hint: object) -> list[tuple[str, Located, object, object]]:
        """(as an attribute or item, place, type, default) of each part of a value."""
        if (of := _message(shape)) is not None:
            members = _members(of.form)
            if strangers := of.places.keys() - {member.name for member in members}:
                raise self._fail(f"{of.form.__name__} has no field {', '.join(sorted(strangers))}")
            return [
                (f".{name}", self._place(of, name, kind), kind, default) for name, kind, default in members
            ]
        match shape:
            case Row():
                kinds = get_args(hint) or (object,) * len(shape.places)
                return [
                    (f"[{number}]", At(place) if isinstance(place, str) else place, kind, MISSING)
                    for number, (place, kind) in enumerate(zip(shape.places, kinds, strict=True))
                ]
            case Location():
                return [("", shape, hint, MISSING)]
            case _:
                return [("", At(str(shape)), hint, MISSING)]

    def _place(self, of: Message, name: str, hint: object) -> Located:
        place = of.places.get(name, Location.TP if hint is TopicPartition else At())
        if isinstance(place, str):
            place = At(place)
        if not isinstance(place, At):
            return place
        paths = place.paths or (name, KAFKA_NAMES.get(name, name), name.removesuffix("_ms"))
        if of.within:
            paths = (*(f"{of.within}.{path}" for path in paths), *paths)
        return At(*paths, absent=place.absent, read=place.read, write=place.write)

    def _lacks(self, shape: Shape, part: str) -> None:
        """Called for a part that has no field in this version."""
        of = _message(shape)
        if self._newest and of is not None and part[1:] not in of.lacking:
            raise self._fail(f"there is no field for {of.form.__name__}{part}")

    # --- reading ---------------------------------------------------------------------------------------

    def read(self, shape: Shape, hint: object, scope: _Scope) -> str:
        parts = []
        for part, place, kind, default in self._places(shape, hint):
            read = self._read_at(place, kind, scope)
            if read is None:
                self._lacks(shape, part)
                value = place.absent if isinstance(place, At) and place.absent is not MISSING else default
                if value is MISSING:
                    raise self._fail(f"there is no field for {part[1:]}, which has no default")
                read = self._name(value)
            parts.append(read)
        if (of := _message(shape)) is not None:
            return f"{self._name(of.form)}({', '.join(parts)})"
        return f"({', '.join(parts)},)" if isinstance(shape, Row) else parts[0]

    def _read_at(self, place: Located, hint: object, scope: _Scope) -> str | None:
        """None: this version has no such field."""
        match place:
            case Location():
                index = self._index(scope)
                return index if place is Location.INDEX else self._read_tp(index, scope)
            case Since():
                return repr(self.version >= place.version)
            case Inline():
                return self.read(place.shape, hint, scope)
            case At():
                found = scope.find(*place.paths)
                return None if found is None else self._read_value(found, place, hint)
        if (found := scope.find(place.path)) is None:
            return None
        match place:
            case One():
                return self._read_one(found, place, hint)
            case Each():
                return self._read_each(found, place, hint)
            case Pairs():
                return self._read_pairs(found, place)
            case Grouped():
                return self._read_rows(found, place.shape, hint)

    def _read_value(self, found: _Found, place: At, hint: object) -> str:
        read = found.expression
        kinds, nullable = _kinds(hint)
        if place.read is not None:
            return f"{self._name(place.read)}({read})"
        if found.element is not None:
            shape = cast(type, _element(kinds[0]))
            if not found.is_array:
                return self._read_one(found, One("", shape), hint)
            if (row := _row(shape)) is not None:
                return self._read_rows(found, row, hint)
            return self._read_each(found, Each("", shape), hint)
        if found.is_duration:
            return f"{self._name(milliseconds)}({read})"
        known = not nullable and hint is not object
        return self._or_empty(read, found.field.name, kinds) if known and found.nullable else read

    def _or_empty(self, value: str, name: str, kinds: tuple[object, ...]) -> str:
        for kind in kinds:
            if (get_origin(kind) or kind) in _EMPTY:
                return f"({value} or {self._name(_EMPTY[cast(type, get_origin(kind) or kind)])})"
        raise self._fail(f"{name} may be null on one side alone")

    def _read_one(self, found: _Found, place: One, hint: object) -> str:
        assert found.element is not None
        (kind, *_), _ = _kinds(hint)
        value = found.expression
        read = self.read(place.shape, kind, _Scope(found.element, value))
        if place.is_none is not None:
            return f"(None if {self._name(place.is_none)}({value}) else {read})"
        return f"(None if {value} is None else {read})" if found.nullable else read

    def _read_each(self, found: _Found, place: Each, hint: object) -> str:
        assert found.element is not None
        variable = self._variable()
        element = object if place.read is not None else _element(_kinds(hint)[0][0])
        each = self.read(place.shape, element, _Scope(found.element, variable))
        read = self._array(found, each, f"for {variable} in {found.expression}", hint)
        return read if place.read is None else f"{self._name(place.read)}({read})"

    def _array(self, found: _Found, each: str, loops: str, hint: object) -> str:
        array = f"tuple([{each} {loops}])"
        if not found.nullable:
            return array
        empty = None if _kinds(hint)[1] else ()
        return f"({empty} if {found.expression} is None else {array})"

    def _read_pairs(self, found: _Found, place: Pairs) -> str:
        assert found.element is not None
        key, value = self._variable(), self._variable()
        scope = _Scope(found.element, self._variable())
        pair = self.read(Row(place.key, place.value), None, scope)
        return (
            f"{{{key}: {value} for {scope.variable} in {found.expression}"
            f" for {key}, {value} in ({pair},) if {value} is not None}}"
        )

    def _read_rows(self, found: _Found, shape: Shape, hint: object) -> str:
        topic, rows, row = self._topic(found)
        outer = _Scope(topic, self._variable())
        inner = _Scope(row, self._variable(), outer)
        each = self.read(shape, _element(_kinds(hint)[0][0]), inner)
        topics = f"for {outer.variable} in {found.expression}"
        return self._array(found, each, f"{topics} for {inner.variable} in {outer.variable}.{rows}", hint)

    def _topic(self, found: _Found) -> tuple[type, str, type | None]:
        """(class of a topic, its field with the rows, class of a row or None where that is a plain value)"""
        assert found.element is not None
        for name in _kio_fields(found.element):
            rows = _walk(found.element, name)
            if rows is not None and rows.is_array:
                return found.element, name, rows.element
        raise self._fail(f"{found.element.__name__} has no rows")

    def _index(self, scope: _Scope) -> str:
        if scope.kind is None:
            return scope.variable
        found = _Scope(scope.kind, scope.variable).find(*_INDEXES)
        if found is None:
            raise self._fail(f"{scope.kind.__name__} has no number of a partition")
        return found.expression

    def _read_tp(self, index: str, scope: _Scope) -> str:
        if scope.outer is None:
            raise self._fail("a row of no topic has the number of a partition")
        if (found := scope.outer.find(*_TOPIC_NAMES)) is not None:
            name = f"{found.expression} or ''" if found.nullable else found.expression
        else:
            name = f"n({scope.outer.variable}.topic_id) or ''"
        return f"{self._name(TopicPartition)}({name}, {index})"

    # --- writing ---------------------------------------------------------------------------------------

    def write(self, shape: Shape, hint: object, kind: type, value: str) -> str:
        tree = self._fixed(shape, kind)
        for part in self._assign(shape, hint, kind, value, tree):
            self._lacks(shape, part)
        return self._entity(kind, tree)

    def _fixed(self, shape: Shape, kind: type) -> _Tree:
        tree: _Tree = {}
        of = _message(shape)
        for path, value in of.fixed.items() if of is not None else ():
            if _walk(kind, path) is not None:
                _put(tree, path, self._name(value))
            elif self._newest:
                raise self._fail(f"{kind.__name__} has no field {path}")
        return tree

    def _entity(self, kind: type, tree: _Tree) -> str:
        arguments = []
        for name, field in _kio_fields(kind).items():
            written = tree.get(name)
            if isinstance(written, dict):
                found = _Found("", field)
                assert found.element is not None
                written = self._entity(found.element, written)
                if found.is_array:
                    written = f"({written},)"
            if written is None and name == "throttle_time":
                written = self._name(NO_THROTTLE)
            if written is not None:
                arguments.append(f"{name}={written}")
            elif field.default is MISSING:
                raise self._fail(f"nothing is written to {kind.__name__}.{name}")
        return f"{self._name(kind)}({', '.join(arguments)})"

    def _assign(self, shape: Shape, hint: object, kind: type, value: str, tree: _Tree) -> list[str]:
        """Puts the parts of a value into the tree of an entity; returns those that it has no field for."""
        lacking = []
        for part, place, part_hint, _ in self._places(shape, hint):
            if not self._assign_at(place, part_hint, kind, f"{value}{part}", tree):
                lacking.append(part)
        return lacking

    def _assign_at(self, place: Located, hint: object, kind: type, value: str, tree: _Tree) -> bool:
        """False: the entity has no such field."""
        match place:
            case Since():
                return True
            case Location():
                found = _Scope(kind, "").find(*_INDEXES)
                written = value if place is Location.INDEX else f"{value}.partition"
            case Inline():
                return not self._assign(place.shape, hint, kind, value, tree)
            case At():
                found = _Scope(kind, "").find(*place.paths)
                written = "" if found is None else self._written_value(found, place, hint, value)
            case _:
                found = _walk(kind, place.path)
                written = "" if found is None else self._written(found, place, hint, value)
        if found is None:
            return False
        _put(tree, found.expression.replace("[0]", "")[1:], written)
        return True

    def _written(self, found: _Found, place: One | Each | Pairs | Grouped, hint: object, value: str) -> str:
        match place:
            case One():
                return self._written_one(found, place.shape, hint, value)
            case Each():
                if place.write is not None:
                    hint, value = object, f"{self._name(place.write)}({value})"
                return self._written_each(found, place.shape, hint, value)
            case Pairs():
                return self._written_each(found, Row(place.key, place.value), None, f"{value}.items()")
            case Grouped():
                return self._written_topics(found, place, hint, value)

    def _written_value(self, found: _Found, place: At, hint: object, value: str) -> str:
        kinds, nullable = _kinds(hint)
        if place.write is not None:
            return f"{self._name(place.write)}({value})"
        if found.element is not None:
            shape = cast(type, _element(kinds[0]))
            if not found.is_array:
                return self._written_one(found, shape, hint, value)
            if (row := _row(shape)) is not None:
                return self._written_topics(found, Grouped("", row), hint, value)
            return self._written_each(found, shape, hint, value)
        if found.kind is UUID:
            return f"{self._name(uuid_or_none)}({value})"
        if found.field.name == "error_message":
            value = f"{self._name(shortened)}({value})"
        elif found.is_duration:
            return f"{self._name(as_timedelta)}({value})"
        return self._or_empty(value, found.field.name, kinds) if nullable and not found.nullable else value

    def _written_one(self, found: _Found, shape: Shape, hint: object, value: str) -> str:
        assert found.element is not None
        (kind, *_), nullable = _kinds(hint)
        written = self.write(shape, kind, found.element, value)
        if not nullable:
            return written
        none = None if found.nullable else found.field.default
        if none is MISSING:
            raise self._fail(f"{found.field.name} has no default that could stand for None")
        return f"({self._name(none)} if {value} is None else {written})"

    def _written_each(self, found: _Found, shape: Shape, hint: object, value: str) -> str:
        assert found.element is not None
        (kind, *_), nullable = _kinds(hint)
        variable = self._variable()
        each = self.write(shape, _element(kind), found.element, variable)
        written = f"tuple([{each} for {variable} in {value}])"
        return f"(None if {value} is None else {written})" if nullable else written

    def _written_topics(self, found: _Found, place: Grouped, hint: object, value: str) -> str:
        kind, rows, row = self._topic(found)
        (array, *_), nullable = _kinds(hint)
        element = _element(array)
        topic, group, item = self._variable(), self._variable(), self._variable()
        outer: _Tree = {}
        lacking = self._assign(place.shape, element, kind, f"{group}[0]", outer)
        if (name := _Scope(kind, "").find(*_TOPIC_NAMES)) is not None:
            outer[name.field.name] = topic
        if row is None:
            written = self._row(place.shape, item)
        else:
            inner = self._fixed(place.shape, row)
            lacking = [
                part for part in self._assign(place.shape, element, row, item, inner) if part in lacking
            ]
            for part in lacking:
                self._lacks(place.shape, part)
            written = self._entity(row, inner)
        outer[rows] = f"tuple([{written} for {item} in {group}])"
        groups = self._groups(place, value, by_id=name is None)
        written = f"tuple([{self._entity(kind, outer)} for {topic}, {group} in {groups}])"
        return f"(None if {value} is None else {written})" if nullable else written

    def _row(self, shape: Shape, item: str) -> str:
        """The number of a partition where a row is nothing else."""
        if shape is Location.TP:
            return f"{item}.partition"
        return f"{item}[1]" if isinstance(shape, Row) else f"{item}.tp.partition"

    def _groups(self, place: Grouped, value: str, *, by_id: bool) -> str:
        of_row = place.shape is not Location.TP
        if of_row and not by_id and place.grouping is Grouping.NEIGHBOURS:
            return f"{self._name(by_topic)}({value})"
        key: object = attrgetter("tp.topic" if of_row else "topic")
        if by_id:
            key = itemgetter(0) if isinstance(place.shape, Row) else attrgetter("topic_id")
        group_by = _GROUPINGS[place.grouping]
        return f"{self._name(group_by)}({value}, {self._name(key)})"


def _put(tree: _Tree, path: str, written: str) -> None:
    *outer, name = path.split(".")
    for part in outer:
        inner = tree.setdefault(part, {})
        assert isinstance(inner, dict)
        tree = inner
    tree[name] = written
