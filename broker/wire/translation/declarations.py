"""The words in which a message is declared: where the fields of a class of ours lie in kio's entities.

A field goes where kio has the same name (or the one that ``KAFKA_NAMES`` gives it), and is converted by the
two types; a declaration only says what is different. The modules beside this one make functions of it, and
refuse one that does not fit kio's classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum, auto
from typing import NamedTuple, TypeVar
from uuid import UUID

KAFKA_NAMES: Mapping[str, str] = {
    "error": "error_code",
    "message": "error_message",
    "log_start": "log_start_offset",
    "leo": "log_end_offset",
}
"""Our name of a field -> Kafka's. Beside these, ``timeout_ms`` is a duration of theirs without the unit."""

TopicNames = Callable[[UUID], str | None]
"""The name of a topic kept here, by its id: requests of newer versions name topics by id alone."""


# --- where a field is ---------------------------------------------------------------------------------------


class FieldPath:
    """A field by its path in the entity (``current_leader.leader_id``). A path through an array is of its
    only element. Of several paths the first that the version has; without any, by name.

    ``absent``: the value where a version has no such field, if not the message's own default. ``read`` and
    ``write`` convert what is there.
    """

    def __init__(
        self,
        *paths: str,
        absent: object = MISSING,
        read: Callable[..., object] | None = None,
        write: Callable[..., object] | None = None,
    ) -> None:
        self.paths = paths
        self.absent = absent
        self.read = read
        self.write = write


class RowKey(Enum):
    """The key of a row of ``Rows``: what the row is about."""

    TP = auto()
    """(topic, partition)"""
    INDEX = auto()
    """The partition's number alone."""


class Grouping(Enum):
    """The grouping of rows into one topic."""

    ADJACENT = auto()
    """Those of one topic (by its id, where it has no name) beside each other: order can matter (KIP-74)."""
    BY_TOPIC = auto()
    """All of one topic, wherever they are."""
    SEPARATE = auto()
    """Each is a topic of its own."""


class SinceVersion(NamedTuple):
    """True from this version on; not sent."""

    version: int


class Array(NamedTuple):
    """A tuple as an array of structures. ``shape``: of one element. ``read`` makes our value of the tuple,
    ``write`` the tuple of it."""

    path: str
    shape: Shape
    read: Callable[..., object] | None = None
    write: Callable[..., object] | None = None


class Pairs(NamedTuple):
    """A mapping as an array of (key, value); one without a value is left out."""

    path: str
    key: str
    value: str


class Struct(NamedTuple):
    """A structure. ``is_none`` says of an entity that it stands for None, which is written as its default."""

    path: str
    shape: Shape
    is_none: Callable[..., bool] | None = None


class Inline(NamedTuple):
    """A structure of ours whose fields lie side by side with the others in kio's entity."""

    shape: Shape


class Rows(NamedTuple):
    """Rows, one for each partition, as an array of topics that have arrays of partitions. A tuple of a class
    that has a ``tp`` is one by itself."""

    path: str
    shape: Shape
    grouping: Grouping = Grouping.ADJACENT


# --- messages -----------------------------------------------------------------------------------------------


class Items:
    """The places of a plain tuple's items, in their order."""

    def __init__(self, *places: PlaceOrPath) -> None:
        self.places = places


@dataclass(frozen=True, eq=False)
class Message:
    """A class of ours and where its fields are: made by ``message``."""

    model: type
    """As the core has it."""
    form: type
    """What the fields are those of: the model, or a class that is nearer to the wire."""
    places: Mapping[str, PlaceOrPath]
    constants: Mapping[str, object]
    missing: frozenset[str]
    prefix: str
    check: Callable[..., object] | None
    from_form: Callable[..., object] | None
    to_form: Callable[..., object] | None
    topic_names: Callable[..., TopicNames] | None


Shape = Message | type | Items | RowKey | str
"""Of a value: a class by the names of its fields, a tuple, what a row is about, or its only field."""
Place = FieldPath | SinceVersion | Array | Pairs | Struct | Inline | Rows | RowKey
PlaceOrPath = Place | str
"""Of a field; a name or path alone is that of an ``At``."""


def message(
    model: type,
    /,
    *,
    form: type | None = None,
    constants: Mapping[str, object] | None = None,
    missing: tuple[str, ...] = (),
    prefix: str = "",
    check: Callable[..., object] | None = None,
    from_form: Callable[..., object] | None = None,
    to_form: Callable[..., object] | None = None,
    topic_names: Callable[..., TopicNames] | None = None,
    **places: PlaceOrPath,
) -> Message:
    """Declares a message, by the places of those fields whose names are not Kafka's.

    ``constants``: what is written to fields of kio's that have nothing to do with ours, by path.
    ``missing``: fields that the newest version has no place for.
    ``prefix``: the path of a structure in which paths are looked up first.
    ``check`` looks at the entity before all else; it may give the whole message (else None), or raise
    WireError.
    ``from_form`` makes the model of the form, ``to_form`` the form of (message, the request, version).
    ``topic_names`` makes what names topics by id: of the node's own names in a request, of the request in a
    response.
    """
    return Message(
        model,
        form or model,
        places,
        constants or {},
        frozenset(missing),
        prefix,
        check,
        from_form,
        to_form,
        topic_names,
    )


T = TypeVar("T")


def copy_fields(source: object, kind: type[T], **others: object) -> T:
    """Makes a value of a dataclass with the fields of another value that have the same names."""
    same = {field.name for field in fields(kind)} - others.keys()  # type: ignore[arg-type]
    return kind(**{name: getattr(source, name) for name in same}, **others)
