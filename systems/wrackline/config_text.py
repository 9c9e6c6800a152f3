"""The text of a node's configuration, and of the broker's own planner."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from wrackline.systems.base import Place


def planned_replicas(output: str) -> dict[Place, tuple[int, ...]]:
    """The replicas in lines like ``log:0=4,1,2  # now 3,1,2``; other lines are passed over."""
    result = {}
    for topic, partition, replicas in re.findall(r"^(\S+):(\d+)=([\d,]+)  # now", output, re.MULTILINE):
        result[topic, int(partition)] = tuple(map(int, replicas.split(",")))
    return result


def toml(value: object) -> str:
    """JSON's strings, numbers, booleans and lists are TOML's too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)
