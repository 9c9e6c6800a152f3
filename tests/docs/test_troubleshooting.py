"""The page for troubles quotes errors as they are printed: each is a text of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
FOLDERS = ("checkers", "fleets", "harness", "nemesis", "systems")
HOLE = "…"
"""Where a text has a name or a number."""
OF_OTHERS = {"infrastructure", "info", "pass", "fleet", "history", "wl-…", "… brokers unfenced"}
"""Verdicts, outcomes and words of other programs, which are no texts of errors."""


def quoted() -> Iterator[str]:
    """In the first column of every table, what is code; but for pytest's own texts."""
    for line in PAGE.splitlines():
        cell = line.split(" | ")[0].removeprefix("| ")
        if line.startswith("| ") and not cell.startswith("pytest's"):
            yield from (found.replace("...", HOLE) for found in re.findall(r"`([^`]+)`", cell))


@cache
def printed() -> frozenset[str]:
    """Every text in the code, with a hole for each value."""
    found = set()
    for folder in FOLDERS:
        for module in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
                match node:
                    case ast.Constant(value=str(text)):
                        found.add(text)
                    case ast.JoinedStr(values=values):
                        found.add(
                            "".join(
                                str(one.value) if isinstance(one, ast.Constant) else HOLE for one in values
                            )
                        )
                    case _:
                        pass
    return frozenset(text.replace("`", "") for text in found)


@pytest.mark.parametrize("error", sorted(set(quoted()) - OF_OTHERS))
def test_an_error_is_quoted_as_it_is_printed(error: str) -> None:
    begins = error.removesuffix(HOLE)
    assert any(begins in text for text in printed())


def test_enough_errors_are_quoted() -> None:
    assert len(set(quoted()) - OF_OTHERS) > 15
