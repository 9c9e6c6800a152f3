"""Lines of code of each room beside its ceiling in pyproject.toml: `./wrack lint` prints the table.

A line of code is one that is no import, docstring, comment or blank line. The ceilings are in
``[tool.wrackline.rooms]``; a room is a folder at the top of the repository. No library counts so:
pygount and radon count imports as code.
"""

from __future__ import annotations

import ast
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def count_lines(file: Path) -> int:
    """Lines of code of one file."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    with file.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type not in NO_CODE:
                code.update(range(token.start[0], token.end[0] + 1))
    return len(code - left_out)


def count_rooms(root: Path = ROOT) -> dict[str, int]:
    """Lines of code by room: a folder at the top that holds code and is no link."""
    rooms: Counter[str] = Counter()
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and not folder.is_symlink() and not folder.name.startswith("."):
            rooms[folder.name] = sum(count_lines(file) for file in folder.rglob("*.py"))
    return dict(+rooms)


def read_ceilings(pyproject: Path = ROOT / "pyproject.toml") -> dict[str, int]:
    """Most lines of code that a room may have, by room."""
    settings = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    return dict(settings["tool"]["wrackline"]["rooms"])


def find_excess(rooms: Mapping[str, int], ceilings: Mapping[str, int]) -> list[str]:
    """A line for each room above its ceiling, without one, or no longer there."""
    over = [
        f"{room}: {rooms[room]:,} lines of code, {rooms[room] - ceiling:,} above its ceiling of {ceiling:,}: "
        "make it smaller, or raise the ceiling in pyproject.toml and say why in the commit"
        for room, ceiling in sorted(ceilings.items())
        if rooms.get(room, 0) > ceiling
    ]
    unknown = [
        f"{room}: no ceiling in pyproject.toml ([tool.wrackline.rooms])"
        for room in sorted(rooms.keys() - ceilings)
    ]
    gone = [
        f"{room}: has a ceiling in pyproject.toml and no code" for room in sorted(ceilings.keys() - rooms)
    ]
    return over + unknown + gone


def main() -> int:
    """Prints the table; 1 when a room is above its ceiling."""
    rooms, ceilings = count_rooms(), read_ceilings()
    for room, lines in rooms.items():
        print(f"      {room:<14} {lines:>7,} of {ceilings.get(room, 0):>7,} lines of code")
    excess = find_excess(rooms, ceilings)
    print(*excess, sep="\n", end="\n" if excess else "")
    return 1 if excess else 0


if __name__ == "__main__":
    sys.exit(main())
