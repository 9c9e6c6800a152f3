"""Ctrl-C and SIGTERM while a real Spark judges: one line, exit code 130, and nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.checkers.histories import History

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.real, pytest.mark.apart]


def of_session(leader: int) -> list[str]:
    """The commands of a session's processes that live: a zombie is nobody's any more."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(") ")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(stat.with_name("cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it has just ended
    return found


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    history = History("20260101T000000Z-a-0001")
    for value in range(40):
        history.send(0, (value, value))
    return history.write(tmp_path / "results" / "20260101T000000Z-a-0001")


MOMENTS = {
    "the JVM starts": lambda said, lives: "starting Spark" in said and any("java" in one for one in lives),
    "Spark works": lambda said, lives: "judging" in said and any("pyspark.daemon" in one for one in lives),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_while_it_judges_is_one_line_and_leaves_no_jvm(
    tmp_path: Path, run_dir: Path, number: signal.Signals, moment: str
) -> None:
    said = tmp_path / "said"
    with said.open("w") as err:
        begun = subprocess.Popen(
            [sys.executable, "-m", "wrackline.harness.cli.entry", "analyze", str(run_dir), "--engine=spark"],
            stdout=err,
            stderr=err,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        while not MOMENTS[moment](said.read_text(), of_session(begun.pid)):
            assert begun.poll() is None, said.read_text()
            time.sleep(0.05)
        before = said.read_text()
        begun.send_signal(number)
        assert begun.wait(120) == 130
        [line] = said.read_text().removeprefix(before).splitlines()
        assert line == (
            "wrackline: stopped while judging, and no verdict was written; "
            f"`wrackline analyze {run_dir}` begins anew"
        )
        deadline = time.monotonic() + 30  # Spark's Python workers see that their JVM has gone
        while left := of_session(begun.pid):
            assert time.monotonic() < deadline, left
            assert not [one for one in left if "java" in one]
            time.sleep(0.1)
    finally:
        begun.kill()
        begun.wait()
    assert [one.name for one in run_dir.parent.iterdir()] == [run_dir.name]
    assert not (run_dir / "verdict.json").exists()
