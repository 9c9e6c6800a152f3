"""What is written down of the replicas' own logs."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import orjson
import pyarrow.parquet as pq
import pytest

from tests.harness.doubles import PaperFleet, PaperSystem
from wrackline.harness.run.final_read.replicas import read_replicas
from wrackline.harness.specification.spec import parse
from wrackline.history import Recorder, history_files
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.systems.base import Node, ReplicaLog, System
from wrackline.workloads.compact import CompactSpec

HOLE = "0.log: a hole: offset 4 follows -1 at byte 0"


class Cleaned(PaperSystem):
    """A system whose replicas lack offsets."""

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        return ReplicaLog(node.node_id, topic, partition, 0, 5, 5, (), hole=HOLE)


@pytest.mark.parametrize("compacted", [True, False])
def test_offsets_may_be_missing_where_a_cleaner_takes_them_and_nowhere_else(
    tmp_path: Path, compacted: bool
) -> None:
    spec = parse("name: x\ntopic: {partitions: 1}", "x.yaml")
    if compacted:
        spec = spec.model_copy(update={"workload": CompactSpec()})
    system = Cleaned(PaperFleet([]), "")
    info = RunInfo("t1", "t", 1, "", "none", "log", "all", False, (TopicInfo("log", 1, 3, 2),))
    with Recorder(tmp_path / "run", info) as recorder:
        logs, problems = read_replicas(cast("System", system), recorder, system.describe(), spec)
    assert problems == []
    assert [log.is_evidence for log in logs] == [compacted] * 3
    rows = pq.read_table(history_files(tmp_path / "run")[0]).to_pylist()
    assert [(orjson.loads(row["extra"])["complete"], row["error"]) for row in rows] == [
        (compacted, None if compacted else HOLE)
    ] * 3


class Doubled(PaperSystem):
    """A system whose nodes have each partition in two log directories."""

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        two = ("/data/broker", "/data2/broker")
        return ReplicaLog(node.node_id, topic, partition, 0, 5, 5, (), problem="twice", log_dirs=two)


def test_a_replica_in_several_log_directories_is_written_down_with_them(tmp_path: Path) -> None:
    spec = parse("name: x\ntopic: {partitions: 1}", "x.yaml")
    system = Doubled(PaperFleet([]), "")
    info = RunInfo("t1", "t", 1, "", "none", "log", "all", False, (TopicInfo("log", 1, 3, 2),))
    with Recorder(tmp_path / "run", info) as recorder:
        logs, _ = read_replicas(cast("System", system), recorder, system.describe(), spec)
    assert not any(log.is_evidence for log in logs)
    rows = pq.read_table(history_files(tmp_path / "run")[0]).to_pylist()
    log_dirs = [orjson.loads(row["extra"]).get("log_dirs") for row in rows]
    assert log_dirs == [["/data/broker", "/data2/broker"]] * 3
