"""The table of all faults says what a specification would be told."""

from __future__ import annotations

from pathlib import Path

from wrackline.harness.cli.faults import works
from wrackline.harness.extend.faults import fleets_with_hosts, known_faults

PAGE = Path(__file__).parents[2] / "docs/faults.md"


def test_each_fault_has_a_row_that_is_true_for_each_fleet() -> None:
    table, _ = PAGE.read_text().split("\n## Sabotage\n")
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")]
    head, *body = [[cell.strip().strip("`") for cell in row] for row in rows]
    fleets = fleets_with_hosts()
    assert head == ["fault", *fleets, "Jepsen", "LazyFS"]
    said = {row[0]: row[1 : 1 + len(fleets)] for row in body}
    assert said == {one.name: [works(one, fleet) for fleet in fleets] for one in known_faults()}
