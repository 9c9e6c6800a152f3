"""The budget of lines of code: what is counted, and what a room above its ceiling is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import room_sizes
from tests.room_sizes import count_lines, count_rooms, find_excess, read_ceilings

SOURCE = '''"""A docstring
of two lines."""

import os
from pathlib import (
    Path,
)

# a comment
LIMIT = 3  # code
"""What an attribute means."""


def cut(at: int) -> str:
    """One line."""
    text = """a string
    of two lines"""
    return os.fspath(Path(text)) * (
        at
    )
'''


def room(root: Path, name: str, source: str) -> None:
    (root / name / "part").mkdir(parents=True)
    (root / name / "part" / "file.py").write_text(source)


def test_docstrings_imports_comments_and_blank_lines_are_not_code(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text(SOURCE)
    assert count_lines(tmp_path / "file.py") == 7


def test_a_room_is_a_folder_with_code_and_no_link(tmp_path: Path) -> None:
    room(tmp_path, "broker", SOURCE)
    room(tmp_path, ".venv", SOURCE)
    room(tmp_path, "docs", "")
    (tmp_path / "linked").symlink_to(tmp_path / "broker")
    (tmp_path / "broker" / "linked").symlink_to(tmp_path / ".venv")
    assert count_rooms(tmp_path) == {"broker": 7}


def test_a_room_above_its_ceiling_and_one_without_are_named() -> None:
    assert find_excess({"broker": 7}, {"broker": 7}) == []
    assert find_excess({"broker": 1_007, "new": 1}, {"broker": 1_000, "old": 1}) == [
        "broker: 1,007 lines of code, 7 above its ceiling of 1,000: make it smaller, or raise the ceiling in "
        "pyproject.toml and say why in the commit",
        "new: no ceiling in pyproject.toml ([tool.wrackline.rooms])",
        "old: has a ceiling in pyproject.toml and no code",
    ]


def test_the_linter_fails_above_a_ceiling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(room_sizes, "count_rooms", lambda: {"broker": 11})
    monkeypatch.setattr(room_sizes, "read_ceilings", lambda: {"broker": 11})
    assert room_sizes.main() == 0
    assert capsys.readouterr().out == "      broker              11 of      11 lines of code\n"
    monkeypatch.setattr(room_sizes, "read_ceilings", lambda: {"broker": 10})
    assert room_sizes.main() == 1
    assert "1 above its ceiling of 10" in capsys.readouterr().out


def test_every_room_has_a_ceiling() -> None:
    assert list(read_ceilings()) == list(count_rooms())
