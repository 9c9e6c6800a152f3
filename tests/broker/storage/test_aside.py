"""What was put aside is kept up to a limit: the oldest goes first, with a line, and never what is fresh."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from wrackline.broker.storage.aside import AsideLimits, limit_aside

MANY = 1 << 40


@pytest.fixture
def asides(tmp_path: Path) -> list[Path]:
    """Files and directories of 100 bytes, oldest first, beside logs that are in use."""
    made = []
    for number in range(6):
        log = tmp_path / f"log-{number}"
        log.mkdir()
        (log / "00000000000000000000.log").write_bytes(bytes(1_000))
        if number % 2:
            path = tmp_path / f"log-{number}.0123.damaged"
            path.mkdir()
            (path / "00000000000000000000.log").write_bytes(bytes(100))
        else:
            path = log / "00000000000000000000.log.damaged.3"
            path.write_bytes(bytes(100))
        made.append(path)
        _until_the_clock_of_files_moves(path)
    return made


def _until_the_clock_of_files_moves(path: Path) -> None:
    """It moves by a few milliseconds at a time."""
    since, probe = path.stat().st_ctime_ns, path.parent.parent / "probe"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        probe.write_bytes(b"")
        os.utime(probe)
        if probe.stat().st_ctime_ns > since:
            return
    raise AssertionError("the clock of files stands still")


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (AsideLimits(6, MANY), 6),
        (AsideLimits(4, MANY), 4),
        (AsideLimits(100, 300), 3),
        (AsideLimits(0, 0), 0),
    ],
)
def test_the_oldest_goes(
    tmp_path: Path, asides: list[Path], limits: AsideLimits, kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    removed = limit_aside(tmp_path, limits, ())
    assert [path.exists() for path in asides] == [False] * (6 - kept) + [True] * kept
    assert sorted(removed) == sorted(asides[: 6 - kept])
    assert all(any(str(path) in line for line in caplog.messages) for path in removed)
    assert len(caplog.messages) == 6 - kept
    assert all((tmp_path / f"log-{n}" / "00000000000000000000.log").exists() for n in range(6)), "of logs"


def test_what_was_put_aside_just_now_stays_however_much_it_is(tmp_path: Path, asides: list[Path]) -> None:
    """It may be the last copy, and nobody has seen the line that names it yet."""
    fresh = asides[:2]
    limit_aside(tmp_path, AsideLimits(1, 50), fresh)
    assert [path.exists() for path in asides] == [True, True, False, False, False, False]
