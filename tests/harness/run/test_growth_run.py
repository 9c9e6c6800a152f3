"""A cluster grows during a run: a broker joins and replicas move while others are killed and cut off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from wrackline.checkers.inputs.runs import load_run
from wrackline.history import history_files

pytestmark = [pytest.mark.fleet, pytest.mark.slow]

SPEC = """
name: growing
seed: 5
fleet: {brokers: 3, spares: 1, controllers: 3, combined: true, disk_mb: 64}
system:
  config: {session_timeout_ms: 2000, heartbeat_interval_ms: 300, replica_lag_time_max_ms: 3000}
topic: {partitions: 2, replication_factor: 3, min_insync_replicas: 2}
workload: {duration_s: 20, rate: 80, senders: 4, pollers: 2, enders: 1, records_per_op: 3}
nemesis:
  schedule:
    - {at_s: 1, duration_s: 5, fault: kill, target: controller}
    - {at_s: 2, duration_s: 5, fault: add-broker}
    - {at_s: 12, duration_s: 5, fault: partition, target: follower(log-0)}
    - {at_s: 13, duration_s: 3, fault: reassign, target: leader(log-1)}
"""


def test_replicas_move_under_faults_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    (tmp_path / "growing.yaml").write_text(SPEC)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "wrackline.harness.cli.main",
            "run",
            str(tmp_path / "growing.yaml"),
            "--no-analysis",
        ],
        env={**os.environ, "WRACKLINE_RESULTS": str(tmp_path / "results")},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [run_dir] = (tmp_path / "results").iterdir()
    found = load_run(run_dir)
    assert found.info.notes == () or "fell due" in found.info.notes[0], found.info.notes
    faults = {fault.name: fault for fault in found.faults}
    assert set(faults) == {"kill", "add-broker", "partition", "reassign"}
    assert all(fault.proved for fault in faults.values()), found.faults
    assert (faults["kill"].role, faults["add-broker"].targets) == ("controller", ("n4",))
    assert "node 4 on n4 joined; " in faults["add-broker"].proof

    rows = pq.read_table(history_files(run_dir)[0]).to_pylist()
    written = [orjson.loads(row["extra"])["assignment"] for row in rows if row["f"] == "assignment"]
    assert len(written) == 2, "at the beginning, and at the end since it is another"
    assert {node for nodes in written[0].values() for node in nodes} == {1, 2, 3}
    assert any(4 in nodes for nodes in written[1].values())
    for (_, partition), replicas in found.replicas.items():
        hosts = {f"n{node}" for node in written[1][str(partition)]}
        assert {host for host, one in replicas.items() if one.complete and one.in_isr} == hosts
    assert all(read.complete for read in found.final.values())
    assert len(found.final) == len(found.replicas) == 2

    acked = told(rows, "send")
    assert len(acked) > 500
    assert acked <= told(rows, "drain")


def told(rows: list[dict[str, Any]], f: str) -> set[tuple[int, int, int]]:
    """(partition, offset, value) of every record that operations of this kind were told of."""
    return {
        (record["partition"], record["offset"], record["value"])
        for row in rows
        if (row["f"], row["type"]) == (f, "ok")
        for record in row["records"]
    }
