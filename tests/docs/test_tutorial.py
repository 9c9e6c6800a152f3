"""The tutorial is true: its commands exist, what it shows is what they print, and by night all of them are
carried out.

A block of ``console`` has commands after ``$``, and below each what it prints; a line ``...`` stands for any
number of lines, and ``...`` at the end of a line for its rest. Numbers and names of runs differ from run to
run, so they are not compared.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import orjson
import pytest

from tests.harness.machine_load import despite_load
from wrackline.harness.cli.main import COMMANDS
from wrackline.harness.run.judge import Judged

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
SAMPLE = ROOT / "results" / "sample"
CANARY = "sudo wrackline run suites/demo-canary.yaml"
LAPTOP = "wrackline run suites/laptop.yaml"
ANYTHING = "..."
_BLOCK = re.compile(r"^( *)```(?P<language>sh|console)\n(?P<text>.*?)^\1```", re.M | re.S)
_VARYING = re.compile(r"\d{8}T\d{6}Z-([a-z-]+)-[0-9a-f]{4}|\d[\d,.]*")


def shown() -> Iterator[tuple[str, list[str]]]:
    """(command, the lines that the page shows below it), in its order; blocks of ``sh`` show no lines."""
    for block in _BLOCK.finditer(TEXT):
        lines = block["text"].splitlines()
        if block["language"] == "sh":
            yield from ((line, []) for line in lines)
            continue
        starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
        for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            yield lines[at].removeprefix("$ "), lines[at + 1 : end]


def plain(line: str) -> str:
    """A line without what differs from run to run."""
    return " ".join(_VARYING.sub(r"\1N", line).split())


def same(page: list[str], printed: list[str]) -> bool:
    """Whether the page shows what was printed."""
    if not page:
        return not printed
    if page[0] == ANYTHING:
        return any(same(page[1:], printed[at:]) for at in range(len(printed) + 1))
    if not printed:
        return False
    wanted, line = plain(page[0]), plain(printed[0])
    begins = line.startswith(wanted.removesuffix(ANYTHING).rstrip())
    return (begins if wanted.endswith(ANYTHING) else wanted == line) and same(page[1:], printed[1:])


def carried_out(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command.removeprefix("sudo "))
    return subprocess.run(
        [sys.executable, "-m", "wrackline.harness.cli.entry", *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


def test_its_commands_are_ours() -> None:
    launcher = (ROOT / "wrack").read_text(encoding="utf-8")
    commands = [command for command, _ in shown()]
    assert {CANARY, LAPTOP} <= set(commands)
    assert len(commands) >= 10
    for line in commands:
        program, command, *rest = line.removeprefix("sudo ").split()
        assert program in ("wrackline", "./wrack"), line
        assert command in COMMANDS or (program == "./wrack" and f"\n{command})\n" in launcher), line
        assert [word for word in rest if word.startswith("suites/") and not (ROOT / word).exists()] == [], (
            line
        )


def test_a_line_that_is_not_printed_is_noticed() -> None:
    printed = ["first", "3 of 12 done", "20261126T174452Z-laptop-cda6 pass"]
    assert same(["first", ANYTHING, "20260101T000000Z-laptop-0000  pass"], printed)
    assert same([ANYTHING, "5 of 7 done", ANYTHING], printed)
    assert not same(["first", "20261126T174452Z-laptop-cda6 pass"], printed)
    assert same(["first", "3 of ...", ANYTHING], printed)
    assert not same(["first", "4 off ...", ANYTHING], printed)
    assert not same([ANYTHING, "20261126T174452Z-other-cda6 pass"], printed)
    assert not same(["first", ANYTHING, "pass"], printed)


def compare(tmp_path: Path, first: str, last: str) -> None:
    """Carry out the commands from one that begins so to one that begins so, and compare what they print."""
    (tmp_path / "suites").symlink_to(ROOT / "suites")
    steps = [(command, lines) for command, lines in shown() if lines]
    names = [command for command, _ in steps]
    begin = next(at for at, name in enumerate(names) if name.startswith(first))
    end = next(at for at, name in enumerate(names) if name.startswith(last))
    for command, lines in steps[begin : end + 1]:
        done = despite_load(partial(carried_out, command, tmp_path), tmp_path / "results")
        assert done.returncode == 0, f"{command}: {done.stdout}"
        assert same(lines, done.stdout.splitlines()), f"{command} prints:\n{done.stdout}"


def test_init_validate_and_plan_print_what_it_shows(tmp_path: Path) -> None:
    compare(tmp_path, "wrackline init", "wrackline plan")


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.apart
def test_a_run_without_root_prints_what_it_shows(tmp_path: Path) -> None:
    compare(tmp_path, LAPTOP, "wrackline runs")


def test_the_verdict_that_it_shows_is_that_of_the_sample() -> None:
    verdict = orjson.loads((SAMPLE / "verdict.json").read_bytes())
    line = Judged(Path(verdict["test_id"]), verdict, None).line
    assert f"\n{line}\n" in TEXT, line
    [incident] = [one["sentence"] for one in verdict["incidents"] if one["meaning"] == "violation"]
    assert f"\n   {incident}\n" in TEXT, incident


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_its_commands_end_as_it_says(tmp_path: Path) -> None:
    """The canary's exit code is 1, that of all others 0."""
    (tmp_path / "suites").symlink_to(ROOT / "suites")
    ours = [command for command, _ in shown() if "wrackline " in command]
    codes = {line: carried_out(line, tmp_path).returncode for line in ours}
    assert codes == {line: int(line == CANARY) for line in ours}
    verdicts = [
        path.parent.name.split("-", 1)[1][:-5] for path in sorted(tmp_path.glob("results/*/report.html"))
    ]
    assert verdicts == ["laptop", "first", "demo-canary", "demo-canary"]
