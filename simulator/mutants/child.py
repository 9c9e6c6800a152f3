"""The process of one mutant: the search, or the tests, with one place of the broker changed.

Its arguments are one line of JSON, and so is what it prints last.
"""

from __future__ import annotations

import json
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
    found = result.found
    violation = None if found is None else found.violation
    return {
        "runs": result.runs,
        "cpu_s": round(time.process_time() - began, 1),
        "oracle": "" if violation is None else violation.oracle,
        "text": "" if violation is None else violation.text,
        "again": "" if found is None else found.setup.command(),
    }


def _tests(request: dict[str, Any]) -> dict[str, Any]:
    import pytest

    began = time.process_time()
    args = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", *request["tests"]]
    failed = pytest.main(args) != 0
    return {"runs": 1, "cpu_s": round(time.process_time() - began, 1), "oracle": "tests" if failed else ""}


def main() -> None:
    request = json.loads(sys.argv[1])
    reach = install(request["file"], request["number"])
    try:
        result = _tests(request) if request.get("tests") else _search(request)
    except Exception as error:  # noqa: BLE001 - a mutant that cannot even be imported is noticed by that
        result = {"runs": 0, "cpu_s": 0.0, "oracle": "import", "text": f"{type(error).__name__}: {error}"}
    print(json.dumps({**result, "reached": reach.reached}))


if __name__ == "__main__":
    main()
