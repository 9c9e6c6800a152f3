"""A misspelt column of a fact, or of a candidate in numpy or alone, is an error in mypy."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

ROOT = Path(__file__).parents[3]
RIGHT = """
from dataclasses import replace

import numpy as np

from wrackline.checkers.checks.places import Places
from wrackline.checkers.engine.candidates import Candidate, Step
from wrackline.checkers.engine.facts import Final
from wrackline.checkers.inputs.table import constant
from wrackline.checkers.inputs.table import Ints


def of_a_fact(final: Final) -> Ints:
    return final.take(final.offset > 7).offset


def in_numpy(rows: Candidate[Ints]) -> Candidate[Ints]:
    found = rows.take(np.flatnonzero(rows.by_ack.index < rows.invoke_index))
    return replace(found, step=constant(Step.GAP, len(found)))


def alone(at: Places) -> list[int]:
    return [row.by_ack.ns - row.invoke_ns for row in at.each("lost")]
"""
MISSPELT = {
    "final.offset > 7": ("final.ofset > 7", '"Final" has no attribute "ofset"'),
    "rows.by_ack.index": ("rows.by_ack.indx", 'has no attribute "indx"'),
    "rows.invoke_index": ("rows.invoke_indx", 'has no attribute "invoke_indx"'),
    "replace(found, step=": ("replace(found, stp=", 'Unexpected keyword argument "stp"'),
    "Step.GAP": ("Step.GAPS", '"type[Step]" has no attribute "GAPS"'),
    "row.by_ack.ns": ("row.by_ack.n", '"Proof[Any]" has no attribute "n"'),
    "row.invoke_ns": ("row.invoke_nss", '"Candidate[Any]" has no attribute "invoke_nss"'),
}
"""Part of RIGHT -> (the same with a letter too many or too few, what mypy says of it)."""


def test_mypy_knows_every_column(tmp_path: Path) -> None:
    """One file for each misspelt name, and all at once: to start mypy takes longer than to read them."""
    (tmp_path / "right.py").write_text(RIGHT)
    for number, (right, (wrong, _)) in enumerate(MISSPELT.items()):
        assert RIGHT.count(right) == 1
        (tmp_path / f"wrong_{number}.py").write_text(RIGHT.replace(right, wrong))
    mypy = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml"]
    said = run([*mypy, *sorted(tmp_path.glob("*.py"))], cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in said.stdout.splitlines() if ": error: " in line]
    assert not [line for line in errors if "right.py" in line]
    for number, (_, expected) in enumerate(MISSPELT.values()):
        assert [line for line in errors if f"wrong_{number}.py" in line and expected in line], said.stdout
