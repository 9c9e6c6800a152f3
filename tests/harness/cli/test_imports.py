"""What a command does not import, so that nobody waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TESTS = {"hypothesis", "pytest"}
SPARK = {"py4j", "pandas", "pyspark"}
JUDGE = {"jinja2", "jpype", "numba", "scipy"}
ARROW = {"fsspec", "numpy", "pyarrow", "upath"}
SSH = {"cryptography", "fabric", "invoke", "nacl", "paramiko"}
KAFKA = {"confluent_kafka", "kazoo", "kio.schema", "kio.serial"}
MODELS = {"pydantic", "rich", "yaml"}
CODE = """
import sys
from wrackline.harness.cli.entry import main

sys.argv[:] = ["wrackline", *sys.argv[2:]]
without = {without!r}
try:
    main()
finally:
    print(sorted(without & set(sys.modules)), file=sys.stderr)
"""
WITHOUT = {
    "--help": TESTS | SPARK | JUDGE | ARROW | SSH | KAFKA | MODELS,
    "--version": TESTS | SPARK | JUDGE | ARROW | SSH | KAFKA | MODELS,
    "no-such-command": TESTS | SPARK | JUDGE | ARROW | SSH | KAFKA | MODELS,
    "validate suites/laptop.yaml": TESTS | SPARK | JUDGE | ARROW | SSH | {"rich"},
    "validate suites/demo-acks-all.yaml": TESTS | SPARK | JUDGE | ARROW | SSH | {"rich"},
    "validate suites/kafka-acks-all.yaml": TESTS | SPARK | JUDGE | ARROW | SSH | {"rich"},
    "plan suites/laptop.yaml": TESTS | SPARK | JUDGE | SSH,
    "plan suites/demo-canary.yaml": TESTS | SPARK | JUDGE | SSH,
    "run --help": TESTS | SPARK | JUDGE,
    "demo --help": TESTS | SPARK | JUDGE,
    "analyze --help": TESTS | SPARK | JUDGE | SSH | KAFKA,
    "runs --results no-such-folder": TESTS | SPARK | JUDGE | SSH | KAFKA,
    "init --help": TESTS | SPARK | JUDGE | SSH,
    "simulate --help": TESTS | SPARK | SSH | {"confluent_kafka", "kazoo", "rich"},
}
"""Command -> what none of its modules imports."""


@pytest.mark.parametrize("command", WITHOUT)
def test_a_command_imports_no_more_than_it_needs(command: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CODE.format(without=WITHOUT[command]), "-", *command.split()],
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
        cwd=ROOT,
    )
    assert ran.stderr.splitlines()[-1] == "[]", ran.stderr
