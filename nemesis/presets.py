"""Mixtures of faults by name, each in lanes that overlap: what others have found useful."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PARTITIONS = (
    {"fault": "partition", "target": "one"},
    {"fault": "partition", "target": "majority"},
    {"fault": "partition", "target": "primaries"},
    {"fault": "partition", "shape": "majorities-ring"},
)
_NODES = ("one", "minority", "majority", "primaries", "all")
_KILLS = tuple({"fault": "kill", "target": target} for target in _NODES)
_PAUSES = tuple({"fault": "pause", "target": target} for target in _NODES)
_PACKETS = (
    {"fault": "packets", "target": "all", "delay_s": 0.05, "jitter_s": 0.05},
    {"fault": "packets", "target": "one", "loss": 0.2},
    {"fault": "packets", "target": "minority", "duplicate": 0.2, "reorder": 0.2, "delay_s": 0.02},
    {"fault": "packets", "target": "one", "corrupt": 0.05},
)
_CLOCKS = (
    {"fault": "clock-jump", "target": "minority", "offset_s": 60.0},
    {"fault": "clock-jump", "target": "one", "offset_s": -60.0},
    {"fault": "clock-strobe", "target": "one"},
)
_FILES = (
    {"fault": "bit-flip", "target": "follower"},
    {"fault": "truncate", "target": "follower"},
    {"fault": "roll-back", "target": "follower"},
)


@dataclass(frozen=True, slots=True)
class Preset:
    what: str
    """One sentence about it."""
    lanes: Mapping[str, Sequence[Mapping[str, Any]]]
    """By name: the faults of each, as a specification gives them."""


PRESETS: Mapping[str, Preset] = {
    "jepsen": Preset(
        "Jepsen's combined nemesis packages: partitions, kills and pauses, packets, clocks, each a lane.",
        {"partition": _PARTITIONS, "db": (*_KILLS, *_PAUSES), "packet": _PACKETS, "clock": _CLOCKS},
    ),
    "jepsen-partition": Preset(
        "Its partition package: one host, a majority, a ring of majorities, or all leaders are cut off.",
        {"partition": _PARTITIONS},
    ),
    "jepsen-db": Preset(
        "Its package of kills and pauses: one node, a minority, a majority, all leaders, or all.",
        {"db": (*_KILLS, *_PAUSES)},
    ),
    "jepsen-packet": Preset(
        "Its packet package: packets are late, lost, doubled, overtaken and damaged.", {"packet": _PACKETS}
    ),
    "jepsen-clock": Preset("Its clock package: clocks jump and strobe.", {"clock": _CLOCKS}),
    "jepsen-file-corruption": Preset(
        "Its file corruption package: bits are flipped, files cut off and rolled back, of followers alone.",
        {"file-corruption": _FILES},
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
    "operations": Preset(
        "What operators do every week, while single brokers are killed: leaders, settings, topics, restarts.",
        {
            "operations": (
                {"fault": "transfer-leadership"},
                {"fault": "recreate-topic"},
                {"fault": "change-config", "configs": {"segment.bytes": 1_048_576}},
                {"fault": "rolling-restart"},
            ),
            "kill": ({"fault": "kill", "target": "one"},),
        },
    ),
}
