"""Ctrl-C or SIGTERM before the command has begun: one line and exit code 130, wherever Python is reading at
that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("slow", "command"),
    [("click", "doctor"), ("pydantic", "validate"), ("numpy", "check"), ("pyarrow", "runs")],
)
def test_a_signal_while_modules_are_read_is_one_line(
    tmp_path: Path, slow: str, command: str, number: signal.Signals
) -> None:
    """A module that the command needs takes its time; whatever it does with exceptions makes no
    difference."""
    (tmp_path / f"{slow}.py").write_text(
        "import sys, time\nprint('reading', flush=True)\ntry:\n    time.sleep(60)\nexcept BaseException as "
        "wrong:\n"
        "    raise ImportError('interrupted') from wrong\n"
    )
    begun = subprocess.Popen(
        [sys.executable, "-m", "wrackline.harness.cli.entry", command, "nosuch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
    )
    with begun:
        assert begun.stdout is not None
        assert begun.stdout.readline() == "reading\n"
        begun.send_signal(number)
        out, err = begun.communicate(timeout=90)
    assert (begun.returncode, out) == (130, "")
    assert err == "wrackline: stopped before anything was begun\n"


def test_the_wrackline_script_starts_at_this_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["wrackline"] == "wrackline.harness.cli.entry:main"


def test_it_ends_with_the_commands_own_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wrackline.harness.cli.entry", "nosuch"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
