"""Whole runs on a busy machine: a run that only the machine's load made inconclusive is made again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pytest

from wrackline.harness.cli.main import main

OF_LOAD = {
    "asked rate reached before the first fault",
    "asked load kept up during faults",
    "records acknowledged before, during and after faults",
}
"""Conditions of a pass that a busy machine alone may break."""
TRIES = 3
T = TypeVar("T")


def unmet(verdict: Mapping[str, Any]) -> set[str]:
    """The conditions that do not hold, without those of load."""
    return {one["name"] for one in verdict["conditions"] if not one["ok"]} - OF_LOAD


def despite_load(make: Callable[[], T], results: Path) -> T:
    """What ``make`` returns once no run below ``results`` is inconclusive by load alone, or the third time.

    ``results`` is removed between two calls.
    """
    for _ in range(TRIES - 1):
        made = make()
        verdicts = [orjson.loads(one.read_bytes()) for one in results.glob("*/verdict.json")]
        if not any(one["verdict"] == "inconclusive" and not unmet(one) for one in verdicts):
            return made
        shutil.rmtree(results)
    return make()


def run_despite_load(file: Path, results: Path) -> tuple[object, Path]:
    """The exit code of `wrackline run` with this file, and the run's folder, below ``results``."""

    def code() -> object:
        with pytest.raises(SystemExit) as ended:
            main(["run", str(file), "--results", str(results), "--master", "local[2]"])
        return ended.value.code

    ended = despite_load(code, results)
    [made] = [one for one in results.iterdir() if (one / "spec.yaml").exists()]
    return ended, made
