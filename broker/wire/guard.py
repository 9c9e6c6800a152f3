"""A look at a message's bytes before the reader sees them: what it may not be given, and what it need not
know.

kio's reader is native code that makes room for as many elements as a message says it has, ends the process
when there is no such room, takes a null array for None whatever the schema says, and knows no tagged field
but its own. So every message, a request or an answer, is walked by its schema first: a count or length that
does not fit in the bytes left is refused, so is a null that the schema does not allow, and tagged fields that
the schema does not have are cut out (KIP-482: whoever does not know one skips it). Nothing is allocated for
what is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_THERE, _NULL = 1, 0xFF
"""Before a structure that may be null (KIP-893)."""
MAX_ELEMENTS = 200_000
"""Of all arrays of one message together. Each becomes an object of some hundred bytes, and a frame of 100 MiB
can hold 50 million; a cluster of Kafka's has 200,000 partitions at the very most."""

_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "float64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}


class WireError(ValueError):
    """Bytes that are not the message they should be; the connection they came on is of no more use."""


class _Walk:
    """One message's walk: how many elements it may still have, and what is to be written in other words."""

    __slots__ = ("cuts", "left", "shorter_by")

    def __init__(self) -> None:
        self.left = MAX_ELEMENTS
        self.shorter_by = 0
        self.cuts: list[tuple[int, int, bytes]] = []
        """(from, to, what stands there instead)"""

    def count(self, what: str, elements: int) -> None:
        self.left -= elements
        if self.left < 0:
            raise WireError(f"{what}: more than {MAX_ELEMENTS} elements in one message")

    def replace(self, begin: int, end: int, instead: bytes) -> None:
        self.cuts.append((begin, end, instead))
        self.shorter_by += end - begin - len(instead)


Step = Callable[[bytes, int, _Walk], int]
"""(message, where a field begins, the walk) -> where the field ends, which may be past the message."""


class Guard:
    """The guard of one kind of message."""

    def __init__(self, root: type) -> None:
        self._name = f"{root.__name__} v{getattr(root, '__version__', '?')}"
        self._walk = _entity(root)

    def __call__(self, message: bytes, at: int) -> tuple[bytes, int]:
        """(bytes, where the message begins in them) for the reader. Raises WireError.

        ``message`` is what came in, unless something has to be cut out of it. Bytes behind it are let pass,
        as Kafka does: librdkafka's Metadata request of version 12 has some.
        """
        walk = _Walk()
        try:
            end = self._walk(message, at, walk)
        except WireError as wrong:
            raise WireError(f"{self._name}: {wrong}") from wrong
        except (IndexError, struct.error) as wrong:
            raise WireError(f"{self._name}: it ends in the middle") from wrong
        if end > len(message):
            raise WireError(f"{self._name}: it ends {end - len(message)} bytes early")
        if not walk.cuts:
            return message, at
        pieces: list[bytes] = []
        for begin, behind, instead in sorted(walk.cuts):
            pieces += (message[at:begin], instead)
            at = behind
        return b"".join((*pieces, message[at:])), 0


def skip_tags(message: bytes, at: int) -> int:
    """Returns where the tagged fields that begin here end: those of a header, where nobody has any yet.
    Raises WireError."""
    try:
        return _walk_tags({}, message, at, _Walk())
    except IndexError as error:
        raise WireError("the header ends in the middle") from error


# --- from a schema to steps ---------------------------------------------------------------------------------


def _entity(kind: Any, *, nullable: bool = False) -> Step:
    flexible: bool = kind.__flexible__
    steps: list[Step] = []
    fixed = 0
    tagged = {}
    for field in fields(kind):
        size, step = _field(field, flexible=flexible)
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = step
        elif size:
            # Neighbours of a fixed size are one step: nearly all of a partition in a fetch is one.
            fixed += size
        else:
            steps += [_skip(fixed), step] if fixed else [step]
            fixed = 0
    if fixed:
        steps.append(_skip(fixed))
    if flexible:
        steps.append(_tags(tagged))

    def walk(message: bytes, at: int, state: _Walk) -> int:
        for step in steps:
            at = step(message, at, state)
        return at

    def walk_nullable(message: bytes, at: int, state: _Walk) -> int:
        marker = message[at]
        if marker not in (_THERE, _NULL):
            raise WireError(f"{kind.__name__} begins with {marker}, neither null nor there")
        return at + 1 if marker == _NULL else walk(message, at + 1, state)

    return walk_nullable if nullable else walk


def _field(field: Any, *, flexible: bool) -> tuple[int, Step]:
    """Returns (its size where that is always the same, else 0; how to walk over it) for a field."""
    name, kind, nullable = field.name, field.type, False
    if get_origin(kind) is UnionType:
        (kind,) = (item for item in get_args(kind) if item is not NoneType)
        nullable = True
    if get_origin(kind) is tuple:
        return 0, _array(name, field, get_args(kind)[0], flexible=flexible, nullable=nullable)
    if is_dataclass(kind):
        return 0, _entity(kind, nullable=nullable)
    return _primitive(name, field.metadata["kafka_type"], flexible=flexible, nullable=nullable)


def _primitive(name: str, kind: str, *, flexible: bool, nullable: bool) -> tuple[int, Step]:
    if kind in _SIZES:
        return _SIZES[kind], _skip(_SIZES[kind])
    length = _length_of(
        name, _uvarint if flexible else _int16 if kind == "string" else _int32, nullable=nullable
    )

    def walk(message: bytes, at: int, _: _Walk) -> int:
        size, at = length(message, at)
        return at + size

    return 0, walk


def _array(name: str, field: Any, kind: Any, *, flexible: bool, nullable: bool) -> Step:
    count_of = _length_of(name, _uvarint if flexible else _int32, nullable=nullable)
    if is_dataclass(kind):
        size, element = 0, _entity(kind)
    else:
        size, element = _primitive(name, field.metadata["kafka_type"], flexible=flexible, nullable=False)

    def walk(message: bytes, at: int, state: _Walk) -> int:
        count, at = count_of(message, at)
        state.count(name, count)
        if size:
            return at + count * size
        for _ in range(count):
            at = element(message, at, state)
        return at

    return walk


def _skip(size: int) -> Step:
    return lambda _message, at, _state: at + size


def _tags(known: dict[int, Step]) -> Step:
    """The tagged fields at the end of an entity of a flexible version."""

    def walk(message: bytes, at: int, state: _Walk) -> int:
        if message[at] == 0:
            return at + 1
        return _walk_tags(known, message, at, state)

    return walk


def _walk_tags(known: dict[int, Step], message: bytes, at: int, state: _Walk) -> int:
    start = at
    count, at = _uvarint(message, at)
    state.count("tagged fields", count)
    first = at
    unknown = 0
    last = -1
    for _ in range(count):
        begin = at
        tag, sized = _uvarint(message, at)
        size, at = _uvarint(message, sized)
        end = at + size
        if end > len(message):
            raise WireError(f"tagged field {tag} of {size} bytes ends past the frame")
        if tag <= last:
            raise WireError(f"tagged field {tag} comes after {last}")
        last = tag
        step = known.get(tag)
        if step is None:
            unknown += 1
            state.replace(begin, end, b"")
        else:
            before = state.shorter_by
            if step(message, at, state) != end:
                raise WireError(f"tagged field {tag} is not of {size} bytes, as it says")
            if gone := state.shorter_by - before:
                state.replace(sized, at, _varint(size - gone))
        at = end
    if unknown:
        state.replace(start, first, _varint(count - unknown))
    return at


# --- lengths ------------------------------------------------------------------------------------------------

Number = Callable[[bytes, int], tuple[int, int]]
"""(message, where the number begins) -> (it, where it ends)"""


def _length_of(name: str, number: Number, *, nullable: bool) -> Number:
    """Returns the reader of the length of an array, string or bytes; 0 for null where that is allowed.
    Every element takes a byte at least."""
    compact = number is _uvarint

    def read(message: bytes, at: int) -> tuple[int, int]:
        length, at = number(message, at)
        if compact:
            length -= 1
        if 0 <= length <= len(message) - at:
            return length, at
        if length == -1 and nullable:
            return 0, at
        if length == -1:
            raise WireError(f"{name} is null")
        raise WireError(f"{name} has a length of {length}, and {len(message) - at} bytes are left")

    return read


def _int16(message: bytes, at: int) -> tuple[int, int]:
    return _INT16.unpack_from(message, at)[0], at + 2


def _int32(message: bytes, at: int) -> tuple[int, int]:
    return _INT32.unpack_from(message, at)[0], at + 4


def _uvarint(message: bytes, at: int) -> tuple[int, int]:
    value = message[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        at += 1
        byte = message[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
    raise WireError("a number is longer than five bytes")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
