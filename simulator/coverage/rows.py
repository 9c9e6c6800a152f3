"""Rows of the golden tables that runs have met: a row is met when the rules have decided in each of its ways.

``rows.txt`` has the ways, one a line, and after an empty line the rows with the numbers of theirs. The golden
tables are tests, and no part of what is installed; ``python -m tests.broker.rules.ways`` writes the file, and
a test holds it against them.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wrackline.simulator.coverage.probes import Way

FILE = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True, slots=True)
class Table:
    """``rows``: number of the row in its table -> whether it was met."""

    name: str
    rows: dict[int, bool]

    @property
    def met(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True, slots=True)
class Coverage:
    tables: tuple[Table, ...]

    @property
    def met(self) -> int:
        return sum(table.met for table in self.tables)

    @property
    def rows(self) -> int:
        return sum(len(table.rows) for table in self.tables)

    def __str__(self) -> str:
        share = self.met / self.rows if self.rows else 1.0
        return f"{self.met} of {self.rows} rows of the golden tables met ({share:.0%})"

    def lines(self, *, full: bool) -> Iterator[str]:
        """The tables that were not met whole, with the numbers of the rows that lack; ``full``: all."""
        for table in self.tables:
            lacking = [str(number) for number, met in table.rows.items() if not met]
            if full or lacking:
                text = f"; not met: {', '.join(lacking)}" if lacking else ""
                yield f"{table.name:<42} {table.met:>3} of {len(table.rows):>3}{text}"


@cache
def _ways_of_rows() -> dict[tuple[str, int], frozenset[Way]]:
    ways, _, rows = FILE.read_text(encoding="utf-8").partition("\n\n")
    names = ways.splitlines()
    result = {}
    for line in rows.splitlines():
        row, _, numbers = line.partition(" | ")
        table, number = row.split()
        result[table, int(number)] = frozenset(names[int(one)] for one in numbers.split())
    return result


def coverage(ways: Set[Way]) -> Coverage:
    """Returns what runs with these ways have met."""
    tables: dict[str, dict[int, bool]] = {}
    for (table, number), some in _ways_of_rows().items():
        tables.setdefault(table, {})[number] = some <= ways
    return Coverage(tuple(Table(name, rows) for name, rows in tables.items()))
