"""What the harness reads and makes in ZooKeeper for brokers of profile zk08 is what those keep there."""

from __future__ import annotations

from typing import Any, cast

from tests.zookeeper.systems.servers.in_memory import InMemory
from wrackline.broker.model.coordination import Create, Set
from wrackline.broker.model.metadata.features import Levels
from wrackline.broker.model.types import TopicPartition
from wrackline.systems.base import PartitionState
from wrackline.zookeeper.core import administration, znodes
from wrackline.zookeeper.systems.wrackline.znodes import (
    add_broker,
    cluster_state,
    create_cluster,
    level,
    raise_level,
    reassign,
    reassignments,
)


def made_by(operations: list[Any]) -> dict[str, bytes]:
    return {one.path: one.data for one in operations if isinstance(one, Create)}


def test_a_cluster_is_the_one_that_the_brokers_own_administrator_makes() -> None:
    tree = InMemory()
    create_cluster(cast(Any, tree), (3, 1, 2))
    assert tree.nodes == made_by(administration.create_cluster((1, 2, 3)))
    create_cluster(cast(Any, tree), (1,))
    assert tree.nodes[znodes.BROKERS] == b"1,2,3", "one that is there is left alone"


def test_an_administrator_adds_brokers_and_moves_partitions_as_the_brokers_own_does() -> None:
    tree, asking = InMemory(), cast(Any, InMemory())
    asking.nodes = tree.nodes
    create_cluster(asking, (1, 2, 3))
    add_broker(asking, 4)
    assert tree.nodes[znodes.BROKERS] == b"1,2,3,4"
    add_broker(asking, 2)
    assert tree.nodes[znodes.BROKERS] == b"1,2,3,4", "one that is in the list is left where it is"

    tp = TopicPartition("log", 2)
    assert reassignments(asking) == frozenset()
    reassign(asking, {("log", 2): (4, 1)})
    assert made_by(administration.reassign(tp, (4, 1))).items() <= tree.nodes.items()
    assert reassignments(asking) == {("log", 2)}
    reassign(asking, {("log", 2): (2, 1)})
    assert tree.nodes[znodes.reassigned(tp)] == b"2,1", "the newest target counts"
    del tree.nodes[znodes.reassigned(tp)]  # as the leader does when it has moved
    assert reassignments(asking) == frozenset()


def test_a_level_is_raised_as_the_brokers_own_administrator_does_and_no_earlier() -> None:
    tree = InMemory()
    asking = cast(Any, tree)
    create_cluster(asking, (1, 2))
    assert level(asking) == znodes.FIRST_LEVEL
    supported = {1: Levels(8, 11)}
    tree.nodes[znodes.levels(1)] = znodes.of_levels(supported[1])
    assert raise_level(asking, 11) == administration.lacks_level((1, 2), supported, 11)
    supported[2] = Levels(8, 8)
    tree.nodes[znodes.levels(2)] = znodes.of_levels(supported[2])
    assert raise_level(asking, 11) == administration.lacks_level((1, 2), supported, 11) != ""
    assert znodes.FEATURE not in tree.nodes
    tree.nodes[znodes.levels(2)] = znodes.of_levels(Levels(8, 11))
    assert raise_level(asking, 11) == ""
    assert level(asking) == 11
    [made, written] = administration.raise_level(11)
    assert isinstance(made, Create)
    assert isinstance(written, Set)
    assert tree.nodes[made.path] == made.data == written.data
    new = InMemory()
    create_cluster(cast(Any, new), (1, 2), 11)
    assert new.nodes == made_by(administration.create_cluster((1, 2), 11))


def test_a_controller_takes_over_when_the_brokers_own_administrator_lets_it_and_no_earlier() -> None:
    tree = InMemory()
    asking = cast(Any, tree)
    create_cluster(asking, (1,))
    tp = TopicPartition("log", 0)
    tree.nodes |= made_by(administration.create_topic("log", {0: (1,)}, {}))
    tree.nodes[znodes.levels(1)] = b"8-34"

    def is_refused(level: int, *, controller: bool, moving: bool, without_epoch: bool) -> None:
        why = administration.cannot_hand_over(
            level,
            controller=controller,
            moving=[tp] if moving else [],
            without_epoch=[tp] if without_epoch else [],
        )
        assert raise_level(asking, 34) == why != ""

    is_refused(8, controller=False, moving=False, without_epoch=True)
    assert raise_level(asking, 11) == ""
    is_refused(11, controller=False, moving=False, without_epoch=True)
    tree.nodes[znodes.CONTROLLER] = b"101"
    is_refused(11, controller=True, moving=False, without_epoch=True)
    reassign(asking, {("log", 0): (2,)})
    is_refused(11, controller=True, moving=True, without_epoch=True)
    del tree.nodes[znodes.reassigned(tp)]
    tree.nodes[znodes.epoch(tp)] = znodes.of_epoch(znodes.LeaderEpoch(1, 1, 9))
    assert level(asking) == 11
    assert raise_level(asking, 34) == ""
    assert level(asking) == 34


def test_the_state_is_what_the_nodes_say() -> None:
    tree = InMemory()
    create_cluster(cast(Any, tree), (1, 2, 3))
    tree.nodes |= made_by(administration.create_topic("log", {0: (1, 2, 3), 10: (2, 3, 1), 2: (3, 1, 2)}, {}))
    led, yielded = TopicPartition("log", 0), TopicPartition("log", 2)
    tree.nodes |= {
        znodes.broker(1): b"198.18.0.1:9092,9094",
        znodes.broker(3): b"198.18.0.3:9092,9094",
        znodes.leader(led): b"3",
        znodes.isr(led): znodes.of_ids((1, 3)),
        znodes.epoch(led): znodes.of_epoch(znodes.LeaderEpoch(7, 3, 70)),
        znodes.isr(yielded): znodes.of_ids((1,)),
    }
    state = cluster_state(cast(Any, tree))
    assert (state.controller, state.brokers) == (-1, (1, 3))
    assert state.partitions == (
        PartitionState("log", 0, 3, 7, (1, 2, 3), (1, 3)),
        PartitionState("log", 2, -1, 0, (3, 1, 2), (1,)),
        PartitionState("log", 10, -1, 0, (2, 3, 1), ()),
    )
