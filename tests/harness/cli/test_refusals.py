"""Wrong input of every kind that newcomers were seen to give: lines on standard error that name the place and
the mend, nothing else, exit code 2.

A block of a file in `refusals` is a call after ``$``, or `validate x.yaml` where there is none; then what its
file contains; then after ``=>`` each line that is said. ``...`` at the end of a line stands for
its rest, such as a list that grows.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.cli.calling import call

VALIDATE = "validate x.yaml"
LONGEST = 600


def blocks(file: Path) -> Iterator[str]:
    for block in re.split(r"\n{2,}", file.read_text().strip()):
        if not re.fullmatch(r"# [A-Z].*", block):
            yield block


REFUSALS = [
    pytest.param(block, id=f"{file.stem}: {' '.join(block.split())[:60]}")
    for file in sorted(Path(__file__).with_name("refusals").glob("*.txt"))
    for block in blocks(file)
]


@pytest.mark.parametrize("block", REFUSALS)
def test_wrong_input_is_refused_with_its_place_and_the_mend(
    block: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WRACKLINE_RESULTS", "nowhere")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    Path("fine.yaml").write_text("name: a\nnemesis: {schedule: []}\n")
    lines = block.splitlines()
    [typed] = [line[2:] for line in lines if line.startswith("$ ")] or [VALIDATE]
    expected = [line[3:] for line in lines if line.startswith("=> ")]
    arguments = shlex.split(typed)
    content = [line for line in lines if not line.startswith(("$ ", "=> "))]
    if content or typed == VALIDATE:
        [file] = [word for word in arguments if word.endswith((".yaml", ".edn"))]
        Path(file).write_text("\n".join(content) + "\n")
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    for line, wanted in zip(err.splitlines(), expected, strict=True):
        assert line.startswith(wanted.removesuffix("...")) if wanted.endswith("...") else line == wanted
        assert len(line) < LONGEST
    assert not list(Path("nowhere").glob("*")), "nothing was begun"
