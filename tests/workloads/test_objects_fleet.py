"""Registers and queues on a real fleet, with a leader cut off in the middle: what clients saw has an
order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.workloads.test_objects_workloads import PARTITIONS, of_partition
from wrackline.checkers.exact.queue import check_queue
from wrackline.checkers.exact.register import check_register
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.runner import run
from wrackline.harness.specification.spec import parse
from wrackline.history import history_files

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]

SPEC = """
name: objects-{name}
seed: 5
system:
  config: {{session_timeout_ms: 2000, heartbeat_interval_ms: 300, replica_lag_time_max_ms: 3000}}
topic: {{name: {name}, partitions: 2, replication_factor: 3, min_insync_replicas: 2}}
workload: {{name: {name}, duration_s: 12, rate: 30}}
nemesis:
  schedule:
    - {{at_s: 2, duration_s: 6, fault: partition, target: leader({name}-0)}}
"""


@pytest.mark.parametrize(("name", "get"), [("register", "read"), ("queue", "dequeue")])
def test_the_history_is_linearizable_although_a_leader_was_cut_off(
    tmp_path: Path, name: str, get: str
) -> None:
    outcome = run(parse(SPEC.format(name=name), name), Options(tmp_path))
    assert outcome.troubles == ()
    rows = pq.read_table(history_files(outcome.run_dir)[0]).to_pylist()
    clients = [row for row in rows if row["process"] >= 0 and row["f"] != "drain"]
    done = Counter((row["f"], row["type"]) for row in clients)
    assert done["send", "ok"] > 50
    assert done[get, "ok"] > 30
    for partition in range(PARTITIONS):
        history = of_partition(clients, partition, get)
        assert (check_register(history) if name == "register" else check_queue(history)) == []
