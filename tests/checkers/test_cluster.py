"""On a real cluster: a standalone master and two workers of Spark on this machine find what local mode
finds."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from tests.checkers.cases import all_cases
from tests.checkers.model import Model

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]
"""Every night: the day's tests import what a cluster is sent (test_session.py), and judge in local mode."""

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S = 120.0
ANALYZE_S = 900.0
CASES = ("lost-write at the tail", "duplicate in the final read", "stale-read", "poll-skip across polls")
_ENVIRONMENT = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "PYSPARK_PYTHON": sys.executable,
    "WRACKLINE_SPARK_MEMORY": "600m",
}


def wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """The first group of a pattern in a daemon's log."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise AssertionError(f"{log.name} never said {pattern!r}: {log.read_text()[-2000:]}")


@contextlib.contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """One of Spark's daemons in the foreground, ended at the end."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_CLASS), *arguments],
            env=os.environ | _ENVIRONMENT,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
    try:
        yield process, log
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each, on ports of their own choice; gives the master's URL."""
    local = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with contextlib.ExitStack() as stack:
        master, log = stack.enter_context(
            daemon(folder, "master", "org.apache.spark.deploy.master.Master", *local)
        )
        url = wait_for(log, r"Starting Spark master at (spark://\S+)", master)
        for name in ("worker-1", "worker-2"):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name))
            worker, log = stack.enter_context(
                daemon(folder, name, "org.apache.spark.deploy.worker.Worker", *local, *size, url)
            )
            wait_for(log, r"(Successfully registered with master)", worker)
        yield url


def analyze(runs: list[Path], master: str) -> None:
    """In a process of its own, since a process has one Spark session."""
    script = "import sys; from pathlib import Path; from wrackline.checkers.analysis import analyze; "
    script += "analyze([Path(one) for one in sys.argv[2:]], master=sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, master, *map(str, runs)],
        env=os.environ | _ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=ANALYZE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def findings(runs: list[Path]) -> pa.Table:
    return pa.concat_tables([pq.read_table(run / "findings.parquet") for run in runs])


@pytest.mark.timeout(2 * ANALYZE_S)
def test_a_cluster_finds_what_local_mode_finds(tmp_path: Path) -> None:
    histories = [case.history for case in all_cases() if case.name in CASES]
    histories.append(Model("correct", 7, partitions=3, operations=200).run())
    runs = [history.write(tmp_path / "cluster" / str(n)) for n, history in enumerate(histories)]
    alone = [shutil.copytree(run, tmp_path / "local" / run.name) for run in runs]
    (tmp_path / "daemons").mkdir()
    with cluster(tmp_path / "daemons") as master:
        analyze(runs, master)
    used = [len(list((tmp_path / "daemons" / name).glob("app-*"))) for name in ("worker-1", "worker-2")]
    assert used == [1, 1]  # each ran an executor
    analyze(alone, "local[2]")
    expected = findings(alone)
    assert findings(runs).equals(expected)
    assert set(expected["anomaly"].to_pylist()) >= {"lost-write", "duplicate", "stale-read", "poll-skip"}
