"""A package from elsewhere adds one of each: docs/examples/wrackline-example is installed as anybody would
install it, found, validated, tested by its own tests, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "wrackline-example"
SPECIFICATION = EXAMPLE / "everything.yaml"
PARTS = {
    ("system", "small-segments", "wrackline_example.system"),
    ("fleet", "netns-xfs", "wrackline_example.fleet"),
    ("fault", "one-core", "wrackline_example.fault"),
    ("workload", "many-readers", "wrackline_example.workload"),
    ("check", "slow-write", "wrackline_example.check"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, installed from a copy of its sources."""
    source, target = tmp_path_factory.mktemp("source") / "example", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    installs = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    installs += ["--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run(installs, check=True, capture_output=True, timeout=540)
    return target


def python(site: Path, *arguments: str, timeout_s: float = 180) -> subprocess.CompletedProcess[str]:
    """In an environment with the package."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=site,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def wrackline(site: Path, *arguments: str, timeout_s: float = 180) -> subprocess.CompletedProcess[str]:
    return python(site, "-m", "wrackline.harness.cli.entry", *arguments, timeout_s=timeout_s)


def test_all_five_are_listed_with_where_they_come_from(site: Path) -> None:
    listed = wrackline(site, "plugins", "--json")
    assert listed.returncode == 0, listed.stderr
    rows = [row for row in orjson.loads(listed.stdout) if row["distribution"] == "wrackline-example"]
    assert {(row["kind"], row["name"], row["module"]) for row in rows} == PARTS
    assert {row["version"] for row in rows} == {"0.1.0"}
    assert {row["problem"] for row in rows} == {""}


def test_a_specification_that_names_them_is_fine_and_the_schema_knows_their_keys(site: Path) -> None:
    checked = wrackline(site, "validate", str(SPECIFICATION))
    assert (checked.returncode, checked.stdout) == (0, f"{SPECIFICATION}: fine\n"), checked.stderr
    wrong = wrackline(site, "validate", str(SPECIFICATION), "--set", "workload.reeders=3")
    assert wrong.returncode == 2
    assert "workload.reeders: unknown key; did you mean 'readers'?" in wrong.stderr
    defs = orjson.loads(wrackline(site, "schema").stdout)["$defs"]
    assert {"writers", "readers"} <= set(defs["ManyReadersSpec"]["properties"])
    assert "core" in defs["OneCoreSpec"]["properties"]
    assert "segment_bytes" in defs["SmallSegmentsSpec"]["properties"]
    assert "slow-write" in defs["ContractSpec"]["properties"]["expected"]["items"]["enum"]


def test_its_anomaly_is_one_of_those_that_are_looked_for(site: Path) -> None:
    listed = orjson.loads(wrackline(site, "anomalies", "--json").stdout)
    [row] = [one for one in listed if one["name"] == "slow-write"]
    assert row["family"] == "latency"
    assert row["contract"] == (
        "forbidden with +linearizable-reads; allowed without where the leader changed or a fault was in force"
    )


@pytest.mark.nightly  # by day the run below uses all five
def test_its_own_tests_pass(site: Path) -> None:
    done = python(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests"), timeout_s=280)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "7 passed" in done.stdout


@pytest.mark.timeout(600)
@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="fleets need root")
def test_a_run_uses_all_five(site: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    made = wrackline(site, "run", str(SPECIFICATION), "--results", str(results), timeout_s=450)
    assert made.returncode == 0, made.stdout + made.stderr
    [run_dir] = results.iterdir()
    verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
    assert verdict["verdict"] == "reproduced"
    anomalies = {one["anomaly"]: one for one in verdict["anomalies"]}
    assert anomalies["slow-write"]["count"] > 0
    core, pause = verdict["faults"]
    assert (core["fault"], core["proved"], pause["proved"]) == ("one-core", True, True)
    assert "was on core 0 from beginning to end" in core["proof"]
    info = orjson.loads((run_dir / "run.json").read_bytes())
    assert info["workload"] == "many-readers"
    report = (run_dir / "report.html").read_text()
    assert "slow-write" in report
    assert "one-core" in report
    configuration = next((run_dir / "nodes" / "n1").rglob("effective-config.toml")).read_text()
    assert "\nsegment_bytes = 65536\n" in configuration
