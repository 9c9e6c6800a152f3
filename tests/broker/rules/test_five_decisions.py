"""docs/this-code-in-an-hour.md, "Five decisions": decision and consequence name each other, and the bug
flips."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.broker.rules.decisions import TABLES
from tests.broker.rules.test_golden_tables import CHANGES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "this-code-in-an-hour.md").read_text(encoding="utf-8")


class Decision(NamedTuple):
    name: str
    at: list[str]
    consequences: list[str]
    tables: list[str]
    bugs: list[str]


def five() -> Iterator[Decision]:
    section = PAGE.split("## Five decisions\n", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| decision,"):
            name, at, consequence, golden, bugs = (cell.strip() for cell in line.strip("|").split("|"))
            [file, *tables] = re.findall(r"`([^`]+)`", golden)
            yield Decision(
                name.split(" (")[0],
                re.findall(r"`(\S+::\S+)`", at),
                re.findall(r"`(\S+::\S+)`", consequence),
                [f"{Path(file).stem}.{table}" for table in tables],
                re.findall(r"`(\w+)`", bugs),
            )


FIVE = list(five())


def source_of(reference: str) -> ast.FunctionDef:
    """What ``path::function`` or ``path::Class.method`` defines."""
    path, _, name = reference.partition("::")
    found: ast.Module | ast.ClassDef | ast.FunctionDef = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    for part in name.split("."):
        [found] = [
            node
            for node in found.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part
        ]
    assert isinstance(found, ast.FunctionDef)
    return found


def text_of(reference: str) -> str:
    return " ".join((ast.get_docstring(source_of(reference)) or "").split())


def test_there_are_five() -> None:
    wanted = ["ISR join", "high watermark candidate", "truncation by epoch", "ELR on fencing"]
    assert [decision.name for decision in FIVE] == [*wanted, "clean registration"]


@pytest.mark.parametrize("decision", FIVE, ids=lambda decision: decision.name)
def test_the_decision_names_its_consequence(decision: Decision) -> None:
    for at in decision.at:
        assert any(consequence in text_of(at) for consequence in decision.consequences), at
    told = " ".join(text_of(at) for at in decision.at)
    assert decision.consequences[0] in told
    assert decision.name.casefold() in told.casefold(), "who searches for it finds it"


@pytest.mark.parametrize("decision", FIVE, ids=lambda decision: decision.name)
def test_who_carries_it_out_asks_it(decision: Decision) -> None:
    """By its name, or through ``change``, which asks for the ELR whenever an ISR changes."""
    asked = {at.rpartition(".")[2].rpartition("::")[2] for at in decision.at} | {"change"}
    for consequence in decision.consequences:
        calls = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(source_of(consequence))
            if isinstance(node, ast.Call)
        }
        assert calls & (asked | {"_alter_one"}), consequence


@pytest.mark.parametrize(
    ("decision", "bug"),
    [(decision, bug) for decision in FIVE for bug in decision.bugs],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_bug_flips_a_row_of_the_table(decision: Decision, bug: str) -> None:
    changes = [line.split("  ")[:2] for line in CHANGES.splitlines()]
    assert any([bug, table] in changes for table in decision.tables)
    assert TABLES.keys() >= set(decision.tables)
