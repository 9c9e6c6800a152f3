"""A run on paper (run_doubles), for every test here that wants one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.doubles import PaperNemesis, Stage, mock_cluster, paper_parts


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with mock_cluster() as bootstrap:
        parts, fleet, system = paper_parts(bootstrap)
        monkeypatch.setattr("wrackline.harness.run.runner.build_parts", lambda _spec, _test_id: parts)
        monkeypatch.setattr(
            "wrackline.harness.run.live.live.Nemesis", type("N", (PaperNemesis,), {"trail": fleet.trail})
        )
        yield Stage(fleet, system, tmp_path / "results", io.StringIO())
