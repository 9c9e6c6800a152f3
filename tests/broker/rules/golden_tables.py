"""Reads the golden tables in ``golden/*.txt``: facts on the left of ``->``, the right decision on its right.

A file is named after a file of ``broker/rules``. In it ``== name`` begins a table; its first line has the
names of the columns, and every other line is a row. Columns are separated by two spaces or more, ``#`` begins
a comment. A comment at the end of a row says what it is for: a bug that is named there decided otherwise.

A log is drawn with a letter or a digit for each record and ``|`` where it ends: ``====|`` has four records,
``1122|`` has two of leader epoch 1 and two of epoch 2. ``-`` is nothing or nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from wrackline.broker.model.epochs import EpochCache
from wrackline.broker.rules.profile import Rules

FOLDER = Path(__file__).parent / "golden"
Facts = Mapping[str, str]
Decide = Callable[[Rules, Facts], object]
"""What the real rule decides by the facts of a row: a value, or a list with one for each column."""


class Row(NamedTuple):
    file: str
    table: str
    line: int
    facts: Facts
    right: tuple[str, ...]
    comment: str

    @property
    def name(self) -> str:
        return f"{self.file}.{self.table}"

    @property
    def profile(self) -> str:
        return self.facts.get("profile", "kip966")

    def __str__(self) -> str:
        return f"{self.name}:{self.line}"


def read(file: Path) -> Iterator[Row]:
    """Raises ValueError for a row that does not have what the heads of its table's columns ask for."""
    table, heads = "", list[str]()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        text, _, comment = (part.strip() for part in line.partition("#"))
        if not text:
            continue
        if text.startswith("== "):
            table, heads = text[3:], []
            continue
        cells = re.split(r"\s{2,}", text)
        if not heads:
            heads = cells
            continue
        at = heads.index("->")
        if len(cells) != len(heads) or cells[at] != "->":
            raise ValueError(f"{file.name}:{number}: {cells} do not fit the columns {heads}")
        facts = dict(zip(heads[:at], cells[:at], strict=True))
        yield Row(file.stem, table, number, facts, tuple(cells[at + 1 :]), comment)


def rows() -> list[Row]:
    return [row for file in sorted(FOLDER.glob("*.txt")) for row in read(file)]


def shown(decision: object) -> tuple[str, ...]:
    """A decision as the tables write it: one cell, or one for each member of a list."""
    cells = decision if isinstance(decision, list) else [decision]
    return tuple(_cell(cell) for cell in cells)


def _cell(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "-"
        case tuple() | frozenset() | set():
            members = value if isinstance(value, tuple) else sorted(value)
            return ",".join(str(member) for member in members) or "-"
        case _:
            return str(getattr(value, "name", value)).lower()


# --- cells ---------------------------------------------------------------------------------------------


def ids(cell: str) -> tuple[int, ...]:
    return () if cell == "-" else tuple(int(node) for node in cell.split(","))


def some(cell: str) -> frozenset[int]:
    return frozenset(ids(cell))


def yes(cell: str) -> bool:
    return {"yes": True, "no": False}[cell]


def end(log: str) -> int:
    """Where a drawn log ends."""
    if not log.endswith("|"):
        raise ValueError(f"{log!r}: a log ends with '|'")
    return len(log) - 1


def bar(length: int) -> str:
    return "=" * length + "|"


def upto(log: str, offset: int) -> str:
    """A drawn log as far as this offset."""
    return log[: min(offset, end(log))] + "|"


def epochs_of(log: str, leading: str = "-") -> EpochCache:
    """The leader epoch cache of a log drawn with its epochs; ``leading``: the epoch in which its owner
    leads."""
    cache = EpochCache()
    for offset, epoch in enumerate(log[: end(log)]):
        cache = cache.assign(int(epoch), offset)
    return cache if leading == "-" else cache.assign(int(leading), end(log))
