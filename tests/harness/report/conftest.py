"""One synthetic run for the whole area: the tests read it and write their reports elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harness.report import synthetic_run
from wrackline.harness.report import write_report


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged run with its report; not to be changed."""
    run_dir = synthetic_run.write_run(tmp_path_factory.mktemp("runs") / synthetic_run.TEST_ID)
    write_report(run_dir)
    return run_dir


@pytest.fixture
def own_run(whole_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, for tests that break it."""
    return Path(shutil.copytree(whole_run, tmp_path / whole_run.name))
