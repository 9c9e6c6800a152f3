"""Clients in Java against Apache Kafka itself, in a process of their own: a JVM stays in its process for
ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from tests.systems.kafka.conftest import installed
from wrackline.history import history_files
from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.java.store import ClientStore

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly]

SPEC = """
name: java
fleet: {{kind: netns, brokers: 1, controllers: 1, combined: true, disk_mb: 512}}
system: {{kind: apache-kafka, version: 4.4.0}}
topic: {{name: log, partitions: 2, replication_factor: 1, min_insync_replicas: 1}}
workload: {{name: {workload}, duration_s: 6, rate: 30, client: {{library: java, version: {version}}}{more}}}
"""
OFTEN = ", crash_every: 15"
"""Six seconds are too short for a member to crash of itself."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("workload", "version", "end_txn"),
    [("txn", "4.4.0", 5), ("txn", "3.9.2", 4), ("group", "4.4.0", None), ("group", "3.9.2", None)],
)
def test_a_run_with_java_clients_records_every_kind_of_operation(
    workload: str, version: str, end_txn: int | None, tmp_path: Path
) -> None:
    installed("4.4.0")
    try:
        ClientStore().install(version)
    except Unavailable as wrong:
        pytest.skip(str(wrong))
    spec = tmp_path / "java.yaml"
    spec.write_text(
        SPEC.format(workload=workload, version=version, more=OFTEN if workload == "group" else "")
    )
    command = [sys.executable, "-m", "wrackline.harness.cli.entry", "run", str(spec), "--no-analysis"]
    done = subprocess.run(
        [*command, "--results", str(tmp_path / "results")],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [run] = (tmp_path / "results").glob("*-java-*")
    client = orjson.loads((run / "run.json").read_bytes())["client"]
    wanted = {"library": "java", "version": version}
    assert client == (wanted if end_txn is None else {**wanted, "end_txn_version": end_txn})
    rows = [row for path in history_files(run) for row in pq.read_table(path).to_pylist()]
    seen = {(row["f"], row["type"]) for row in rows}
    assert {("send", "ok"), ("poll", "ok"), ("commit", "ok"), ("drain", "ok")} <= seen
    assert ("drain", "fail") not in seen
    if workload == "group":
        assert {("rebalance", "ok"), ("crash", "ok")} <= seen
