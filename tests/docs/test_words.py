"""Identifiers are made of the field's words: the count of parts that are not may only fall."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.room_sizes import ROOT, count_rooms

NO_PRODUCT = {"benchmarks", "docs", "tests", "website"}
WORDS: dict[str, tuple[int, str]] = {
    "ago": (8, "age"),
    "alike": (8, "equal"),
    "anew": (5, "again"),
    "asked": (248, "requested"),
    "astray": (2, "wrong_offset"),
    "beside": (23, "next to it"),
    "cited": (47, "citations"),
    "drawn": (42, "sampled"),
    "elsewhere": (24, "remote"),
    "explained": (14, "explanation"),
    "foreseen": (1, "preview"),
    "found": (208, "result"),
    "given": (179, "args"),
    "hands": (1, "executor"),
    "heard": (24, "received"),
    "judged": (45, "verdicts"),
    "known": (365, "registered"),
    "learnt": (2, "updated"),
    "left": (168, "remaining"),
    "meant": (5, "matched"),
    "nobody": (19, "none"),
    "ours": (40, "own"),
    "packed": (38, "compressed"),
    "said": (237, "output"),
    "seen": (224, "observed"),
    "shown": (126, "displayed"),
    "somebody": (0, "any"),
    "tales": (0, "catalogue"),
    "tell": (29, "report"),
    "telling": (8, "transcript"),
    "tells": (5, "reports"),
    "theirs": (16, "other"),
    "thinned": (0, "downsampled"),
    "told": (126, "reported"),
    "undecided": (22, "unknown"),
    "wanted": (72, "expected"),
    "whom": (5, "target"),
    "whose": (5, "owner"),
    "written": (80, "stored"),
    "wrong": (77, "error"),
}
"""Part of a name -> most definitions with it, and the field's word for it. A change that makes a part rarer
lowers its number; nothing raises one."""
PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def split_parts(name: str) -> set[str]:
    """``firstSeen_at`` -> first, seen, at."""
    return {part.lower() for part in PARTS.findall(name)}


def find_names(source: str) -> Iterator[str]:
    """Every name that a module defines: functions, classes, arguments, variables, attributes, aliases."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)):
                yield name


def count_words(files: Iterator[Path]) -> Counter[str]:
    """How many definitions have each of the words in their names; a file's own name is one, too."""
    counts: Counter[str] = Counter()
    for file in files:
        for name in (file.stem, *find_names(file.read_text(encoding="utf-8"))):
            counts.update(split_parts(name) & WORDS.keys())
    return counts


@pytest.fixture(scope="module")
def counts() -> Counter[str]:
    rooms = [ROOT / room for room in count_rooms() if room not in NO_PRODUCT]
    return count_words(file for room in rooms for file in room.rglob("*.py"))


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_is_not_the_fields_becomes_no_more_frequent(word: str, counts: Counter[str]) -> None:
    most, better = WORDS[word]
    assert counts[word] <= most, f"name it by a word of the field, such as `{better}`"
    assert counts[word] == most, f"it is rarer now: lower its number to {counts[word]}"


def test_parts_are_counted_wherever_a_name_is_defined(tmp_path: Path) -> None:
    (tmp_path / "what_was_told.py").write_text(
        "import os as told_os\n\ndef sendTold(told, other):\n    self.told_at = untold = other\n"
        "class ToldBy: ...\nprint(told, [told for told in ()])\n"
    )
    assert count_words(iter([tmp_path / "what_was_told.py"])) == {"told": 7}
