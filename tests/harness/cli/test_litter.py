"""No command imports what only the tests need, and none leaves anything in the folder where it is called."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OF_THE_TESTS = ("hypothesis", "pytest", "_pytest", "xdist", "mypy", "duckdb", "aiokafka", "edn_format")
EVERY_COMMAND = """
import sys
from click.testing import CliRunner
from wrackline.harness.cli.main import COMMANDS, wrackline
for name in COMMANDS:
    done = CliRunner().invoke(wrackline, [name, "--help"])
    assert done.exit_code == 0, (name, done.output)
"""
EVERY_MODULE = """
import importlib, pkgutil, sys, wrackline
def broken(name): raise
for one in pkgutil.walk_packages(wrackline.__path__, "wrackline.", broken):
    leaf = one.name.rpartition(".")[2]
    if leaf not in ("__main__", "pytest_plugin") and not leaf.endswith("_program"):
        importlib.import_module(one.name)
"""
EVERY_CALL = """
from click.testing import CliRunner
from wrackline.harness.cli.main import wrackline
for call in (
    "init first.yaml", "validate first.yaml", "plan first.yaml", "simulate --seconds 1", "examples", "faults",
    "anomalies", "schema", "plugins", "eras --list", "findings --list", "check --list",
):
    done = CliRunner().invoke(wrackline, call.split())
    assert done.exit_code in (0, None), (call, done.output, done.exception)
"""


def python(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("imports", [EVERY_COMMAND, EVERY_MODULE], ids=["every command", "every module"])
def test_nothing_of_the_tests_is_imported(tmp_path: Path, imports: str) -> None:
    assert all(importlib.util.find_spec(name) for name in OF_THE_TESTS), "here they could be"
    said = python(tmp_path, "-c", f"{imports}\nprint(*set({OF_THE_TESTS}) & sys.modules.keys())")
    assert said.split() == []
    assert list(tmp_path.iterdir()) == []


def test_commands_leave_only_what_they_are_asked_for(tmp_path: Path) -> None:
    python(tmp_path, "-c", EVERY_CALL)
    assert [path.name for path in tmp_path.iterdir()] == ["first.yaml"]


def test_who_tests_with_hypothesis_gets_the_types_of_kio_with_it(tmp_path: Path) -> None:
    """And after kio was imported without it, hypothesis can be imported."""
    both = "import {}; import {}; from kio.static._phantom import hypothesis; print(hypothesis is None)"
    ours, theirs = "wrackline.broker.model.values, kio.static.primitive", "hypothesis.strategies"
    assert python(tmp_path, "-c", both.format(theirs, ours)) == "False\n"
    assert python(tmp_path, "-c", both.format(ours, theirs)) == "True\n"
