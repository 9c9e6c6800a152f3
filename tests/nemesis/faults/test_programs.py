"""Programs of faults start, are looked at and end, in a real shell."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path, PurePosixPath

import pytest

from wrackline.nemesis.faults import programs


@pytest.fixture
def where(tmp_path: Path) -> str:
    """Folders of programs lie where we say."""
    return programs.below(PurePosixPath(tmp_path / "a root"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same, as we see it."""
    return tmp_path / "a root" / programs.FOLDER[1:]


def sh(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)


def alive(pid: int) -> bool:
    """Whether it runs: one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_program_is_waited_for_and_ends_with_what_it_started(where: str, folder: Path) -> None:
    began = time.monotonic()
    done = sh(
        programs.start(
            "f1", "sleeper", "sleep 0.3; echo ready; sleep 99 & sleep 98", ready="^ready", where=where
        )
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began >= 0.3
    pid = int((folder / "f1/sleeper/pid").read_text())
    assert alive(pid)
    assert os.getsid(pid) == pid
    said = sh(programs.log("f1", "sleeper", where)).stdout
    assert said == "-- running\nready\n"
    children = sh(f"ps -o pid= --ppid {pid}").stdout.split()
    assert len(children) == 2
    assert sh(programs.end("f1", "sleeper", where=where)).stdout == "ready\n"
    assert not [one for one in (pid, *map(int, children)) if alive(one)]
    assert list(folder.iterdir()) == []


def test_starting_twice_is_starting_once(where: str, folder: Path) -> None:
    start = programs.start("f1", "sleeper", "echo up; exec sleep 99", ready="up", where=where)
    assert sh(start).returncode == 0
    pid = (folder / "f1/sleeper/pid").read_text()
    assert sh(start).returncode == 0
    assert (folder / "f1/sleeper/pid").read_text() == pid
    sh(programs.end("f1", "sleeper", where=where))
    assert not alive(int(pid))


def test_one_that_dies_or_is_never_ready_says_so(where: str) -> None:
    died = sh(programs.start("f1", "dying", "echo no such device; exit 3", ready="up", where=where))
    assert died.returncode == 1
    assert died.stderr == "dying ended at once: no such device\n"
    late = sh(programs.start("f1", "late", "exec sleep 99", ready="up", wait_s=1, where=where))
    assert late.returncode == 1
    assert "late was not ready within 1 s" in late.stderr
    assert sh(programs.log("f1", "dying", where)).stdout == "-- ended\nno such device\n"
    sh(programs.end("f1", "dying", where=where) + "; " + programs.end("f1", "late", where=where))


def test_what_is_left_is_listed_and_ending_nothing_is_no_error(where: str) -> None:
    sh(programs.start("f2", "left", "exec sleep 99", where=where))
    listed = programs.left(where)
    assert sh(listed).stdout == "f2/left\n"
    assert sh(programs.end("f2", "left", where=where)).returncode == 0
    assert sh(programs.end("f2", "left", where=where)).returncode == 0
    assert sh(listed).stdout == ""


def test_a_name_that_is_no_word_is_refused() -> None:
    with pytest.raises(ValueError, match="letters"):
        programs.start("f1", "a b", "true")
