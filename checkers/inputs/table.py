"""Tables of named, typed columns, which all have the same length.

A table is a frozen dataclass whose fields are columns, or again such tables (the parts of one thing, as of a
proof: its index, its time). ``Table`` is generic in what a column is: numpy's integers for many rows
(``Candidate[Ints]``), or one integer for a single row (``Proof[int]``). One definition serves both, and a
misspelt column is an error in mypy.

``NONE`` is the null. A column that says the same in every row is a view of one number
(``constant``): it needs no memory however long it is, and stays one when rows are taken from it. Columns must
not be written to: ``dataclasses.replace`` makes a table with other columns.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NONE = int(np.iinfo(np.int64).min)
"""Stands for what is not known, or is not there."""
NEVER = int(np.iinfo(np.int64).max)
"""An index later than all others: that of what did not happen."""


def bools(comparison: Any) -> Bools:
    """Returns the result of a numpy comparison as ``Bools``, which numpy's type stubs do not say."""
    result: Bools = comparison
    return result


def place_in(ascending: Ints, values: Ints) -> Ints:
    """The place of each value; NONE where it is not there."""
    if not len(ascending):
        return np.full(len(values), NONE)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.where(ascending[at] == values, at, NONE)


def values_at(column: Ints, rows: Ints) -> Ints:
    """Returns the values of a column in these rows; NONE where the row is NONE."""
    result = np.full(len(rows), NONE)
    there = rows != NONE
    result[there] = column[rows[there]]
    return result


C = TypeVar("C")
"""What a column is: ``Ints``, or ``int`` in a single row."""
Named = TypeVar("Named", bound="Table[Any]")
T = TypeVar("T", bound="Table[Ints]")
_COLUMN = struct.Struct("<qB")
_TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_HAS_NONE = 16
_WORD = 8


class Table(Generic[C]):
    """The base of all tables. Subclasses are frozen dataclasses with slots."""

    __slots__ = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all columns in order. Those of a part have its name before theirs: ``by_ack_ns``."""
        return _layout(cls).names

    @classmethod
    def of_columns(cls, columns: Sequence[C]) -> Self:
        """``columns``: in the order of ``names``. Raises ValueError where they are not as many."""
        return _built(cls, columns)

    @classmethod
    def all(cls, column: C) -> Self:
        """The table whose every column is this one."""
        return _built(cls, [column] * len(_layout(cls).names))

    def columns(self) -> Sequence[C]:
        """All columns, in the order of ``names``."""
        return _layout(type(self)).read(self)

    # --- tables of numpy's columns

    @classmethod
    def unknown(cls: type[T], size: int) -> T:
        """Returns a table of so many rows of which nothing is known."""
        return cls.all(constant(NONE, size))

    def __len__(self: Table[Ints]) -> int:
        return len(_layout(type(self)).first(self))

    def take(self: T, rows: Ints | Bools) -> T:
        """The rows at these positions, or those where a mask is true."""
        size = int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows)
        return _built(type(self), [_taken(column, rows, size) for column in self.columns()])

    def carry(self: Table[Ints], kind: type[T]) -> T:
        """Makes a table of another kind of the same rows: what both have under one name passes, the rest is
        unknown. ``dataclasses.replace`` says that."""
        mine = {one.name for one in fields(self)}  # type: ignore[arg-type]
        both = [one.name for one in fields(plain(kind)) if one.name in mine]  # type: ignore[arg-type]
        there = {name: getattr(self, name) for name in both}
        return replace(kind.unknown(len(self)), **there)  # type: ignore[type-var]


class _Layout:
    """The layout by which a class of tables is read as one row of columns, and made from it."""

    def __init__(self, cls: type[Table[Any]]) -> None:
        hints = get_type_hints(cls)
        self.parts: list[tuple[type[Table[Any]] | None, int, int]] = []
        """Of each field: the table that it is, if it is one, and which columns it has."""
        paths: list[str] = []
        for one in fields(cls):  # type: ignore[arg-type]
            kind = get_origin(hints[one.name]) or hints[one.name]
            part = kind if isinstance(kind, type) and issubclass(kind, Table) else None
            begin = len(paths)
            paths += [one.name] if part is None else [f"{one.name}.{path}" for path in _layout(part).paths]
            self.parts.append((part, begin, len(paths)))
        self.flat = len(paths) == len(self.parts)
        self.paths: tuple[str, ...] = tuple(paths)
        self.names = tuple(path.replace(".", "_") for path in paths)
        get = attrgetter(*paths)
        self.first: Callable[[Any], Any] = attrgetter(paths[0])
        self.read: Callable[[Any], Sequence[Any]] = get if len(paths) > 1 else lambda table: (get(table),)


_LAYOUTS: dict[Any, _Layout] = {}


def _layout(cls: Any) -> _Layout:
    result = _LAYOUTS.get(cls)
    if result is None:
        result = _LAYOUTS[cls] = _Layout(cls)
    return result


def plain(kind: type[Named]) -> type[Named]:
    """The class itself, of ``Candidate[Ints]`` ``Candidate``."""
    result: type[Named] = get_origin(kind) or kind
    return result


def _built(kind: type[Named], columns: Sequence[Any]) -> Named:
    cls = plain(kind)
    layout = _layout(cls)
    if len(columns) != len(layout.names):
        raise ValueError(f"{cls.__name__} has {len(layout.names)} columns, not {len(columns)}")
    return _filled(cls, layout, columns)


def _filled(cls: type[Named], layout: _Layout, columns: Sequence[Any]) -> Named:
    if layout.flat:
        return cls(*columns)
    return cls(
        *[
            columns[begin] if part is None else _filled(part, _layout(part), columns[begin:end])
            for part, begin, end in layout.parts
        ]
    )


# --- columns


def constant(value: int, size: int) -> Ints:
    """The same in every row."""
    number = int(value).to_bytes(_WORD, sys.byteorder, signed=True)
    return np.ndarray((size,), np.int64, number, strides=(0,))  # broadcast_to takes ten times as long


def _is_constant(column: Ints) -> bool:
    return column.strides == (0,)


def _taken(column: Ints, rows: Ints | Bools, size: int) -> Ints:
    if _is_constant(column) and len(column):
        return constant(int(column[0]), size)
    return column[rows]


def _joined(columns: Sequence[Ints], size: int) -> Ints:
    some = [column for column in columns if len(column)]
    if len(some) == 1:
        return some[0]
    if not some:
        return constant(NONE, 0)
    if all(map(_is_constant, some)) and len({int(column[0]) for column in some}) == 1:
        return constant(int(some[0][0]), size)
    return np.concatenate(some)


def concatenated(kind: type[T], parts: Sequence[T]) -> T:
    """One after another. ``parts`` may be none: then no rows of this kind."""
    if len(parts) == 1 and type(parts[0]) is plain(kind):
        return parts[0]
    size = sum(map(len, parts))
    columns = [part.columns() for part in parts]
    return _built(
        kind, [_joined([one[at] for one in columns], size) for at in range(len(_layout(plain(kind)).names))]
    )


def rows_of(table: T, at_once: int = 4_096) -> Iterator[Any]:
    """The rows, each as a table of the same kind whose columns are numbers, and None for NONE."""
    for begin in range(0, len(table), at_once):
        columns = [column[begin : begin + at_once].tolist() for column in table.columns()]
        for numbers in zip(*columns, strict=True):
            yield _built(type(table), [None if number == NONE else number for number in numbers])


def assigned(column: Ints, at: Ints | Bools, values: Ints | int) -> Ints:
    """The column with other values at some rows."""
    result = np.array(column)
    result[at] = values
    return result


# --- few bytes


def pack(columns: Sequence[Ints]) -> bytes:
    """Each column as its distance from its smallest value, in as few bytes as that needs: what is the same in
    every row needs nine bytes."""
    parts = []
    for column in columns:
        if not len(column):
            parts.append(_COLUMN.pack(0, 0))
            continue
        if _is_constant(column):
            parts.append(_COLUMN.pack(int(column[0]), 0))
            continue
        low, high = int(column.min()), int(column.max())
        flag = 0
        if low == NONE:
            there = column[column != NONE]
            if not len(there):
                parts.append(_COLUMN.pack(NONE, 0))
                continue
            flag, low, high = _HAS_NONE, int(there.min()) - 1, int(there.max())
            column = np.where(column == NONE, low, column)
        width = next(w for w in (0, 1, 2, 4, 8) if high - low < 1 << (8 * w))
        parts.append(_COLUMN.pack(low, width | flag))
        if width:
            parts.append((column - low).astype(_TYPES[width]).tobytes())
    return b"".join(parts)


def unpack(data: bytes, size: int, kind: type[T]) -> T:
    """The table of ``size`` rows that ``pack`` wrote the columns of."""
    result, at = [], 0
    for _ in range(len(_layout(plain(kind)).names)):
        low, flags = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        width = flags & ~_HAS_NONE
        if not width:
            column = constant(low, size)
        else:
            raw = np.frombuffer(data, _TYPES[width], size, at)
            at += size * width
            column = raw.astype(np.int64) + low
            if flags & _HAS_NONE:
                column[raw == 0] = NONE
        result.append(column)
    return kind.of_columns(result)
