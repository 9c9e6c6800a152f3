"""One synthetic run for the whole area: the tests read it and write their reports elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harness.report import synthetic_run
from tests.harness.report.synthetic_incidents import add_incidents
from wrackline.harness.report import write_report


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged run with its report; not to be changed."""
    run_dir = synthetic_run.write_run(tmp_path_factory.mktemp("runs") / synthetic_run.TEST_ID)
    write_report(run_dir)
    return run_dir


@pytest.fixture(scope="session")
def with_incidents(whole_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with incidents in its verdict, and its report; not to be changed."""
    run_dir = Path(shutil.copytree(whole_run, tmp_path_factory.mktemp("incidents") / whole_run.name))
    add_incidents(run_dir)
    write_report(run_dir)
    return run_dir


@pytest.fixture
def own_incidents(with_incidents: Path, tmp_path: Path) -> Path:
    """A copy of the run with incidents, for tests that change it."""
    return Path(shutil.copytree(with_incidents, tmp_path / with_incidents.name))


@pytest.fixture
def own_run(whole_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, for tests that break it."""
    return Path(shutil.copytree(whole_run, tmp_path / whole_run.name))
