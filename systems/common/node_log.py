"""The cause of a node's death by the last lines of its log."""

from __future__ import annotations

from wrackline.fleets.base import Host, Result
from wrackline.fleets.folders import folders_of
from wrackline.history.model import NODE_DIED


def why_it_died(result: Result, host: Host) -> tuple[str, str]:
    """Returns (what, way out): the last line of the log says it most often, those before it follow
    indented."""
    said = (result.stdout + result.stderr).strip() or "(its log is empty)"
    *before, last = said.split("\n")
    tail = "".join(f"\n    | {line}" for line in [*before, last]) if before else ""
    return f"{NODE_DIED}{last}", way_out_of(said, host) + tail


def last_line(result: Result) -> str:
    return ((result.stdout + result.stderr).strip() or "(no output)").splitlines()[-1]


def way_out_of(said: str, host: Host) -> str:
    ways_out = (way_out for sign, way_out in _WAYS_OUT.items() if sign in said)
    return next(ways_out, f"look at {folders_of(host).log} on the host")


def is_of_host(log: str) -> bool:
    """Tells whether a node died for what its host lacks, or for its configuration."""
    return any(sign in log for sign in _WAYS_OUT)


_WAYS_OUT = {
    "No space left": "the disk is full: make room, or give the fleet bigger disks",
    "Address already in use": "the port is taken: end the other process or use another port",
    "Cannot assign requested address": "the host does not have the address its configuration names",
    "Cannot allocate memory": "the host has no memory left: give it more",
    "ModuleNotFoundError": "the bundle is incomplete: remove the bundle cache and deploy again",
    "unknown key": "mend the configuration of the specification",
    "ConfigException": "mend system.config of the specification",
    "OutOfMemoryError": "give the JVM more memory: system.jvm_options, -Xmx",
}
"""Part of a node's last words -> the way out."""
