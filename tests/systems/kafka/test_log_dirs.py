"""Nodes of Apache Kafka with several log directories (JBOD): replicas that move, a disk that fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_LOG_DIRS
from tests.systems.kafka.conftest import READY_S
from tests.systems.kafka.test_real import produce
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.fleets.process.spec import ProcessSpec
from wrackline.history.offsets import Offsets
from wrackline.nemesis.faults.cluster.log_dirs import MoveReplicaSpec
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.systems.kafka.system import KafkaSystem

TOPIC = TopicSpec("moves", 2, 1, {})


@pytest.fixture
def topic(one_node: KafkaSystem) -> KafkaSystem:
    """A node that has the topic, with its partitions in two log directories."""
    if not any(one.topic == TOPIC.name for one in one_node.describe(timeout_s=READY_S).partitions):
        one_node.create_topic(TOPIC, timeout_s=READY_S)
        produce(one_node, TOPIC.name, [b"%d" % number * 40 for number in range(500)])
    return one_node


@pytest.fixture
def place(topic: KafkaSystem) -> Place:
    return Place(topic.fleet, topic, (TOPIC.name,))


@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.parametrize(("trial", "sabotage"), every(ON_LOG_DIRS))
def test_nobody_is_taken_in(place: Place, trial: Trial, sabotage: Sabotage) -> None:
    check(trial, place, sabotage)


@pytest.mark.fleet
@pytest.mark.slow
def test_a_replica_is_read_from_whatever_log_directory_it_lies_in(topic: KafkaSystem) -> None:
    [node] = topic.nodes
    before = topic.replica_log(node, TOPIC.name, 0)
    home = where(topic, 0)
    [away] = {"/data/broker", "/data2/broker"} - {home}
    over = threading.Event()
    writer = threading.Thread(target=lambda: list(writes(topic, over)))
    writer.start()
    try:
        topic.move_logs(node, {(TOPIC.name, 0): away}, timeout_s=30)
        deadline = time.monotonic() + READY_S
        while where(topic, 0) != away:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        over.set()
        writer.join()
    after = topic.replica_log(node, TOPIC.name, 0)
    assert after.problem is None
    assert after.log_dirs == ()
    assert after.leo > before.leo, "it was written to meanwhile"
    assert after.records[: len(before.records)] == before.records
    again = topic.scan_again(node, TOPIC.name, 0)
    assert again.intervals() == Offsets(one.offset for one in after.records).intervals()
    # What is left in the other directory is no replica any more; two that are some contradict each other.
    remote = topic.fleet.remote(node.host)
    remote.run(f"cp -r {away}/{TOPIC.name}-0 {home}/{TOPIC.name}-0")
    try:
        doubled = topic.replica_log(node, TOPIC.name, 0)
        assert doubled.problem is not None
        assert doubled.problem.startswith("moves-0 lies in /data")
        assert set(doubled.log_dirs) == {home, away}
    finally:
        remote.run(f"rm -r {home}/{TOPIC.name}-0")
    with pytest.raises(DeployError, match="moves-0 cannot move to /nowhere: log_dir_not_found"):
        topic.move_logs(node, {(TOPIC.name, 0): "/nowhere"}, timeout_s=30)


def where(system: KafkaSystem, partition: int) -> str:
    """The log directory of a replica, where it has one and no more."""
    [node] = system.nodes
    paths = [
        one.path
        for one in system.log_dirs(node, timeout_s=30)
        for log in one.logs
        if log.place == (TOPIC.name, partition)
    ]
    return paths[0] if len(paths) == 1 else ""


def writes(system: KafkaSystem, over: threading.Event) -> Iterator[int]:
    while not over.is_set():
        yield len(produce(system, TOPIC.name, [b"w" * 100] * 20))


def test_only_brokers_with_several_log_directories_have_replicas_to_move() -> None:
    fault, kafka = MoveReplicaSpec(fault="move-replica"), KafkaSpec()
    assert fault.refusal(NetnsSpec(disks=2), kafka) is None
    assert fault.refusal(ProcessSpec(disks=2), kafka) is None
    why = fault.refusal(NetnsSpec(), kafka)
    assert why == "move-replica needs brokers with several log directories: say how many in fleet.disks"
