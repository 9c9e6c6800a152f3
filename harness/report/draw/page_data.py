"""Tables of numbers for the page's script, small: columns in as few bytes as they need, compressed, in
base64.

The script takes them apart again (``unpacked`` in templates/script.html.j2). A page of a browser that cannot
decompress still has every drawing.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from wrackline.harness.report.read.columns import Ints, Table

_LEVEL: Final = 9
_PROCESS_BITS: Final = 32
_KINDS: Final = (("u1", np.uint8, 1), ("u2", np.uint16, 2), ("u4", np.uint32, 4))


@dataclass(slots=True)
class Tables:
    """``words``: what the numbers in the columns mean, and all else the script must know."""

    words: dict[str, Any]
    led_by: Callable[[Table], Ints]
    """The number of the node that led each operation's partition; -1: nobody knows."""
    _tables: dict[str, dict[str, Ints]] = field(default_factory=dict)
    _orders: dict[str, Ints] = field(default_factory=dict)

    def add(self, name: str, columns: Mapping[str, Ints]) -> None:
        self._tables[name] = dict(columns)

    def points(
        self,
        name: str,
        parts: Sequence[tuple[NDArray[Any], NDArray[Any], Table]],
        figures: Mapping[str, Ints] = MappingProxyType({}),
    ) -> None:
        """Operations behind the points of a drawing, in the order of time. ``parts``: x and y, in the
        drawing's units, and the operations there; ``figures``: what the script shows besides, by name. A
        second drawing of the same points, for a phone, adds where they are there."""
        x, y, rows = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if name in self._orders:
            order = self._orders[name]
            self._tables[name] |= {"phone_x": np.rint(x[order] * 10), "phone_y": np.rint(y[order] * 10)}
            return
        order = self._orders[name] = np.argsort(x, kind="stable")
        where = {"x": np.rint(x[order] * 10), "y": np.rint(y[order] * 10)}
        shown = {f"+{label}": values[order] for label, values in figures.items()}
        self.add(name, {**where, **self.operations(rows[order]), **shown})

    def operations(self, rows: Table) -> dict[str, Ints]:
        """The columns by which the script describes an operation."""
        return operation_columns(rows) | {"node": self.led_by(rows)}

    def packed(self) -> str:
        listed, parts = {}, []
        for name, columns in self._tables.items():
            kinds = []
            for column, values in columns.items():
                kind, base, content = _packed(np.asarray(values, np.int64))
                kinds.append([column, kind, base])
                parts.append(content)
            listed[name] = {"rows": len(next(iter(columns.values()))), "columns": kinds}
        head = orjson.dumps({**self.words, "tables": listed})
        whole = len(head).to_bytes(4, "little") + head + b"".join(parts)
        return base64.b64encode(zlib.compress(whole, _LEVEL)).decode()


def operation_columns(rows: Table) -> dict[str, Ints]:
    """Times in microseconds; a value as its process and the rest, or below zero for none; what refers to
    another column as the difference from it, which takes less room."""
    value = rows["value"]
    begin = rows["begin"] // 1_000
    return {
        "index": rows["index"],
        "begun": np.where(rows["begun"] < 0, -1, rows["index"] - rows["begun"]),
        "begin": begin,
        "took": np.where(rows["end"] < 0, -1, rows["end"] // 1_000 - begin),
        "process": rows["process"],
        "f": rows["f"],
        "outcome": rows["outcome"],
        "place": rows["place"],
        "offset": rows["offset"],
        "more": np.maximum(rows["last"] - rows["offset"], 0),
        "value": np.where(value < 0, value, value >> _PROCESS_BITS),
        "rest": np.where(value < 0, 0, value & 0xFFFFFFFF),
        "count": rows["count"],
        "error": rows["error"],
    }


def _packed(values: Ints) -> tuple[str, int, bytes]:
    """(kind, what to add to each number, bytes): the differences from one number to the next when that is
    shorter (``d`` in the kind), the lowest bytes of all numbers first, then the next ones."""
    if not len(values):
        return "u1", 0, b""
    plain = _kind(values)
    steps = np.diff(values, prepend=values[:1])
    stepped = _kind(steps)
    if stepped[2] < plain[2] or (plain[2] > 1 and stepped[2] == plain[2] and np.all(steps >= 0)):
        kind, type_, _ = stepped
        base = int(steps.min())
        content = (steps - base).astype(type_)
        return f"d{kind}", base, int(values[0]).to_bytes(8, "little", signed=True) + _planes(content)
    kind, type_, _ = plain
    base = int(values.min()) if kind != "f8" else 0
    return kind, base, _planes((values - base).astype(type_))


def _kind(values: Ints) -> tuple[str, Any, int]:
    span = int(values.max()) - int(values.min())
    result = next((one for one in _KINDS if span < 1 << (8 * one[2])), None)
    return result or ("f8", np.float64, 8)


def _planes(values: NDArray[Any]) -> bytes:
    return values.view(np.uint8).reshape(len(values), -1).T.tobytes()
