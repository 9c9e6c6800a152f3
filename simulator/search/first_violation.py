"""The search over seeds: many runs, to the first violation."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.run import Result, run


@dataclass(slots=True)
class Search:
    """The result of a search over seeds."""

    runs: int = 0
    simulated_s: float = 0.0
    cpu_s: float = 0.0
    found: Result | None = None


def search(
    setup: Setup,
    runs: int,
    *,
    swarming: bool = False,
    any_profile: bool = False,
    cpu_limit_s: float | None = None,
    unless: tuple[str, ...] = (),
) -> Search:
    """Run seeds ``setup.seed``, +1, +2, ... to the first violation, at most ``runs`` of them. ``swarming``:
    each in the surroundings that its seed draws (``swarm``), its profile too with ``any_profile``.
    ``unless``: a run that fails with these defects alone, too, does not count."""
    total = Search()
    began = time.process_time()
    for at in range(runs):
        seeded = replace(setup, seed=setup.seed + at)
        result = run(swarm(seeded, any_profile=any_profile) if swarming else seeded)
        total.runs += 1
        total.simulated_s += result.simulated_s
        total.cpu_s = time.process_time() - began
        if result.violation is not None and not (unless and _fails(result.setup, unless)):
            total.found = result
            break
        if cpu_limit_s is not None and total.cpu_s > cpu_limit_s:
            break
    return total


def _fails(setup: Setup, defects: tuple[str, ...]) -> bool:
    return run(replace(setup, defects=defects)).violation is not None
