"""The text of a node's configuration, and the meaning of what its host answered."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from wrackline.fleets.base import Result
from wrackline.systems.base import Place

LOGS = "/var/log/wrackline"


def planned_replicas(said: str) -> dict[Place, tuple[int, ...]]:
    """The replicas in lines like ``log:0=4,1,2  # now 3,1,2``; other lines are passed over."""
    found = {}
    for topic, partition, replicas in re.findall(r"^(\S+):(\d+)=([\d,]+)  # now", said, re.MULTILINE):
        found[topic, int(partition)] = tuple(map(int, replicas.split(",")))
    return found


def toml(value: object) -> str:
    """JSON's strings, numbers, booleans and lists are TOML's too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def why_it_died(result: Result) -> tuple[str, str]:
    """(what, way out): the last line of the log says it most often, those before it follow indented."""
    said = (result.stdout + result.stderr).strip() or "(its log is empty)"
    *before, last = said.split("\n")
    tail = "".join(f"\n    | {line}" for line in [*before, last]) if before else ""
    return f"the node died: {last}", way_out_of(said) + tail


def last_line(result: Result) -> str:
    return ((result.stdout + result.stderr).strip() or "(nothing said)").splitlines()[-1]


def way_out_of(said: str) -> str:
    for sign, way_out in (
        ("No space left", "the disk is full: make room, or give the fleet bigger disks"),
        ("Address already in use", "the port is taken: end the other process or use another port"),
        ("Cannot assign requested address", "the host does not have the address its configuration names"),
        ("ModuleNotFoundError", "the bundle is incomplete: remove the bundle cache and deploy again"),
        ("unknown key", "mend the configuration of the specification"),
    ):
        if sign in said:
            return way_out
    return f"look at {LOGS}/broker.log on the host"
