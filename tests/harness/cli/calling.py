"""The command line as a person types it, in this process."""

from __future__ import annotations

import pytest

from wrackline.harness.cli.main import main


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, and what is said on standard output and on standard error."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a call that ended with exit code 2."""
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    return line
