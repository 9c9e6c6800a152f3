"""The plugin of pytest, in processes of its own as a team uses it: what it costs, makes, says and leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from tests.harness.machine_load import despite_load
from wrackline.fleets.local.state import FleetState, folders

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "test_scenario.py"
HOSTS = """
import time
import pytest

pytestmark = pytest.mark.wrackline(fleet={"brokers": 1, "controllers": 1}, topic={"replication_factor": 1,
    "min_insync_replicas": 1, "partitions": 1}, workload={"rate": 50})
"""
WAITS = (
    HOSTS
    + """
def test_waits(history):
    history.wait(acknowledged=1)
    print("the test is under way", flush=True)
    time.sleep(100)
"""
)
FAILS = (
    HOSTS
    + """
def test_fails(fleet):
    said = fleet.remote(fleet.hosts[0]).run("hostname").stdout.strip()
    assert said == "nowhere"
"""
)


def environment(tmp_path: Path) -> dict[str, str]:
    """Fleets lie below a folder of the test's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {
        **kept,
        "WRACKLINE_STATE_DIR": str(tmp_path / "state"),
        "WRACKLINE_RESULTS": str(tmp_path / "results"),
    }


def command(tmp_path: Path, *arguments: object) -> list[str]:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        "-p",
        "no:xdist",
        "--rootdir",
        str(tmp_path),
    ]
    return [
        sys.executable,
        "-m",
        "pytest",
        *options,
        "-c",
        str(tmp_path / "pytest.ini"),
        *map(str, arguments),
    ]


def run_pytest(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(tmp_path, *arguments),
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1100,
        check=False,
    )


def test_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "test_of_a_team.py"
    path.write_text(text)
    return path


test_file.__test__ = False  # type: ignore[attr-defined]


def fleets(tmp_path: Path) -> Mapping[str, FleetState]:
    found = {folder.name: folder.read() for folder in folders(tmp_path / "state")}
    return {name: state for name, state in found.items() if state is not None}


def namespaces() -> str:
    return subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout


def test_importing_it_imports_nothing_else_of_ours() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import wrackline.harness.extend.pytest_plugin; "
        "print(sorted(one for one in set(sys.modules) - before))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=180
    )
    ours = [
        "wrackline",
        "wrackline.harness",
        "wrackline.harness.extend",
        "wrackline.harness.extend.pytest_plugin",
    ]
    assert said.stdout.strip() == str(ours)


def test_the_page_shows_the_example_in_twenty_lines() -> None:
    code = EXAMPLE.read_text().partition('"""\n\n')[2]
    assert f"```python\n{code}```\n" in (EXAMPLE.parents[1] / "pytest.md").read_text()
    assert len([line for line in code.splitlines() if line.strip()]) <= 20


def test_without_the_option_tests_are_skipped_with_a_reason(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "-q", "-rs", EXAMPLE)
    assert done.returncode == 0, done.stdout
    assert "1 skipped" in done.stdout
    assert "makes hosts: `pytest --wrackline` runs it (as root)" in done.stdout
    assert not (tmp_path / "results").exists()


def test_markers_make_the_specification_and_mistakes_are_one_line(tmp_path: Path) -> None:
    text = """
import pytest
pytestmark = pytest.mark.wrackline(workload={"rate": 50}, topic={"partitions": 1})

@pytest.mark.wrackline(workload={"acks": 1})
def test_is_merged(wrackline_spec):
    spec = wrackline_spec
    assert (spec.name, spec.topic.partitions) == ("is-merged", 1)
    assert (spec.workload.rate, spec.workload.acks, spec.workload.duration_s) == (50, 1, 10)

@pytest.mark.wrackline("demo-canary.yaml", seed=9)
def test_is_a_file(wrackline_spec):
    assert (wrackline_spec.name, wrackline_spec.seed, wrackline_spec.workload.rate) == ("demo-canary", 9, 400)

@pytest.mark.wrackline(topic={"partitons": 1})
def test_is_wrong(wrackline_spec):
    pass
"""
    done = run_pytest(tmp_path, "-q", "-rE", test_file(tmp_path, text))
    assert "2 passed, 1 error" in done.stdout, done.stdout
    assert "::test_is_wrong: topic.partitons: unknown key; did you mean 'partitions'?" in done.stdout
    assert "Traceback" not in done.stdout
    assert "During handling" not in done.stdout


@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_example_passes_and_a_violation_shows_its_findings_and_its_report(tmp_path: Path) -> None:
    canary = (
        'import pytest\n\n@pytest.mark.wrackline("demo-canary.yaml")\ndef test_canary(judged):\n    pass\n'
    )
    file, results = test_file(tmp_path, canary), tmp_path / "results"
    done = despite_load(lambda: run_pytest(tmp_path, "--wrackline", EXAMPLE, file), results)
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout, done.stdout

    passed, canary_run = sorted(results.iterdir())
    verdict = orjson.loads((passed / "verdict.json").read_bytes())
    assert verdict["verdict"] == "pass"
    assert [(one["id"], one["fault"], one["proved"]) for one in verdict["faults"]] == [("h1", "kill", True)]
    assert f"pass: {passed / 'report.html'}" in done.stdout

    verdict = orjson.loads((canary_run / "verdict.json").read_bytes())
    assert verdict["verdict"] == "violation"
    failure = done.stdout.partition("= FAILURES =")[2]
    [lost] = [one["count"] for one in verdict["anomalies"] if one["anomaly"] == "lost-write"]
    assert f"lost-write, {lost} found:" in failure
    assert "was acknowledged at offset" in failure
    assert f"report: {canary_run / 'report.html'}" in failure
    assert f"violation: {canary_run / 'report.html'}" in done.stdout.partition("= runs of wrackline =")[2]
    assert fleets(tmp_path) == {}


@contextmanager
def under_way(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command(tmp_path, "--wrackline", "-s", test_file(tmp_path, WAITS)),
        env=environment(tmp_path),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            if "the test is under way" in line:
                break
        else:
            raise AssertionError("".join(said))
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=90)


@pytest.mark.fleet
@pytest.mark.slow
def test_ctrl_c_removes_the_hosts(tmp_path: Path) -> None:
    with under_way(tmp_path) as process:
        [state] = fleets(tmp_path).values()
        assert state.control in namespaces()
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=180)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, said
    assert "KeyboardInterrupt" in said
    assert time.monotonic() - began < 40, "nothing is waited for but the hosts"
    assert state.control not in namespaces()
    assert fleets(tmp_path) == {}


@pytest.mark.fleet
@pytest.mark.slow
def test_after_a_kill_the_next_start_heals_and_a_test_that_fails_cleans_up(tmp_path: Path) -> None:
    with under_way(tmp_path) as process:
        [killed] = fleets(tmp_path).values()
        process.kill()
        process.wait(30)
    assert killed.control in namespaces()

    done = run_pytest(tmp_path, "--wrackline", test_file(tmp_path, FAILS))
    assert "assert 'n1' == 'nowhere'" in done.stdout, done.stdout
    assert "not judged: what was recorded is in" in done.stdout.partition("= FAILURES =")[2]
    assert killed.control not in namespaces(), "the killed one's"
    assert fleets(tmp_path) == {}, "its own"
