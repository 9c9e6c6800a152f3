"""How many states of a cluster, and pairs of a state and a fault, runs have reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from wrackline.history.model import CONTROL, FOLLOW, Event

FOLLOW_JSON = "follow.json"
"""In the folder of a run: its coverage."""


@dataclass(slots=True)
class Coverage:
    """The states and the pairs of state and fault that a run has reached."""

    states: Counter[str] = field(default_factory=Counter)
    """State -> how often it became true."""
    pairs: Counter[str] = field(default_factory=Counter)
    """Pair -> how often its fault was in force, begun when the state was true."""
    missed: Counter[str] = field(default_factory=Counter)
    """Pair -> how often it was drawn and not reached: the state did not come, or its nodes were taken."""

    def to_dict(self) -> dict[str, dict[str, int]]:
        return {
            "states": dict(sorted(self.states.items())),
            "pairs": dict(sorted(self.pairs.items())),
            "missed": dict(sorted(self.missed.items())),
        }


def write_coverage(event: Event, run_dir: Path) -> None:
    """Writes down which states of the cluster were followed, where the row says so: a night reads it of many
    runs. Raises OSError."""
    extra = event.extra or {}
    if event.process == CONTROL and event.f == FOLLOW and extra["phase"] == "coverage":
        (run_dir / FOLLOW_JSON).write_bytes(orjson.dumps(extra, option=orjson.OPT_INDENT_2))


def merged(coverages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Adds coverages up, as ``Draw.to_dict`` has them."""
    total = Coverage()
    states: dict[str, None] = {}
    pairs: dict[str, None] = {}
    for one in coverages:
        total.states.update(one.get("states", {}))
        total.pairs.update(one.get("pairs", {}))
        total.missed.update(one.get("missed", {}))
        states.update(dict.fromkeys(one.get("of", {}).get("states", ())))
        pairs.update(dict.fromkeys(one.get("of", {}).get("pairs", ())))
    return {**total.to_dict(), "of": {"states": list(states), "pairs": list(pairs)}}


def summary(coverage: Mapping[str, Any]) -> str:
    """Returns ``11 of 12 states, 57 of 145 pairs``; empty where nothing was to be followed."""
    of = coverage.get("of", {})
    if not of.get("pairs"):
        return ""
    states = sum(one in coverage["states"] for one in of["states"])
    pairs = sum(one in coverage["pairs"] for one in of["pairs"])
    return f"{states} of {len(of['states'])} states, {pairs} of {len(of['pairs'])} pairs"
