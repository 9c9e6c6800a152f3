"""These replicas move to a broker that has just joined."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrackline.systems.base import ClusterState, DeployError, PartitionState
from wrackline.systems.common.growth import share_of


def cluster(*replicas: tuple[int, ...], brokers: tuple[int, ...]) -> ClusterState:
    return ClusterState(
        1,
        brokers,
        tuple(
            PartitionState("log", number, nodes[0], 0, nodes, nodes) for number, nodes in enumerate(replicas)
        ),
    )


def test_a_new_broker_takes_one_replica_of_each_of_the_others() -> None:
    full = cluster((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 2, 3), brokers=(1, 2, 3, 4))
    plan = share_of(full, 4, "log")
    assert plan == {("log", 0): (4, 2, 3), ("log", 1): (2, 4, 1), ("log", 2): (3, 1, 4)}


def test_of_a_topic_with_fewer_replicas_than_brokers_it_takes_one() -> None:
    assert share_of(cluster((1, 2, 3), brokers=(1, 2, 3, 4)), 4, "log") == {("log", 0): (4, 2, 3)}


def test_a_broker_that_has_its_share_gets_no_more_replicas() -> None:
    assert share_of(cluster((4, 1, 2), (3, 4, 1), (1, 2, 3), brokers=(1, 2, 3, 4)), 4, "log") == {}


@pytest.mark.parametrize(("node", "topic"), [(9, "log"), (1, "other")])
def test_what_the_cluster_does_not_know_is_refused(node: int, topic: str) -> None:
    with pytest.raises(DeployError, match=f"no share of {topic} for node {node}"):
        share_of(cluster((1, 2), brokers=(1, 2)), node, topic)


@given(st.data())
def test_only_the_new_broker_gains_and_nobody_is_left_with_less_than_it(data: st.DataObject) -> None:
    old = tuple(range(1, data.draw(st.integers(3, 6)) + 1))
    new = len(old) + 1
    factor = data.draw(st.integers(1, 3))
    replicas = data.draw(
        st.lists(st.permutations(old).map(lambda nodes: tuple(nodes[:factor])), min_size=1, max_size=12)
    )
    state = cluster(*replicas, brokers=(*old, new))
    plan = share_of(state, new, "log")
    after = Counter[int]()
    for number, before in enumerate(replicas):
        now = plan.get(("log", number), before)
        assert sum(a != b for a, b in zip(before, now, strict=True)) == (("log", number) in plan)
        assert now == before or now.count(new) == 1
        after.update(now)
    fair = max(1, len(replicas) * factor // (len(old) + 1))
    assert after[new] <= fair
    before_all = Counter(node for nodes in replicas for node in nodes)
    givers = {node for node in old if after[node] < before_all[node]}
    assert all(after[node] >= after[new] - 1 for node in givers), "nobody becomes poorer than the new one"
