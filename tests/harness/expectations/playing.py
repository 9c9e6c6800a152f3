"""Runs whose verdicts are known beforehand, without their systems, or by the command on real hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from wrackline.harness.expectations import runs
from wrackline.harness.run import judge as judging
from wrackline.harness.run.judge import Judged
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.specification.spec import Spec

LOST = ("lost-write", "violation", 640)


def judged(run_dir: Path, word: str, *found: tuple[str, str, int], **more: Any) -> Judged:
    """``found``: anomaly, meaning, count. ``more``: further keys of the verdict."""
    anomalies = [{"anomaly": name, "meaning": meaning, "count": count} for name, meaning, count in found]
    verdict = {"verdict": word, "anomalies": anomalies, "reasons": ["why"], "counts": {"acked_records": 900}}
    return Judged(run_dir, {**verdict, **more}, None)


def made_on_paper(
    monkeypatch: pytest.MonkeyPatch, judge: Callable[[Path], Judged], *, until: int | None = None
) -> list[Spec]:
    """The specifications of the runs that `play` makes from now on. ``judge`` gives each run's folder
    (``1-NAME``) its verdict; after run number ``until`` the user asks for an end."""
    made: list[Spec] = []

    def run(spec: Spec, options: Options) -> Outcome:
        made.append(spec)
        folder = options.results / f"{len(made)}-{spec.name}"
        return Outcome(folder, (), True, interrupted=len(made) == until)

    def all_together(run_dirs: Sequence[Path], **_: Any) -> list[Judged]:
        assert len(run_dirs) == len(made)
        return [judge(each) for each in run_dirs]

    monkeypatch.setattr(runs, "run", run)
    monkeypatch.setattr(judging, "judge", all_together)
    return made


def made_on_hosts(tmp_path: Path, *arguments: str) -> list[dict[str, Any]]:
    """The rows of the table that ``wrackline known ...`` writes; all is as it must be."""
    table = tmp_path / "table.json"
    entry = [sys.executable, "-m", "wrackline.harness.cli.entry", "known"]
    environment = {**os.environ, "WRACKLINE_RESULTS": str(tmp_path / "results"), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [*entry, *arguments, "--json", str(table)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, Any]] = orjson.loads(table.read_bytes())
    return rows
