"""The process of one mutant: the search, or the tests, with one place of the broker changed.

Its arguments are one line of JSON, and so is what it prints last.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

from wrackline.simulator.mutants.hook import install


def _search(request: dict[str, Any]) -> dict[str, Any]:
    from wrackline.simulator.faults.setup import Setup
    from wrackline.simulator.search.first_violation import search

    began = time.process_time()
    setup = Setup(seed=request["seed"], **request["setup"])
    result = search(
        setup,
        request["runs"],
        swarming=True,
        any_profile="profile" not in request["setup"],
        cpu_limit_s=request["cpu_s"],
    )
    violation = None if result.found is None else result.found.violation
    return {
        "runs": result.runs,
        "cpu_s": round(time.process_time() - began, 1),
        "oracle": "" if violation is None else violation.oracle,
        "text": "" if violation is None else violation.text,
    }


def _drills(request: dict[str, Any]) -> dict[str, Any]:
    """Every drill in a cluster that has had no fault, on a few seeds."""
    from dataclasses import replace
    from random import Random

    from wrackline.simulator.drills.drill import EVERY, do
    from wrackline.simulator.faults.setup import Setup
    from wrackline.simulator.faults.swarm import swarm
    from wrackline.simulator.run.session import Run

    began, wanted = time.process_time(), request["drills"]
    every = [each for each in EVERY if wanted == "all" or each.__name__ == wanted]
    for seed in range(request["runs"]):
        session = Run(replace(swarm(Setup(seed, controllers=3)), seconds=1.0, kinds=(), tcp=True))
        for part in (session.boot, session.main, session.heal):
            if not session.found:
                part()
        if not session.found:
            do(session, every, Random(seed), session.setup.partitions)
        if session.found:
            first = session.found[0]
            spent = round(time.process_time() - began, 1)
            return {"runs": seed + 1, "cpu_s": spent, "oracle": first.oracle, "text": first.text}
    return {"runs": request["runs"], "cpu_s": round(time.process_time() - began, 1), "oracle": ""}


def _tests(request: dict[str, Any]) -> dict[str, Any]:
    import pytest

    began = time.process_time()
    args = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", *request["tests"]]
    failed = pytest.main(args) != 0
    return {"runs": 1, "cpu_s": round(time.process_time() - began, 1), "oracle": "tests" if failed else ""}


def main() -> None:
    request = json.loads(sys.argv[1])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (60 + 2 * int(request["cpu_s"]), hard))
    reach = install(request["file"], request["number"])
    try:
        made = _tests if request.get("tests") else _drills if request.get("drills") else _search
        result = made(request)
    except Exception as error:  # noqa: BLE001 - a mutant that cannot even be imported is noticed by that
        result = {"runs": 0, "cpu_s": 0.0, "oracle": "import", "text": f"{type(error).__name__}: {error}"}
    print(json.dumps({**result, "reached": reach.reached}))


if __name__ == "__main__":
    main()
