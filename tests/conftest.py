"""What every test shares: Hypothesis draws the same examples in every run, so a pass is a pass for everybody.

`HYPOTHESIS_PROFILE=search` draws new ones instead, five times as many; what it finds becomes an example of
its own.

Tests run side by side (`./wrack test`, or `pytest -n 4`) as well as one after another (`pytest`).
"""

from __future__ import annotations

import functools
import gc
import logging
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.clean import clean, folders_mounted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=500, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

STATE_ROOT = Path(f"/var/tmp/wl-test-{os.getpid()}")
RUNS_ROOT = Path(f"/var/tmp/wl-test-runs-{os.getpid()}")
LONG = ("spark", "fleet", "slow")
"""Markers of tests that take long: they begin first, so that no worker is left alone with them at the end."""
SECOND_TRY = {"fleet", "real", "spark"}
"""Markers of tests that `./wrack test` runs once more where they failed."""


def pytest_sessionstart() -> None:
    """Fleets that a killed run of the tests left: each lies below a temporary folder that no later run
    knows. Once, before there are workers: a fleet that is dead later is dead because a test wants it so."""
    if "PYTEST_XDIST_WORKER" not in os.environ:  # which what a test starts inherits
        for folder in folders_mounted():
            with suppress(FleetError):  # one of another version of this project is not ours to read
                clean(folder.root)
    # Real runs clear up below their state root when they begin: theirs must not be the root of another
    # worker.
    os.environ["WRACKLINE_STATE_DIR"] = str(RUNS_ROOT)


def pytest_sessionfinish() -> None:
    clean(RUNS_ROOT)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Thousands of tests and what they import live to the end: to look for garbage among them takes a third
    of the time that collecting takes, in every worker, and then some in every test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not any(item.get_closest_marker(mark) for mark in LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file go to one worker: its fixtures are made once. Where a file says
    `pytest.mark.apart`, each of its tests goes to whoever is free.

    One worker takes the tests that ask Spark, so that there is one session of it, which has both processors
    when it wants them; the others wait for brokers and hosts meanwhile, and help it when they are done."""
    from xdist.scheduler import LoadFileScheduling

    @functools.cache
    def text(file: str) -> str:
        # The process that deals the tests out has not collected them: it knows their names alone.
        return (config.rootpath / file).read_text()

    def asks_spark(scope: str) -> bool:
        words = text(scope.partition("::")[0])
        return "pytest.mark.spark" in words and "pytest.mark.fleet" not in words

    class Scheduling(LoadFileScheduling):
        def remove_node(self, node: Any) -> str | None:
            """What a worker that died was at has failed, and the rest of its work is for others. (xdist hands
            out again what had failed, and files that were done, too. A worker that gets nothing but these
            has nothing to say, so it gets nothing more, and the run never ends.)"""
            work = self.assigned_work.pop(node)
            left = [test for unit in work.values() for test, done in unit.items() if not done]
            if not left:
                return None
            for scope, unit in work.items():
                if left[0] in unit:
                    unit[left[0]] = True
                if not all(unit.values()):
                    self.workqueue[scope] = unit
            for other in self.nodes:
                self._reschedule(other)
            return left[0]

        def _reschedule(self, node: Any) -> None:
            super()._reschedule(node)
            # It begins a test only when it knows the next one; in place of a dead one it begins with none.
            while (
                self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2
            ):
                self._assign_work_unit(node)

        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if "pytest.mark.apart" in text(file) else file

        def _assign_work_unit(self, node: Any) -> None:
            of_spark = node is next(iter(self.assigned_work))
            for scope in self.workqueue:
                if asks_spark(scope) == of_spark:
                    self.workqueue.move_to_end(scope, last=False)
                    break
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False  # else the files with most tests come first, not the longest
    return Scheduling(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests of a process."""
    from wrackline.checkers.engine.spark.session import session  # late: most workers have no use for Spark

    few = {"spark.sql.shuffle.partitions": "2"}  # for queries of docs/export-to-sql.md; the judge asks none
    with session("local[2]", memory="1g", brief=True, properties=few) as spark:
        yield spark


@pytest.fixture(scope="module")
def judged_runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Path, Any]:
    """Run directory -> verdict, of the runs that the test's file writes by its function
    ``write_runs(folder)``. They are judged in this process, all in one analysis."""
    from wrackline.checkers.analysis import analyze  # late: most workers have no use for it

    runs = request.module.write_runs(tmp_path_factory.mktemp("judged"))
    return dict(zip(runs, analyze(runs, engine="local"), strict=True))


@pytest.fixture(scope="session")
def bundle_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where bundles of the broker are packed, once for all workers: to pack one takes seconds."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "bundles"


@pytest.fixture(scope="session")
def state_root() -> Iterator[Path]:
    """Where the fleets of this process's tests lie."""
    yield STATE_ROOT
    clean(STATE_ROOT)
    assert not STATE_ROOT.exists(), "the tests left something below their state root"


@pytest.fixture(autouse=True)
def _logging_stays_as_it_was() -> Iterator[None]:
    """The commands that tests call in this process set logging up for a process of their own: a handler of
    theirs would write to a standard error that was closed when its test ended, in the middle of what another
    test captures."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    for handler in [handler for handler in root.handlers if handler not in before]:
        root.removeHandler(handler)
    root.setLevel(level)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """For `./wrack test`: how many tests passed and how many were skipped, since pytest is content with none;
    then, unless some were not run for it or none may be run again, each that failed, with the reason."""
    if not (tally := os.environ.get("WRACK_TALLY")):
        return
    stats = terminalreporter.stats
    reports = [one for word in ("error", "failed") for one in stats.get(word, ())]
    failed = {one.nodeid: _reason(one) for one in reports}
    passed = sum(one.nodeid not in failed for one in stats.get("passed", ()))
    lines = [f"{passed} {len(stats.get('skipped', ()))}"]
    if not config.option.maxfail and any(map(_may_be_run_again, reports)):
        lines += [f"{test}\t{reason}" for test, reason in failed.items()]
    Path(tally).write_text("\n".join(lines) + "\n")


def _may_be_run_again(report: pytest.TestReport | pytest.CollectReport) -> bool:
    """Tells whether a test is of real hosts or processes; what killed its worker may have been one. A file
    that cannot be imported has no test."""
    if isinstance(report, pytest.CollectReport):
        return False
    return not report.keywords or not SECOND_TRY.isdisjoint(report.keywords)


def _reason(report: pytest.TestReport) -> str:
    """In one line: of an exception its type and its message, of a worker that died what xdist says."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).strip().partition("\n")[0]
