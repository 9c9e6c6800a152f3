"""The examples of docs/models.md do what the page says, and its table has all models."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import Page
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import known, load
from wrackline.checkers.models.loading import load_decider
from wrackline.checkers.models.protocol import Model, Operation
from wrackline.harness.cli.main import main
from wrackline.harness.jepsen.operations import read_operations

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/models.md").read_text()
MODEL, PROGRAM = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)
SHARE, HISTORY = re.findall(r"^```clojure\n(.*?)^```$", TEXT, re.M | re.S)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "seats.py").write_text(MODEL)
    (tmp_path / "history.edn").write_text(HISTORY)
    return tmp_path


def theatre(history: Path) -> list[Operation]:
    return list(read_operations(history).done)


def test_two_clients_cannot_have_the_last_seats(folder: Path) -> None:
    history = theatre(folder / "history.edn")
    found = search(history, load(f"{folder}/seats.py:Seats"))
    assert found.answer is Answer.INVALID
    (part,) = found.parts
    assert history[part.stuck or 0].f == "book"
    assert search(history[:1], load(f"{folder}/seats.py:Seats")).answer is Answer.VALID
    assert search(history[:2], load(f"{folder}/seats.py:Seats", initial=120)).answer is Answer.VALID


def test_a_record_is_not_given_again_before_its_lock_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = SHARE.splitlines(keepends=True)
    # As it stands, and with the end of the lock before the second delivery.
    for order, code in ((lines, 1), ([*lines[:2], lines[4], *lines[2:4]], 0)):
        (tmp_path / "share.edn").write_text("".join(order))
        with pytest.raises(SystemExit) as ended:
            main(["check", "--model", "share", "share.edn"])
        assert ended.value.code == code, capsys.readouterr().out


def test_the_command_prints_what_the_page_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (shown,) = re.findall(r"^```\n(\$ .*?)^```$", TEXT, re.M | re.S)
    commands = re.findall(r"^\$ wrackline (.*)\n((?:(?!\$).*\n)*)", shown, re.M)
    assert len(commands) == 2
    for command, printed in commands:
        with pytest.raises(SystemExit) as ended:
            main(command.split())
        assert capsys.readouterr().out == printed
        assert ended.value.code == (1 if "not linearizable" in printed else 0)


def test_the_program_prints_what_its_comment_says() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    (comment,) = re.findall(r"print\(.*\)  # (.*)", PROGRAM)
    assert said.stdout.strip() == comment


def test_the_table_has_every_model_with_its_operations() -> None:
    rows = [row.split(" | ") for row in TEXT.splitlines() if row.startswith("| `")]
    named = {name: row[1] for row in rows for name in re.findall(r"`([\w-]+)`", row[0])}
    models = {name: one for name in known() if isinstance(one := load_decider(name), Model)}
    assert set(models) <= set(named)
    for name, model in models.items():
        untold = [f for f in model.operations if not re.search(rf"`{f}[ `]", named[name])]
        assert untold == (["write", "read"] if "the same" in named[name] else [])


def test_the_methods_that_shorten_the_search_are_all_there() -> None:
    section = TEXT.split("## A model of your own")[1].split("## Limits")[0]
    assert Page(section).headings == ()
    for method in ("observes", "partition", "narrowed", "unknowns", "describe", "describe_state"):
        assert f"`{method}" in section
