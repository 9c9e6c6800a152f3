"""Every fault is sabotaged, and docs/nemesis.md says how each sabotage is caught."""

from __future__ import annotations

from pathlib import Path

from tests.nemesis.sabotage.trials import TRIALS, WITHOUT, rows
from wrackline.plugins.registry import Group, entries

PAGE = Path(__file__).parents[3] / "docs/nemesis.md"


def test_every_fault_is_sabotaged_or_says_why_not() -> None:
    """A new fault comes with a trial in `tests/nemesis/sabotage/trials.py`."""
    ours = {one.name for one in entries(Group.FAULTS) if one.is_ours}
    tried = {trial.fault for trial in TRIALS.values()}
    assert tried | set(WITHOUT) == ours
    assert not tried & set(WITHOUT)


def test_the_page_has_the_table() -> None:
    [_, section] = PAGE.read_text().split("\n## Sabotage\n")
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    head, rule, *body = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert set("".join(rule)) == {"-"}
    assert [head, *body] == rows()
