"""Every command: its help, its former names, the options that all have; and that none is imported to list
them."""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.harness.cli.calling import call
from wrackline.harness.cli.commands import FORMER, HEADINGS, SUGGESTIONS
from wrackline.harness.cli.main import wrackline
from wrackline.harness.cli.runs import plan
from wrackline.harness.cli.verbosity import Terminal, restore_levels
from wrackline.progress import PROGRESS, progress
from wrackline.simulator.headings import HEADINGS as SIMULATE

PROGRAM = "import sys; sys.argv[0] = 'wrackline'; from wrackline.harness.cli.entry import main; main()"
ISSUE = "Start, Run, Look, Judge, Known answers, Simulator, Data, Parts, Machine"


def walk(group: click.Group, *above: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is listed, groups too."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if command.hidden:
            continue
        yield (*above, name), command
        if isinstance(command, click.Group):
            yield from walk(command, *above, name)


EVERY = dict(walk(wrackline))


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_command_explains_itself(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Its help begins with a sentence, and has an example."""
    code, out, err = call(capsys, *path, "--help")
    assert (code, err) == (0, "")
    command = EVERY[path]
    assert command.name == path[-1]
    first = (command.help or "").split("\n\n")[0]
    assert re.match(r"[A-Z].*[.:]", first, re.DOTALL), first
    assert re.search(rf"^ +(sudo )?wrackline {' '.join(path)}( |$)", out, re.MULTILINE), "no example"
    assert "./wrack " not in re.sub(r"`\./wrack setup[^`]*`", "", out), "the program is called wrackline"


def test_the_headings_are_in_the_order_in_which_a_user_meets_them(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--help")
    assert ", ".join(HEADINGS) == ISSUE
    assert [line[:-1] for line in out.splitlines() if re.fullmatch(r"[A-Z].*:", line)] == [
        "Options",
        *HEADINGS,
    ]
    for under in HEADINGS.values():
        for name, one in under.items():
            assert re.search(rf"^  {name} +{re.escape(one.words)}$", out, re.MULTILINE), "it fits one line"


@pytest.mark.parametrize("arguments", [["--help"], ["get", "--help"], ["site"], ["simulat"]])
def test_no_command_is_imported_to_list_them(arguments: list[str]) -> None:
    """Half of the time that a short command took was the import of the others."""
    late = {"kio.schema", "kio.serial", "paramiko", "pyarrow", "pydantic", "numpy", "rich", "orjson", "yaml"}
    code = f"""
import atexit, os, sys
atexit.register(lambda: os.write(2, str(sorted({late} & set(sys.modules))).encode()))
{PROGRAM}"""
    said = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=180, check=False
    )
    assert said.stderr.endswith("[]")


@pytest.mark.parametrize(("former", "now"), FORMER.items())
def test_a_former_name_is_the_command_of_today(
    former: str, now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = now.split()
    assert tuple(one for one in words if not one.startswith("--")) in EVERY
    assert call(capsys, *former.split(), "--help") == call(capsys, *words, "--help")
    wrong = [*former.split(), "--no-such-option"]
    assert call(capsys, *wrong) == call(capsys, *words, "--no-such-option")
    listed = [line.split()[0] for line in call(capsys, "--help")[1].splitlines() if re.match("  [a-z]", line)]
    assert former.split()[0] not in listed


@pytest.mark.parametrize("group", ["kafka", "spark", "jvm", "image"])
def test_a_former_group_leads_to_its_heir(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    heir = call(capsys, "get", group, "--help")
    assert heir[0] == 0
    assert call(capsys, group) == call(capsys, group, "--help") == heir
    code, out, err = call(capsys, group, "nosuch")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"are `wrackline get {group}` now" in err


@pytest.mark.parametrize(
    ("former", "now", "said"),
    [
        (["faults", "kill", "--json"], ["list", "faults", "kill", "--output", "json"], '"name": "kill"'),
        (["kafka", "remove", "4.4.0"], ["get", "kafka", "--remove", "4.4.0"], "is not installed"),
        (["jvm", "check", "--heap", "x"], ["get", "jvm", "--check", "--heap", "x"], "'x' is no size"),
        (["image", "remove", "x"], ["get", "image", "--remove", "x"], "'x' is no digest"),
        (["dataset", "d", "nosuch"], ["history", "table", "d", "nosuch"], "no such folder"),
        (["export", "nosuch"], ["history", "export", "nosuch"], "no such run"),
        (["import", "nosuch"], ["history", "import", "nosuch"], "does not exist"),
    ],
)
def test_a_former_command_answers_as_it_did(
    former: list[str],
    now: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("WRACKLINE_KAFKA_DIR", "/var/lib/wrackline-none/kafka")
    monkeypatch.chdir(tmp_path)
    before = call(capsys, *former)
    assert before == call(capsys, *now)
    assert said in before[1] + before[2]
    assert before[0] in (0, 2)


def test_every_command_that_has_json_has_output_json(capsys: pytest.CaptureFixture[str]) -> None:
    """``--json`` by itself is not listed any more; with a file it is another option."""
    found = set()
    for path, command in EVERY.items():
        former = [one for one in command.params if "--json" in one.opts and one.is_flag]  # type: ignore[attr-defined]
        if former:
            found.add(" ".join(path))
            [option] = [one for one in command.params if "--output" in one.opts]
            assert (option.name, option.default, former[0].name) == ("output", "table", "output")
            assert former[0].hidden  # type: ignore[attr-defined]
            assert "--output [table|json]" in call(capsys, *path, "--help")[1]
    assert found == {
        *("list faults", "list anomalies", "list parts", "runs", "explain", "check", "plan", "fleet list")
    }


def test_a_table_is_what_is_said_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    code, table, _ = call(capsys, "list", "faults", "kill")
    assert call(capsys, "list", "faults", "kill", "--output", "table") == (code, table, "")
    assert call(capsys, "list", "faults", "--json", "kill")[1].startswith("[")
    code, _, err = call(capsys, "runs", "--output", "xml")
    assert code == 2
    assert "'xml' is not one of 'table', 'json'" in err


def test_every_command_can_be_quiet_or_say_more() -> None:
    """But for the one that hands its words on to another program."""
    without = {
        path for path, one in EVERY.items() if not {"verbose", "quiet"} <= {p.name for p in one.params}
    }
    assert without == {("fleet", "ssh")}


def out_of_room(_spec: object) -> None:
    progress("thinking")
    raise OSError(errno.ENOSPC, "No space left on device", "here")


@pytest.mark.parametrize("option", ["", "-q", "--quiet", "-v"])
@pytest.mark.parametrize("first", [True, False])
def test_progress_is_said_unless_it_shall_be_quiet(
    option: str,
    first: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(plan, "forecast", out_of_room)
    call(capsys, "init", str(tmp_path / "x.yaml"))
    words, options = ["plan", str(tmp_path / "x.yaml")], [option] if option else []
    code, out, err = call(capsys, *(options + words if first else words + options))
    assert (code, out) == (2, "")
    quiet = option in ("-q", "--quiet")
    assert [line[:8] for line in err.splitlines()] == [*["thinking"][quiet:], "wracklin"]


def test_verbose_shows_where_it_went_wrong(tmp_path: Path) -> None:
    code = f"from wrackline.harness.cli.runs import run; del run.load_checked; {PROGRAM}"
    said = subprocess.run(
        [sys.executable, "-c", code, "run", "x.yaml", "-v"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert said.returncode == 4
    assert said.stderr.count("Traceback") == 1
    assert "in run_command" in said.stderr
    assert said.stderr.splitlines()[-1].startswith("wrackline broke down: NameError")


def test_what_is_logged_reaches_the_terminal_when_more_shall_be_said() -> None:
    """But not what clients say of brokers that are down."""

    def shown() -> list[str]:
        names = ("wrackline.history.store.files", "wrackline.nemesis", "wrackline.client", "paramiko")
        records = [logging.LogRecord(name, logging.WARNING, "", 0, "x", None, None) for name in names]
        return [one.name for one in records if Terminal().filter(one)]

    assert shown() == ["wrackline.history.store.files"]
    with restore_levels():
        logging.getLogger("wrackline").setLevel(logging.DEBUG)
        assert shown() == ["wrackline.history.store.files", "wrackline.nemesis"]
    assert shown() == ["wrackline.history.store.files"]


def test_quiet_and_verbose_exclude_each_other_and_hold_for_one_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = PROGRESS.level
    code, _, err = call(capsys, "list", "specs", "-q", "-v")
    assert code == 2
    assert "-v and -q exclude each other" in err
    assert call(capsys, "-q", "list", "-v", "specs")[0] == 2
    assert call(capsys, "list", "specs", "-q")[0] == 0
    assert (PROGRESS.level, logging.getLogger("wrackline").level) == (before, logging.NOTSET)


def test_a_progress_line_is_silent_when_it_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    from io import StringIO

    from rich.console import Console

    from wrackline.harness.run.live.progress import Progress

    said = {}
    for level in (logging.WARNING, logging.INFO, logging.DEBUG):
        monkeypatch.setattr(PROGRESS, "level", level)
        PROGRESS.manager._clear_cache()  # type: ignore[attr-defined]
        screen = StringIO()
        with Progress(Console(file=screen)) as progress:
            progress.say("began")
            progress.status("one")
            progress.status("two")
        said[level] = screen.getvalue().split()
    monkeypatch.undo()
    PROGRESS.manager._clear_cache()  # type: ignore[attr-defined]
    assert list(said.values()) == [[], ["began", "one"], ["began", "one", "two"]]


def test_the_program_by_itself_shows_its_help_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """It was one line of 3,000 letters."""
    for group in ([], ["get"], ["fleet"]):
        _, help_, _ = call(capsys, *group, "--help")
        code, out, err = call(capsys, *group)
        assert (code, out) == (2, "")
        assert err == help_


@pytest.mark.parametrize(("word", "command"), SUGGESTIONS.items())
def test_a_word_of_another_program_leads_to_the_command(
    word: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (command == "--help") or tuple(one for one in command.split() if one[0] != "-") in EVERY
    assert tuple(word.split()) not in EVERY
    code, out, err = call(capsys, *word.split(), "x")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"Did you mean `wrackline {command}`?" in err


def test_every_option_of_simulate_stands_below_one_heading(capsys: pytest.CaptureFixture[str]) -> None:
    own = {one.opts[0] for one in EVERY["simulate",].params if isinstance(one, click.Option)}
    headed = [name for names in SIMULATE.values() for name in names]
    assert sorted(headed) == sorted(own - {"-v", "-q"})
    _, out, _ = call(capsys, "simulate", "--help")
    headings = [line[:-1] for line in out.splitlines() if re.fullmatch(r"[A-Z].*:", line)]
    assert headings == [*SIMULATE, "Other options", "Commands"]
    for heading, names in SIMULATE.items():
        below = out.split(f"\n{heading}:\n")[1].split("\n\n")[0]
        assert re.findall(r"^  (--[a-z-]+)", below, re.MULTILINE) == list(names)


def completed(words: str) -> list[str]:
    """What a shell is offered after ``words``."""
    asked = {"_WRACKLINE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return [line.partition(",")[2] for line in said.stdout.splitlines()]


def test_the_shell_completes_commands_and_options() -> None:
    assert completed("wrackline va") == ["validate"]
    assert completed("wrackline get ") == ["kafka", "spark", "jvm", "image"]
    assert completed("wrackline kafka install --cl") == ["--client"]
    assert set(completed("wrackline ")) == set(wrackline.entries)
    assert completed("wrackline runs --output ") == ["table", "json"]


def test_bash_takes_the_line_of_the_page(tmp_path: Path) -> None:
    """The page on runs has it."""
    page = (Path(__file__).parents[3] / "docs" / "running.md").read_text()
    [line] = re.findall(r'`(eval "\$\(_WRACKLINE_COMPLETE=bash_source wrackline\)")`', page)
    program = tmp_path / "wrackline"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}\n")
    program.chmod(0o755)
    script = f"""{line}
COMP_WORDS=(wrackline site bu) COMP_CWORD=2
_wrackline_completion wrackline
echo "${{COMPREPLY[@]}}" """
    said = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    assert said.stdout == "build\n", said.stderr
