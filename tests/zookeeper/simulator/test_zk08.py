"""Profile zk08 row by row: a cluster without a controller, against the simulator's ZooKeeper. Brokers are 1,
2 and 3; 1 is preferred. Codes are those of docs/protocol.md 1.1."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.simulator.queries import end_offset
from tests.zookeeper.simulator.zk08 import (
    SESSION_MS,
    changes,
    ids_at,
    local,
    node_data,
    open_leaders,
    staged,
    traces,
    zookeeper,
)
from wrackline.broker.model.coordination import Create, Delete, Set
from wrackline.broker.model.effects import Checkpoint, Truncate
from wrackline.broker.model.events import Boot
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.setting import T, carries_records
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.world.world import StepRecord, World, WorldOptions
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.broker import ZookeeperBroker
from wrackline.zookeeper.core.replicas.local import Phase
from wrackline.zookeeper.core.znodes import StateRequest


@pytest.fixture
def s() -> Stage:
    return staged()


# --- paths -------------------------------------------------------------------------------------------------


def test_z33_to_z37_the_paths_are_there_and_say_who_is_who(s: Stage) -> None:
    tree = zookeeper(s).tree
    assert node_data(s, znodes.broker(2)) == b"n2:9092,9094"
    assert tree.nodes[znodes.broker(2)].owner != 0, "ephemeral"
    assert ids_at(s, znodes.replicas(T)) == (1, 2, 3)
    assert node_data(s, znodes.leader(T)) == b"1"
    assert tree.nodes[znodes.leader(T)].owner == tree.nodes[znodes.broker(1)].owner, "of the same session"
    assert set(ids_at(s, znodes.isr(T)) or ()) == {1, 2, 3}
    assert tree.children(znodes.states(T)) == ["1", "2", "3"]
    assert tree.nodes[znodes.state(T, 1)].owner == 0


def test_z02_a_broker_that_the_cluster_was_not_created_with_waits_until_it_is_added() -> None:
    world = World(1, WorldOptions(profile="zk08", boot=False))
    assert world.zookeeper is not None
    world.zookeeper.administer(Set(znodes.BROKERS, b"1,2"))
    for node in (1, 2, 3):
        world.start(node)
    world.run(2_000)
    assert sorted(world.image.brokers) == [1, 2]
    world.zookeeper.administer(Set(znodes.BROKERS, b"1,2,3"))
    world.until(lambda: 3 in world.image.brokers, 1_000)


def test_z43_a_broker_that_is_back_early_waits_for_its_former_session_to_end(s: Stage) -> None:
    former = zookeeper(s).tree.nodes[znodes.broker(2)].owner
    s.kill(2)
    s.start(2)
    s.run(SESSION_MS * 0.8)
    assert zookeeper(s).tree.nodes[znodes.broker(2)].owner == former
    core = s.world.brokers[2].core
    assert core is not None
    assert core.broker_epoch == -1
    s.until(lambda: core.broker_epoch > 0, "registered anew", SESSION_MS)
    assert zookeeper(s).tree.nodes[znodes.broker(2)].owner not in (0, former)


# --- elections ---------------------------------------------------------------------------------------------


def test_z32_with_an_empty_isr_any_replica_may_lead() -> None:
    world = World(1, WorldOptions(profile="zk08", boot=False))
    world.start(3)
    world.until(lambda: 3 in world.image.brokers)
    assert world.zookeeper is not None
    for operation in (
        Create(znodes.topic(T.topic)),
        Create(znodes.states(T)),
        Create(znodes.replicas(T), b"1,2,3"),
    ):
        world.zookeeper.administer(operation)
    world.until(lambda: world.leader(T) == 3, 2_000)
    world.run(500)
    image = world.image.partition(T)
    assert image is not None
    assert image.isr == (3,)


def test_z29_z49_whoever_creates_the_node_leads_and_its_end_is_the_high_watermark(s: Stage) -> None:
    s.commit(b"a")
    hold = s.hold("FetchResponse", source=1)
    s.write(1, b"b")
    s.run(50)
    s.kill(1)
    s.drop(hold)
    s.until(lambda: s.leader in (2, 3), "another leads", 10_000)
    leader = s.ready()
    assert node_data(s, znodes.leader(T)) == str(leader).encode()
    assert s.high_watermark(leader) == s.leo(leader)


def test_z49_a_replica_outside_the_isr_does_not_run(s: Stage) -> None:
    s.kill(2, 3)
    s.write(1, b"a")
    s.until(lambda: s.isr == {1}, "1 alone in the ISR")
    s.kill(1)
    s.start(2)
    s.start(3)
    s.run(SESSION_MS * 3)
    assert s.elected == -1
    s.start(1)
    s.until(lambda: s.leader == 1, "the member is back", 10_000)
    assert s.values(1) == [b"a"]


def test_z42_the_preferred_replica_has_a_head_start(s: Stage) -> None:
    created = changes(s)
    zookeeper(s).administer(Delete(znodes.leader(T)))
    s.until(lambda: s.leader is not None, "a leader")
    leaders = [data for path, data in created if path == znodes.leader(T) and data is not None]
    assert leaders == [b"1"]


def test_z31_z48_a_leader_waits_for_the_surviving_isr_and_serves_followers_only(s: Stage) -> None:
    s.commit(b"a")
    deaf = [s.hold("FetchRequest", source=a, to=b) for a, b in ((2, 3), (3, 2))]
    s.kill(1)
    s.until(lambda: s.elected in (2, 3), "elected", 10_000)
    leader = s.elected
    s.until(lambda: local(s, leader).phase is Phase.OPENING, "it knows")
    began = s.world.now_ms
    call = s.produce(leader, b"b")
    s.until(lambda: call.done, "an answer")
    result = s.result(call)
    assert result is not None
    assert result.error is ErrorCode.not_leader_or_follower
    assert end_offset(s, leader) is None
    s.until(lambda: s.leader == leader, "open")
    waited = s.world.now_ms - began
    assert waited == pytest.approx(1_500, abs=200), "LeaderElectionWaitTime"
    assert s.isr == {leader}
    for hold in deaf:
        s.release(hold)


def test_z31_a_leader_opens_as_soon_as_the_survivors_have_caught_up(s: Stage) -> None:
    s.commit(b"a")
    s.kill(1)
    s.until(lambda: s.elected in (2, 3), "elected", 10_000)
    began = s.world.now_ms
    s.until(lambda: s.leader is not None, "open")
    assert s.world.now_ms - began < 500
    assert s.isr == {2, 3}, "who is gone is not waited for, and not in the ISR"
    assert ids_at(s, znodes.cur(T)) in ((1,), None) or s.must(
        lambda: ids_at(s, znodes.cur(T)) == (1,), "the CUR is written"
    )


def test_z31_a_survivor_that_fetches_what_it_has_cut_opens_the_partition(s: Stage) -> None:
    """Its second fetch commits nothing, for the high watermark of a new leader is its log's end: the leader
    looks at it all the same, and does not wait for LeaderElectionWaitTime."""
    s.commit(b"a")
    late = s.hold("FetchResponse", source=1, when=lambda m: _high_watermark(m) >= 2)
    s.acked(1, b"b")
    again = [s.hold("FetchResponse", source=node, when=carries_records) for node in (2, 3)]
    s.kill(1)
    s.drop(late)
    s.until(lambda: s.elected in (2, 3), "elected", 10_000)
    s.run(500)
    assert s.leader is None, "it has read the ISR, and waits"
    for hold in again:
        s.release(hold)
    began = s.world.now_ms
    s.until(lambda: s.leader is not None, "open")
    assert s.world.now_ms - began < 200
    assert s.isr == {2, 3}


def test_z30_z47_a_follower_cuts_its_log_to_its_high_watermark(s: Stage) -> None:
    s.commit(b"a")
    late = s.hold("FetchResponse", source=1, to=3, when=lambda m: _high_watermark(m) >= 2)
    s.acked(1, b"b")
    assert (s.leo(3), s.high_watermark(3)) == (2, 1)
    cut: list[int] = []

    def look(world: World, step: StepRecord) -> None:
        del world
        cut.extend(e.to_offset for e in step.effects if isinstance(e, Truncate) and step.node == 3)

    s.world.observers.append(look)
    s.kill(1)
    s.drop(late)
    s.until(lambda: s.leader in (2, 3), "another leads", 10_000)
    assert cut == ([1] if s.leader == 2 else [])


def _high_watermark(message: Any) -> int:
    parts = getattr(message.response, "partitions", ())
    return max((getattr(part, "high_watermark", -1) for part in parts), default=-1)


def test_z53_the_preferred_replica_leads_again_when_it_is_in_the_isr(s: Stage) -> None:
    s.commit(b"a")
    s.kill(1)
    s.until(lambda: s.leader in (2, 3), "another leads", 10_000)
    s.start(1)
    s.until(lambda: s.leader == 1, "the preferred one leads", 20_000)


# --- the committer -----------------------------------------------------------------------------------------


def test_z52_only_a_write_that_has_waited_for_a_member_moves_it_to_the_cur(s: Stage) -> None:
    s.commit(b"a")
    s.kill(3)
    s.run(SESSION_MS * 2)
    assert s.isr == {1, 2, 3}, "nothing was written"
    began = s.world.now_ms
    s.acked(1, b"b")
    assert s.world.now_ms - began == pytest.approx(1_000, abs=200), "KeepInSyncTime"
    assert s.isr == {1, 2}
    s.until(lambda: ids_at(s, znodes.cur(T)) == (3,), "Z39: AR = ISR + CUR")
    s.start(3)
    s.until(lambda: s.isr == {1, 2, 3}, "promoted", 10_000)
    s.until(lambda: ids_at(s, znodes.cur(T)) == (), "the CUR is empty")


def test_z40_requests_are_answered_in_the_order_of_their_offsets(s: Stage) -> None:
    late = s.hold("FetchRequest", to=1)
    calls = [s.produce(1, bytes([n])) for n in range(5)]
    s.run(200)
    assert not any(call.done for call in calls)
    order: list[int] = []
    acks = traces(s, "ack")
    s.release(late)
    s.until(lambda: all(call.done for call in calls), "acknowledged")
    order = [fields["offset"] for node, fields in acks if node == 1]
    assert order == [0, 1, 2, 3, 4]


def test_z51_the_checkpoint_thread_flushes_the_high_watermark_and_the_log(s: Stage) -> None:
    s.commit(b"a", b"b")
    s.run(1_200)
    for broker in s.world.brokers.values():
        assert broker.disk.logs[T].synced == 2
        assert broker.disk.checkpoints[Checkpoint.HIGH_WATERMARK][T] == 2


def test_z45_after_a_start_the_high_watermark_is_the_checkpoint(s: Stage) -> None:
    s.commit(b"a")
    s.run(1_200)
    s.commit(b"b")
    s.kill(3)
    boots: list[int] = []

    def look(world: World, step: StepRecord) -> None:
        if step.node == 3 and isinstance(step.event, Boot):
            replica = world.brokers[3].core.replica(T)  # type: ignore[union-attr]
            assert replica is not None
            boots.append(replica.high_watermark)

    s.world.observers.append(look)
    s.start(3)
    assert boots == [1]


# --- watches and requests ----------------------------------------------------------------------------------


def test_z41_the_leader_alone_watches_reassignments(s: Stage) -> None:
    def watching() -> list[NodeId]:
        found = []
        for node, server in s.world.brokers.items():
            assert isinstance(server.core, ZookeeperBroker)
            if server.core.coordination.keeps(znodes.reassigned(T)):
                found.append(node)
        return found

    assert watching() == [1]
    assert all(core.coordination.keeps(znodes.leader(T)) for core in _cores(s)), "all watch the leader"
    zookeeper(s).expire(1)
    s.until(lambda: s.leader in (2, 3), "another leads", 10_000)
    leader = s.ready()
    s.until(lambda: 1 not in open_leaders(s), "1 has heard")
    assert watching() == [leader]


def _cores(s: Stage) -> list[ZookeeperBroker]:
    return [server.core for server in s.world.brokers.values() if isinstance(server.core, ZookeeperBroker)]


@pytest.mark.parametrize("request_", [StateRequest.REPLICA_UNASSIGNED, StateRequest.DELETE_REPLICA])
def test_z44_z46_a_replica_that_is_asked_to_go_goes_with_its_log(s: Stage, request_: StateRequest) -> None:
    s.commit(b"a")
    zookeeper(s).administer(Set(znodes.replicas(T), b"1,2"))
    zookeeper(s).administer(Create(f"{znodes.state(T, 3)}/request-", request_.encode(), sequential=True))
    s.until(lambda: T not in s.world.brokers[3].disk.logs, "the log of 3 is gone")
    s.until(lambda: znodes.state(T, 3) not in zookeeper(s).tree.nodes, "so is its path")
    assert s.replica(3) is None


def test_z44_a_request_to_follow_is_acted_upon_once_and_removed(s: Stage) -> None:
    s.commit(b"a")
    heard = traces(s, "state_request")
    cut = traces(s, "truncate")
    for _ in range(2):
        request = Create(f"{znodes.state(T, 2)}/request-", b"become-follower", sequential=True)
        zookeeper(s).administer(request)
    s.until(lambda: zookeeper(s).tree.children(znodes.state(T, 2)) == [], "both were taken")
    assert [node for node, _ in heard] == [2, 2]
    assert cut == [], "it follows this leader already"


def test_z44_a_request_to_go_does_not_swallow_the_one_to_come_back(s: Stage) -> None:
    """Seed 266 of a search: a leader told a replica of former times to go, and then that it is assigned."""
    s.commit(b"a")
    zookeeper(s).administer(Set(znodes.replicas(T), b"1,2"))
    s.until(lambda: s.replica(3) is None, "3 is gone")
    for request in ("become-follower", "replica-unassigned", "replica-assigned"):
        path = f"{znodes.state(T, 3)}/request-"
        zookeeper(s).administer(Create(path, request.encode(), sequential=True))
    s.until(lambda: s.replica(3) is not None, "3 is back")
    s.run(1_000)
    assert s.replica(3) is not None
    assert zookeeper(s).tree.children(znodes.state(T, 3)) == []


@pytest.mark.parametrize(("profile", "acknowledged"), [("zk08", True), ("kip101", False)])
def test_a_leader_alone_acknowledges_alone_whatever_min_insync_replicas_is(
    profile: str, acknowledged: bool
) -> None:
    """The design has no such setting (B52)."""
    s = staged(profile=profile, topic={"min.insync.replicas": "2"})
    s.commit(b"m1")
    s.cut(1, 2, 3)
    call = s.produce(1, b"m2", timeout_ms=5_000)
    s.until(lambda: s.isr == {1}, "an ISR of 1 alone")
    s.until(lambda: call.done, "an answer")
    assert s.is_acked(call) is acknowledged
