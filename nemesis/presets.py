"""Mixtures of faults by name, each in lanes that overlap: what others have found useful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PARTITIONS = (
    {"fault": "partition", "target": "one"},
    {"fault": "partition", "target": "majority"},
    {"fault": "partition", "target": "primaries"},
)
_NODES = ("one", "minority", "majority", "primaries", "all")
_KILLS = tuple({"fault": "kill", "target": target} for target in _NODES)
_PAUSES = tuple({"fault": "pause", "target": target} for target in _NODES)


@dataclass(frozen=True, slots=True)
class Preset:
    what: str
    """One sentence about it."""
    lanes: Mapping[str, Sequence[Mapping[str, Any]]]
    """By name: the faults of each, as a specification gives them."""


PRESETS: Mapping[str, Preset] = {
    "jepsen": Preset(
        "Everything in Jepsen's combined nemesis packages, each package a lane.",
        {"partition": _PARTITIONS, "db": (*_KILLS, *_PAUSES)},
    ),
    "jepsen-partition": Preset(
        "Jepsen's partition package: one host, a majority, or all leaders are cut off.",
        {"partition": _PARTITIONS},
    ),
    "jepsen-db": Preset(
        "Jepsen's package of kills and pauses: one node, a minority, a majority, all leaders, or all.",
        {"db": (*_KILLS, *_PAUSES)},
    ),
    "power": Preset(
        "Hosts lose their power with all that is not synced, while others are cut off.",
        {
            "power": (
                {"fault": "power-cut", "target": "one"},
                {"fault": "power-cut", "target": "minority"},
                {"fault": "power-cut", "target": "leader"},
            ),
            "partition": ({"fault": "partition", "target": "one"},),
        },
    ),
}
