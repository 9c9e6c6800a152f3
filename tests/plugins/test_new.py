"""`wrackline new` writes a package that can be installed, is found, and passes its own test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from wrackline.harness.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.apart]

ROOT = Path(__file__).parents[2]
KINDS = ("fault", "workload", "system", "fleet", "check")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_skeletons_are_installed_found_and_pass_their_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All five beside each other, as somebody has them who adds one of each."""
    site = tmp_path / "site"
    folders = {kind: tmp_path / f"wrackline-new-{kind}" for kind in KINDS}
    for kind, folder in folders.items():
        code, out, err = call(capsys, "new", kind, f"new-{kind}", "--into", str(tmp_path))
        assert (code, err) == (0, "")
        assert f"pip install --no-deps --editable {folder}" in out
        text = "".join(file.read_text() for file in folder.rglob("*") if file.is_file())
        assert f"new-{kind}" in text
        assert "xample" not in text

    def python(*arguments: str | Path) -> str:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
        command = [sys.executable, "-P", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=840, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", site)
    python("-m", "pip", "install", *options, *folders.values())
    listed = orjson.loads(python("-m", "wrackline.harness.cli.entry", "plugins", "--json"))
    found = {
        row["distribution"]: (row["kind"], row["name"], row["problem"])
        for row in listed
        if row["distribution"].startswith("wrackline-new-")
    }
    assert found == {f"wrackline-new-{kind}": (kind, f"new-{kind}", "") for kind in KINDS}
    tests = [folder / "tests" for folder in folders.values()]
    told = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", *tests)
    for kind in KINDS:
        assert re.search(rf"^PASSED \S+/test_{kind}\.py::", told, re.MULTILINE), told


def test_the_skeletons_fit_the_linter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in KINDS:
        assert call(capsys, "new", kind, f"my-{kind}", "--into", str(tmp_path))[0] == 0
    for command in (["format", "--check"], ["check"]):
        call_ = [
            sys.executable,
            "-m",
            "ruff",
            *command,
            "--config",
            str(ROOT / "pyproject.toml"),
            str(tmp_path),
        ]
        done = subprocess.run(call_, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("fault", "kill"), "there is a fault 'kill' already (`wrackline list parts` lists all); take"),
        (("fault", "My Fault"), "'My Fault' is no name for a fault: at most 40 of a-z, 0-9 and -, such as"),
        (("fault", "there"), "wrackline-there exists, and is left as it is; take another name"),
        (("vault", "x"), "'vault' is not one of 'fault', 'workload', 'check', 'system', 'fleet'"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], line: str
) -> None:
    (tmp_path / "wrackline-there").mkdir()
    code, out, err = call(capsys, "new", *arguments, "--into", str(tmp_path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert line in err
    assert list((tmp_path / "wrackline-there").iterdir()) == []
