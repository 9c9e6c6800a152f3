"""Ten nights for the whole area; the tests read them and build their sites elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from upath import UPath

from tests.harness.index.nights import night
from tests.harness.report import synthetic_run
from tests.harness.report.browser import chromium
from wrackline.harness.index.collect import Kept, gather
from wrackline.harness.index.runs import Run, beside, shown
from wrackline.harness.report import write_report

__all__ = ("all_runs", "chromium", "ten_nights")
SLOW, FROM = 90.0, 8


@pytest.fixture(scope="session")
def ten_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """acks-all passes and becomes slow with version 4.1.0 in the ninth night; power-cut loses records in the
    third and the eighth, where it is repeated; beside them one run that has a history and a report."""
    results = tmp_path_factory.mktemp("ten") / "results"
    for number in range(10):
        version = "4.1.0" if number >= FROM else "4.0.0"
        p99 = SLOW if number >= FROM else 40.0 + number % 3
        runs = [{"seed": seed, "version": version, "p99_ms": p99 + seed / 10} for seed in (1, 2)]
        lost = number in (2, 7)
        cut = {
            "name": "power-cut",
            "verdict": "violation" if lost else "pass",
            "anomalies": ("lost-write",) if lost else (),
            "guided": "cut-the-leader",
            "version": version,
        }
        runs.append(cut)
        if number == 7:
            runs += [{**cut, "seed": 8, "task": "power-cut.s7~repeat-1"}]
            runs += [{**cut, "seed": 9, "task": "power-cut.s7~repeat-2", "verdict": "pass", "anomalies": ()}]
        night(results, number, runs)
    alone = synthetic_run.write_run(results / synthetic_run.TEST_ID)
    write_report(alone)
    return results


@pytest.fixture(scope="session")
def all_runs(ten_nights: Path) -> list[Run]:
    return shown(gather(UPath(ten_nights), Kept()), beside(ten_nights / "site"))
