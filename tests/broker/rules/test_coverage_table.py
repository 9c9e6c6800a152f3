"""docs/protocol-coverage.md cannot rot: every row is there once, every rule can be imported, every test
exists."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "protocol-coverage.md"
ROWS = {"Z": 58, "R": 37, "K": 54, "H": 20}
"""The rows of docs/protocol.md section 1 are numbered from 01 to this, by document."""
ABSENT = "absent"
ELSEWISE = "by another mechanism: "
ABSENT_ROWS = 0
"""How many rows are absent. This number may only fall."""
OTHER_MECHANISMS = {"Z08", "Z09"}
GOLDEN = {
    *("H11", "H16", "H17", "H20", "R24", "R35", "Z05", "Z06"),
    *(f"R{row}" for row in range(17, 24)),
    *(f"K{row}" for row in range(48, 55)),
    "divergence vectors A to G",
}
_NAME = re.compile(r"`([a-z_]+(?:\.\w+)+)`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


class Row(NamedTuple):
    id: str
    what: str
    rule: str
    test: str


def rows() -> list[Row]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|"))
    return [Row(*row) for row in cells if re.fullmatch(r"[A-Z]\d\d", row[0])]


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions of a module, read and not run."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def find(name: str) -> object:
    """A module's function, or a class's method: defined there, so that the reader who looks finds it."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as missing:
            if missing.name is None or not name.startswith(missing.name):
                raise
            continue
        for part in parts[length:]:
            found = vars(found)[part]
        return found
    raise AssertionError(f"{name}: no such module")


def test_every_row_is_there_exactly_once() -> None:
    wanted = {f"{letter}{number:02}" for letter, last in ROWS.items() for number in range(1, last + 1)}
    there = Counter(row.id for row in rows())
    assert wanted - there.keys() == set()
    assert there.keys() - wanted == set()
    assert [row for row, times in there.items() if times > 1] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_what_a_row_names_exists(row: Row) -> None:
    assert row.what
    rules, tests = _NAME.findall(row.rule), _TEST.findall(row.test)
    if not rules:
        assert row.rule == ABSENT, "a rule, or the word that there is none"
        assert row.test == "–"
        return
    for rule in rules:
        assert callable(find(rule)), rule
    assert tests, "implemented, so there is a test"
    for path, name in tests:
        assert name in functions_of(path), f"{path} has no {name}"


def absent(found: list[Row]) -> list[str]:
    return [row.id for row in found if row.rule == ABSENT]


def test_the_number_of_absent_rows_only_falls() -> None:
    """Whoever implements one lowers the number."""
    assert len(absent(rows())) == ABSENT_ROWS
    assert absent([Row("Z99", "x", ABSENT, "–"), Row("Z98", "x", "`a.b`", "`tests/a.py::b`")]) == ["Z99"]


def test_a_row_that_stands_by_another_mechanism_says_which() -> None:
    found = {row.id: row.rule.removeprefix(ELSEWISE) for row in rows() if row.rule.startswith(ELSEWISE)}
    assert set(found) == OTHER_MECHANISMS
    assert all(len(text.partition(": `")[0]) > 40 for text in found.values()), "in words"


def test_the_golden_examples_are_named_and_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.split("## Golden examples", 1)[1].split("\n## ", 1)[0]
    assert {example for example in GOLDEN if example not in section} == set()
    tests = _TEST.findall(section)
    assert len(tests) >= len(GOLDEN) - 2, "E and G share one, as do Z05 and Z06"
    for path, name in tests:
        assert name in functions_of(path), f"{path} has no {name}"


def test_a_name_that_is_not_there_is_noticed() -> None:
    with pytest.raises(KeyError):
        find("wrackline.broker.rules.replication.watermark.HighWatermarkRules.no_such_rule")
    with pytest.raises(AssertionError, match="no such module"):
        find("no_such_package.module.thing")
    assert "test_a_name_that_is_not_there_is_noticed" in functions_of(
        "tests/broker/rules/test_coverage_table.py"
    )
