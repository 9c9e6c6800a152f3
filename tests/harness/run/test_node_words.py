"""What the nodes' logs say of a loss. The lines are those that Kafka 4.4.0 and 3.9.2 wrote, shortened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wrackline.harness.run.node_words import MOST, words_of_loss
from wrackline.history.model import RunInfo, TopicInfo

INFO = RunInfo(
    *("t1", "x", 1, "", "kafka-4.4.0", "log", "all", False, (TopicInfo("log", 1, 3, 2),)),
    system_kind="apache-kafka",
)
CONTROLLER = """\
\tunclean.leader.election.enable = false
[11:33,582] INFO [QuorumController id=101] UNCLEAN partition change for __consumer_offsets-0 with topic ID J
[11:33,582] INFO [QuorumController id=101] UNCLEAN partition change for log-0 with topic ID 3: isr: [] -> [1]
"""
FOLLOWER = """\
[10:50,998] INFO [ReplicaFetcher] Truncating partition log-0 with TruncationState(offset=0, completed=true)
[10:51,106] INFO [UnifiedLog partition=log-0, dir=/data] Truncating to 0 has no effect, largest offset -1
[11:32,957] INFO Completed load of Log(dir=/data/broker/log-0, topicId=3iT, logEndOffset=875)
[11:36,069] WARN [UnifiedLog partition=log-0, dir=/data] Truncating log-0 to offset 0 below high watermark 686
[11:36,069] INFO [UnifiedLog partition=log-0, dir=/data] Truncating to offset 0 (kafka.log.UnifiedLog)
[11:36,070] INFO [UnifiedLog partition=log-10-0, dir=/data] Truncating to offset 0 (kafka.log.UnifiedLog)
"""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    for host, text in {"c1": CONTROLLER, "n2": FOLLOWER, "n3": FOLLOWER, "n4": FOLLOWER}.items():
        folder = tmp_path / "nodes" / host
        folder.mkdir(parents=True)
        (folder / "broker.log").write_text(text)
    return tmp_path


def lost(count: int) -> dict[str, Any]:
    return {"anomalies": [{"anomaly": "lost-write", "count": count}, {"anomaly": "duplicate", "count": 3}]}


def test_the_most_telling_lines_come_first_with_their_place(run_dir: Path) -> None:
    said = words_of_loss(run_dir, INFO, lost(7))
    places = [f"{line.file}:{line.number}" for line in said]
    assert places == [
        "nodes/c1/broker.log:3",
        *("nodes/n2/broker.log:4", "nodes/n3/broker.log:4"),
        *("nodes/n2/broker.log:5", "nodes/n3/broker.log:5"),
        *("nodes/n2/broker.log:3", "nodes/n3/broker.log:3"),
    ]
    assert str(said[0]).startswith(
        "nodes/c1/broker.log:3: [11:33,582] INFO [QuorumController id=101] UNCLEAN"
    )
    assert MOST == 2, "n4 says the same, and is left out"


def test_lines_of_node_logs_are_given_only_for_kafka_and_only_after_a_loss(run_dir: Path) -> None:
    assert words_of_loss(run_dir, INFO, lost(0)) == []
    assert words_of_loss(run_dir, replace(INFO, system="wrackline", system_kind="wrackline"), lost(7)) == []


def test_a_run_without_logs_says_nothing(tmp_path: Path) -> None:
    assert words_of_loss(tmp_path, INFO, lost(7)) == []
