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
    for sign, way_out in (
        ("No space left", "the disk is full: make room, or give the fleet bigger disks"),
        ("Address already in use", "the port is taken: end the other process or use another port"),
        ("Cannot assign requested address", "the host does not have the address its configuration names"),
        ("ModuleNotFoundError", "the bundle is incomplete: remove the bundle cache and deploy again"),
        ("unknown key", "mend the configuration of the specification"),
        ("ConfigException", "mend system.config of the specification"),
        ("OutOfMemoryError", "give the JVM more memory: system.jvm_options, -Xmx"),
    ):
        if sign in said:
            return way_out
    return f"look at {folders_of(host).log} on the host"
