"""The plugin of pytest (docs/pytest.md): ``pytest --wrackline`` and the fixtures ``fleet``, ``cluster``,
``history`` and ``judged``.

pytest imports this module wherever Wrackline is installed, so it imports nothing of ours before a test asks
for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from wrackline.fleets.base import Fleet
    from wrackline.harness.extend.scenario import Cluster, History, Scenario
    from wrackline.harness.run.judge import Judged
    from wrackline.harness.specification.spec import Spec

T = TypeVar("T")

MARKER = "wrackline"
BASE = "wrackline_scenario"
"""The fixture that the others stand on."""
RUN = "wrackline run"
"""A property of each test that made a run: its verdict, where there is one, and its folder or report."""
SHORT_S = 10
"""What a test lasts at least unless its marker says something else: the specification's own minute is long
for a test."""
MARKER_LINE = (
    "wrackline(spec=None, **sections): the specification of the run (a file, or the name of one that comes "
    "with Wrackline, or a Spec), and sections such as topic={'partitions': 1} that change it"
)
NEEDS_OPTION = "makes hosts: `pytest --wrackline` runs it (as root)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(
        "wrackline", "Wrackline: tests that make hosts, break a cluster and judge its history"
    )
    group.addoption(
        "--wrackline",
        action="store_true",
        help="Run the tests with the fixtures fleet, cluster, history or judged: they make hosts (as root).",
    )
    group.addoption(
        "--wrackline-results",
        metavar="FOLDER",
        type=Path,
        help="Where their runs are kept. Default: $WRACKLINE_RESULTS, or ./results.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_LINE)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--wrackline"):
        for item in items:
            if BASE in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=NEEDS_OPTION))


# --- the fixtures -----------------------------------------------------------------------------------------


class Judge:
    """The fixture ``judged``: call it for the verdict. A test that has it fails unless its run passes,
    whether it was called or not."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.called = False

    def __call__(self, *, must_pass: bool = True) -> Judged:
        """End the load, heal, read everything back, remove the hosts, judge. With ``must_pass`` the test
        fails here, with the findings, unless the verdict is `pass` or `reproduced`."""
        from wrackline.harness.extend.scenario import in_words
        from wrackline.harness.run.judge import exit_code

        self.called = True
        result = _refusing(self._scenario.judge)
        if must_pass and exit_code([result.word]) != 0:
            pytest.fail(in_words(result), pytrace=False)
        return result


@pytest.fixture
def wrackline_spec(request: pytest.FixtureRequest) -> Spec:
    """The specification of the test's run, from its markers."""
    return _refusing(lambda: _spec_of(request.node))


@pytest.fixture(name=BASE)
def _scenario(request: pytest.FixtureRequest, wrackline_spec: Spec) -> Iterator[Scenario]:
    """A run that has a folder and nothing else; whatever was made for it is removed when the test is over."""
    from wrackline.harness.extend.scenario import Scenario
    from wrackline.harness.run.results import default_dir

    results = request.config.getoption("--wrackline-results") or default_dir()
    scenario = _refusing(lambda: Scenario(wrackline_spec, results.resolve()))
    request.node.stash[_SCENARIO] = scenario
    try:
        with _quiet_clients():
            yield scenario
    finally:
        scenario.close()


@contextmanager
def _quiet_clients() -> Iterator[None]:
    """Keeps what client libraries say of brokers that are down in the run's harness.log, and out of what
    pytest shows of a test that failed."""

    def others(record: logging.LogRecord) -> bool:
        return not record.name.startswith("wrackline.client")

    of_pytest = [one for one in logging.getLogger().handlers if type(one).__module__ == "_pytest.logging"]
    for handler in of_pytest:
        handler.addFilter(others)
    try:
        yield
    finally:
        for handler in of_pytest:
            handler.removeFilter(others)


@pytest.fixture
def fleet(wrackline_scenario: Scenario) -> Fleet:
    """Hosts, as the specification asks for them, with nothing on them yet."""
    return _refusing(wrackline_scenario.up)


@pytest.fixture
def cluster(wrackline_scenario: Scenario, fleet: Fleet) -> Cluster:  # noqa: ARG001 - it is deployed on them
    """The system on the hosts, ready, with its topic."""
    return _refusing(wrackline_scenario.deploy)


@pytest.fixture
def history(wrackline_scenario: Scenario, cluster: Cluster) -> History:  # noqa: ARG001 - clients talk to it
    """Clients at work on the cluster, at the asked rate, and the record of what they do."""
    return _refusing(wrackline_scenario.drive)


@pytest.fixture
def judged(wrackline_scenario: Scenario, history: History) -> Judge:  # noqa: ARG001 - it is judged
    """The verdict on the run, when it is called."""
    return Judge(wrackline_scenario)


def _refusing(make: Callable[[], T]) -> T:
    """Turns what is wrong with the input, the hosts, the cluster or Spark into one line, as on the command
    line."""
    from wrackline.errors import InfrastructureError, InputError
    from wrackline.harness.extend.scenario import ScenarioFailed
    from wrackline.harness.specification.spec import SpecError

    try:
        return make()
    except SpecError as error:
        why = "\n".join(error.mistakes)
    except (InfrastructureError, InputError, ScenarioFailed) as error:
        why = str(error)
    pytest.fail(why, pytrace=False)


# --- from markers to a specification ----------------------------------------------------------------------


def _spec_of(item: pytest.Item) -> Spec:
    """Markers of the module come first and those of the test last: each changes what was said before."""
    from wrackline.harness.specification.spec import Spec, SpecError, load_mapping, validated
    from wrackline.harness.specification.suites import suites_dir

    raw: dict[str, Any] = {"name": _name(item.name), "workload": {"duration_s": SHORT_S}}
    for marker in reversed(list(item.iter_markers(MARKER))):
        if len(marker.args) > 1:
            raise SpecError(
                f"{item.nodeid}: the marker wrackline takes one specification, and sections by name"
            )
        match marker.args:
            case (Spec() as spec,):
                raw = spec.model_dump(mode="json")
            case (str() | Path() as named,):
                beside, ours = item.path.parent / named, suites_dir() / named
                raw = load_mapping(beside if beside.exists() or not ours.exists() else ours)
            case (other,):
                raise SpecError(f"{item.nodeid}: the marker wrackline takes a file or a Spec, not {other!r}")
        raw = _merged(raw, marker.kwargs)
    return validated(raw, item.nodeid)


def _name(test: str) -> str:
    """A run's name, of that of the test."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_")).strip("-")
    return words[:40].rstrip("-") or "test"


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged, anything else is replaced."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        both[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return both


# --- what pytest says -------------------------------------------------------------------------------------

_SCENARIO = pytest.StashKey["Scenario"]()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """A test that has asked for `judged` and did not call it is judged when its body is through."""
    returned = yield
    judge = pyfuncitem.funcargs.get("judged")
    if isinstance(judge, Judge) and not judge.called:
        judge()
    return returned


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    scenario = item.stash.get(_SCENARIO, None)
    if scenario is not None and report.when == "call":
        line = _where(scenario)
        report.user_properties.append((RUN, line))
        if report.failed and scenario.judged is None:
            report.sections.append(("wrackline", line))
    return report


def _where(scenario: Scenario) -> str:
    run_dir, judged = scenario.live.run_dir, scenario.judged
    if judged is None:
        return f"not judged: what was recorded is in {run_dir}; `wrackline analyze {run_dir}` judges it"
    return f"{judged.word.value}: {judged.report or run_dir}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The runs that were made, with verdict and report."""
    told = [
        (report.nodeid, line)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, line in getattr(report, "user_properties", ())
        if name == RUN and getattr(report, "when", "") == "call"
    ]
    if told:
        terminalreporter.section("runs of wrackline")
        for nodeid, line in told:
            terminalreporter.write_line(f"{nodeid}\n  {line}")
