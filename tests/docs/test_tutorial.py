"""The tutorial is true: its commands exist, and by night they are carried out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wrackline.harness.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
CANARY = "wrackline run suites/demo-canary.yaml"


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_its_commands_are_ours() -> None:
    launcher = (ROOT / "wrack").read_text(encoding="utf-8")
    assert CANARY in commands()
    assert len(commands()) >= 9
    for line in commands():
        program, command, *rest = line.removeprefix("sudo ").split()
        assert program in ("wrackline", "./wrack"), line
        assert command in COMMANDS or (program == "./wrack" and f"\n{command})\n" in launcher), line
        assert [word for word in rest if word.startswith("suites/") and not (ROOT / word).exists()] == [], (
            line
        )


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_its_commands_end_as_it_says(tmp_path: Path) -> None:
    """The canary's exit code is 1, that of all others 0."""
    (tmp_path / "suites").symlink_to(ROOT / "suites")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ours = [line for line in commands() if line.startswith("wrackline ")]
    codes = {
        line: subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env={**os.environ, "PATH": path}, timeout=600, check=False
        ).returncode
        for line in ours
    }
    assert codes == {line: int(line == CANARY) for line in ours}
    verdicts = [
        path.parent.name.split("-", 1)[1][:-5] for path in sorted(tmp_path.glob("results/*/report.html"))
    ]
    assert verdicts == ["first", "demo-canary", "demo-canary"]
