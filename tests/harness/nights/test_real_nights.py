"""A night of real runs on folders of this machine: killed in the midst, gone on with, and its violation made
smaller."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.journal import read

pytestmark = [pytest.mark.nightly, pytest.mark.slow]
ROOT = Path(__file__).parents[3]
WRACKLINE = (sys.executable, "-m", "wrackline.harness.cli.entry")


def test_a_night_is_killed_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "night.yaml"
    file.write_text("name: lap\nkeep_free_mb: 0\nruns: [{spec: laptop.yaml, seeds: [1, 3]}]\n")
    command = [*WRACKLINE, "suite", str(file), "--results", str(tmp_path / "results")]
    first = subprocess.Popen(command, cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("results/nights/*/runs/*/history.wal")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    first.kill()
    first.wait()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    [here] = tmp_path.glob("results/nights/*")
    state = read(here)
    assert set(state.results) == {"laptop.s1", "laptop.s3"}
    assert {one.verdict for one in state.results.values()} <= {Verdict.PASS, Verdict.INCONCLUSIVE}
    assert (here / "junit.xml").exists()
    assert "going on with" in done.stdout
