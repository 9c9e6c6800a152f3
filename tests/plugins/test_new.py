"""`wrackline new` writes a package that can be installed, is found, and passes its own test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from wrackline.harness.cli.main import main

pytestmark = [pytest.mark.slow, pytest.mark.apart]

ROOT = Path(__file__).parents[2]
KINDS = ("fault", "workload", "system", "fleet", pytest.param("check", marks=pytest.mark.spark))


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.mark.parametrize("kind", KINDS)
def test_a_skeleton_is_installed_found_and_passes_its_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    code, out, err = call(capsys, "new", kind, "brand-new", "--into", str(tmp_path))
    assert (code, err) == (0, "")
    folder, site = tmp_path / "wrackline-brand-new", tmp_path / "site"
    assert f"pip install --no-deps --editable {folder}" in out
    text = "".join(file.read_text() for file in folder.rglob("*") if file.is_file())
    assert "brand-new" in text
    assert "xample" not in text

    def python(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
        command = [sys.executable, "-P", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(site))
    python("-m", "pip", "install", *options, str(folder))
    rows = orjson.loads(python("-m", "wrackline.harness.cli.entry", "plugins", "--json"))
    [row] = [row for row in rows if row["distribution"] == "wrackline-brand-new"]
    assert (row["kind"], row["name"], row["problem"]) == (kind, "brand-new", "")
    assert " passed" in python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests"))


def test_the_skeletons_fit_the_linter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("fault", "workload", "system", "fleet", "check"):
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
        done = subprocess.run(call_, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("fault", "kill"), "there is a fault 'kill' already (`wrackline plugins` lists all); take another"),
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
