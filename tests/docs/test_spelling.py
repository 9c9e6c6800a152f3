"""The program has one name in all pages, and its commands have the names of today."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from wrackline.harness.cli.commands import FORMER
from wrackline.harness.cli.main import wrackline

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LAUNCHER = ROOT / "wrack"
# Of who has a checkout and nothing else: the first thing to type.
FIRST_OF_ALL = ["demo"]
ERRORS = [("broke", "down")]
"""What begins as a command does, and is an error that a page quotes."""
SAID = re.compile(r"(?<![\w./-])(wrackline|\./wrack) +((?:--)?[a-z][a-z-]*)(?: +([a-z][a-z-]*))?")
CODE = re.compile(r"^```.*?^```|^ {4}[^\n]*|`[^`]+`", re.MULTILINE | re.DOTALL)


def said(page: Path) -> Iterator[tuple[str, str, str]]:
    """What stands in code: the program, a word, and the word after it."""
    for code in CODE.findall(page.read_text(encoding="utf-8")):
        inline = code.startswith("`") and not code.startswith("```")
        yield from SAID.findall(" ".join(code.split()) if inline else code)


def own_words() -> set[str]:
    """What the launcher does by itself."""
    return set(re.findall(r"^([a-z-]+)\)", LAUNCHER.read_text(encoding="utf-8"), re.MULTILINE))


def exists(word: str, next_word: str) -> bool:
    context = click.Context(wrackline)
    command = wrackline.get_command(context, word)
    if command is None or not isinstance(command, click.Group) or not next_word:
        return command is not None
    return command.get_command(context, next_word) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_program_has_one_name(page: Path) -> None:
    """In a checkout ./wrack COMMAND is wrackline COMMAND, which docs/index.md says once. What the launcher
    does by itself has no other name. README.md is for who has nothing yet."""
    alone = {*own_words(), "--commands", *FIRST_OF_ALL}
    wrong = [word for program, word, _ in said(page) if program == "./wrack" and word not in alone]
    assert page == README or not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_have_the_names_of_today(page: Path) -> None:
    for program, word, next_word in said(page):
        if (word, next_word) in ERRORS:
            continue
        if (program == "./wrack" and word in {*own_words(), "--commands"}) or word.startswith("--"):
            continue
        assert exists(word, next_word), f"{program} {word} {next_word}".strip()


def test_the_index_says_what_the_launcher_is() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "`./wrack COMMAND`" in text
    assert "`wrackline COMMAND`" in text


def test_what_is_looked_for_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`wrackline faults`, `./wrack\nrun x`, prose of wrackline faults\n\n    wrackline site x\n"
    )
    assert list(said(page)) == [
        ("wrackline", "faults", ""),
        ("./wrack", "run", "x"),
        ("wrackline", "site", "x"),
    ]
    assert exists("site", "build")
    assert exists("run", "anything")
    assert not exists("site", "x")
    assert not any(exists(former.split()[0], "") for former in FORMER)
    assert {"setup", "test", "lint"} <= own_words()
