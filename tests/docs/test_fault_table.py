"""The tables of docs/faults.md have every fault, and the reference says where each can be done."""

from __future__ import annotations

from pathlib import Path

from wrackline.harness.extend.faults import known_faults

PAGE = Path(__file__).parents[2] / "docs/faults.md"
HEAD = ["fault", "what is done", "proved by", "undone by"]
HAS_A_TABLE_OF_ITS_OWN = {"lazyfs"}
"""Its kinds are rows."""


def tables() -> list[list[list[str]]]:
    """Every table of the page: its rows of cells, the head first."""
    found: list[list[list[str]]] = [[]]
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def test_every_fault_has_one_row_that_says_what_is_done_what_proves_it_and_what_undoes_it() -> None:
    rows = [row for head, _, *body in tables() if head == HEAD for row in body]
    assert [row for row in rows if len(row) != len(HEAD) or not all(row)] == []
    names = sorted(row[0].strip("`") for row in rows)
    assert names == sorted({one.name for one in known_faults()} - HAS_A_TABLE_OF_ITS_OWN)
