"""What Kafka keeps in ZooKeeper is read as one cluster state."""

from __future__ import annotations

import orjson
import pytest

from tests.zookeeper.systems.servers.in_memory import InMemory
from wrackline.systems.base import DeployError, PartitionState
from wrackline.zookeeper.systems.kafka.state import cluster_state


def cluster(**others: bytes) -> InMemory:
    return InMemory(
        **{
            "/brokers/ids/3": b"{}",
            "/brokers/ids/101": b"{}",
            "/brokers/ids/1": b"{}",
            "/controller": b'{"version":1,"brokerid":101,"timestamp":"1"}',
            "/brokers/topics/log": b'{"version":1,"partitions":{"1":[3,1],"0":[1,3]}}',
            "/brokers/topics/log/partitions/0/state": orjson.dumps(
                {"controller_epoch": 1, "leader": 3, "version": 1, "leader_epoch": 4, "isr": [3]}
            ),
            "/brokers/topics/__consumer_offsets": b'{"version":1,"partitions":{"0":[1]}}',
            **others,
        }
    )


def test_brokers_controller_leaders_and_isr() -> None:
    state = cluster_state(cluster())  # type: ignore[arg-type]
    assert (state.controller, state.brokers) == (101, (1, 3, 101))
    assert state.partitions == (
        PartitionState("log", 0, 3, 4, (1, 3), (3,)),
        PartitionState("log", 1, -1, -1, (3, 1), ()),
    )


def test_a_cluster_that_has_just_begun() -> None:
    state = cluster_state(InMemory())  # type: ignore[arg-type]
    assert (state.controller, state.brokers, state.partitions) == (-1, (), ())


def test_a_node_that_is_no_json_is_named() -> None:
    spoilt = cluster(**{"/controller": b"{"})
    with pytest.raises(DeployError, match=r"/controller holds no JSON: b'\{'"):
        cluster_state(spoilt)  # type: ignore[arg-type]
