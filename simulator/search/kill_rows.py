"""The rows of the kill table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Budget:
    """For the random runs of one row."""

    runs: int = 100
    seconds: float = 20.0
    """Virtual length of each."""
    cpu_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Hunt:
    """Random runs. ``oracle`` is None when none fired."""

    runs: int
    simulated_s: float
    cpu_s: float
    oracle: str | None = None
    text: str = ""
    again: str = ""
    """The command that repeats the failing run."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    id: str
    defects: tuple[str, ...]
    profile: str
    oracles: tuple[str, ...]
    """That fired in the guided schedule, in that order."""
    simulated_s: float
    """To the first of them."""
    expected: tuple[str, ...]
    noise: tuple[str, ...] = ()
    """What fired in the arm without the defect: must be empty."""
    hunt: Hunt | None = None
    what: tuple[str, ...] = ()
    """Each defect in a sentence, with its reference."""

    @property
    def killed(self) -> bool:
        return bool(set(self.oracles) & set(self.expected)) and not self.noise


@dataclass(frozen=True, slots=True)
class Safe:
    profile: str
    hunt: Hunt


@dataclass(frozen=True, slots=True)
class KillTable:
    rows: tuple[Row, ...]
    safe: tuple[Safe, ...] = ()
    budget: Budget = field(default_factory=Budget)

    @property
    def hunted(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.hunt is not None)

    @property
    def found(self) -> tuple[Row, ...]:
        """By random runs."""
        return tuple(row for row in self.hunted if row.hunt is not None and row.hunt.oracle is not None)

    @property
    def cpu_s(self) -> float:
        """Of the random runs with defects."""
        return sum(row.hunt.cpu_s for row in self.hunted if row.hunt is not None)

    @property
    def good(self) -> bool:
        return all(row.killed for row in self.rows) and all(line.hunt.oracle is None for line in self.safe)

    def as_dict(self) -> dict[str, Any]:
        rows = [{**asdict(row), "killed": row.killed} for row in self.rows]
        return {
            "good": self.good,
            "budget": asdict(self.budget),
            "schedules": {"caught": sum(row.killed for row in self.rows), "of": len(self.rows)},
            "random": {"found": len(self.found), "of": len(self.hunted), "cpu_s": round(self.cpu_s, 1)},
            "rows": rows,
            "safe": [asdict(line) for line in self.safe],
        }
