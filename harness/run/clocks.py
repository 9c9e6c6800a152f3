"""Offsets between the hosts' clocks and ours, so that what they wrote down can be put on the run's clock.

Read once, when a run's files are collected. A clock that a fault has moved meanwhile was another one then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import orjson

from wrackline.fleets.base import Fleet, FleetError
from wrackline.history import Recorder
from wrackline.systems.base import Node, System
from wrackline.systems.common.on_hosts import on_each

log = logging.getLogger(__name__)

CLOCKS = "clocks.json"
"""In the run's directory: {"start_ns", "ahead_ns": {"n1": ...}}, both as below."""
_TIMES = 3
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Clocks:
    start_ns: int
    """Our time of day, in nanoseconds since 1970, when the run's clock stood at 0."""
    ahead_ns: Mapping[str, int]
    """Host -> how far its time of day is ahead of ours; 0 where the difference is less than can be told."""

    def of_run(self, at_ns: int, host: str) -> int:
        """Returns the run's clock when the host's clock showed ``at_ns``."""
        return at_ns - self.ahead_ns.get(host, 0) - self.start_ns

    def write(self, run_dir: Path) -> None:
        """Raises OSError."""
        content = {"start_ns": self.start_ns, "ahead_ns": dict(self.ahead_ns)}
        (run_dir / CLOCKS).write_bytes(orjson.dumps(content) + b"\n")

    @classmethod
    def read(cls, run_dir: Path) -> Self:
        """Raises OSError or ValueError."""
        try:
            result = orjson.loads((run_dir / CLOCKS).read_bytes())
            ahead = {str(host): int(ahead) for host, ahead in result["ahead_ns"].items()}
            return cls(int(result["start_ns"]), ahead)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{CLOCKS}: {error!r}") from error


def clocks_of(fleet: Fleet, system: System, recorder: Recorder) -> Clocks:
    """Returns the clock of every host that answers; the others are taken to have our time."""
    result = dict(on_each(system.nodes, lambda node: (node.host.name, _ahead_ns(fleet, node))))
    start_ns = time.time_ns() - (time.monotonic_ns() - recorder.start_ns)
    return Clocks(start_ns, {host: ahead for host, ahead in result.items() if ahead})


def _ahead_ns(fleet: Fleet, node: Node) -> int:
    """The quickest of a few answers tells the most: the clock was read between question and answer."""
    best: tuple[int, int] | None = None
    for _ in range(_TIMES):
        before = time.time_ns()
        try:
            answer = fleet.remote(node.host).run("date +%s%N", timeout_s=_TIMEOUT_S, check=True)
            theirs = int(answer.stdout)
        except (FleetError, ValueError) as error:
            log.warning("%s: its clock is not known: %s", node.host.name, error)
            break
        after = time.time_ns()
        took = after - before
        if best is None or took < best[0]:
            best = took, theirs - (before + after) // 2
    if best is None or abs(best[1]) <= best[0] // 2:
        return 0
    return best[1]
