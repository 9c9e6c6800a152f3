"""Profile zk08 row by row: a cluster without a controller, against the simulator's ZooKeeper. Brokers are 1,
2, 3 (and 4); 1 is preferred. Codes are those of docs/protocol.md 1.1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from wrackline.broker.core.zk08.administration import add_brokers, reassign
from wrackline.broker.core.zk08.broker import ZookeeperBroker
from wrackline.broker.core.zk08.local import Local, Phase
from wrackline.broker.model import znodes
from wrackline.broker.model.coordination import Coordinate, Create, Delete, Set
from wrackline.broker.model.effects import Checkpoint, Trace, Truncate
from wrackline.broker.model.events import Boot
from wrackline.broker.model.types import NodeId
from wrackline.broker.model.znodes import StateRequest
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.guided.setting import Setting, T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.run import run
from wrackline.simulator.world.world import StepRecord, World, WorldOptions
from wrackline.simulator.zookeeper.ensemble import ZOOKEEPER, Ensemble

SESSION_MS = 3_000
QUICK = Setting(profile="zk08", idempotent=False, lag_ms=1_000)


def staged(**changes: Any) -> Stage:
    return Stage(QUICK.but(**changes))


@pytest.fixture
def s() -> Stage:
    return staged()


def zookeeper(stage: Stage) -> Ensemble:
    assert stage.world.zookeeper is not None
    return stage.world.zookeeper


def node_data(stage: Stage, path: str) -> bytes | None:
    return zookeeper(stage).tree.data(path)


def ids_at(stage: Stage, path: str) -> tuple[NodeId, ...] | None:
    data = node_data(stage, path)
    return None if data is None else znodes.to_ids(data)


def local(stage: Stage, node: NodeId) -> Local:
    core = stage.world.brokers[node].core
    assert isinstance(core, ZookeeperBroker)
    found = core.local(T)
    assert found is not None
    return found


def traces(stage: Stage, kind: str) -> list[tuple[NodeId, dict[str, Any]]]:
    """Filled from now on."""
    found: list[tuple[NodeId, dict[str, Any]]] = []

    def look(world: World, step: StepRecord) -> None:
        del world
        for effect in step.effects:
            if isinstance(effect, Trace) and effect.kind == kind:
                found.append((step.node, dict(effect.fields)))

    stage.world.observers.append(look)
    return found


def changes(stage: Stage) -> list[tuple[str, bytes | None]]:
    """Path and data (None: deleted) of each change in ZooKeeper from now on."""
    found: list[tuple[str, bytes | None]] = []
    tree = zookeeper(stage).tree
    tree.on_change = lambda path: found.append((path, tree.data(path)))
    return found


# --- paths -------------------------------------------------------------------------------------------------


def test_z33_to_z37_the_paths_are_there_and_say_who_is_who(s: Stage) -> None:
    tree = zookeeper(s).tree
    assert node_data(s, znodes.broker(2)) == b"n2:9092"
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
    for operation in add_brokers((1, 2), (3,)):
        world.zookeeper.administer(operation)
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
    assert s.end_offset(leader) is None
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


# --- reassignment ------------------------------------------------------------------------------------------


def moved() -> Stage:
    stage = staged(brokers=4)
    stage.commit(b"a")
    return stage


def reassigned(s: Stage) -> bool:
    image = s.world.image.partition(T)
    return (
        image is not None
        and image.replicas == (2, 3, 4)
        and set(image.isr) == {2, 3, 4}
        and node_data(s, znodes.reassigned(T)) is None
        and T not in s.world.brokers[1].disk.logs
        and s.leader is not None
    )


def test_z54_the_writes_of_a_reassignment_are_in_the_documents_order() -> None:
    s = moved()
    seen = changes(s)
    for operation in reassign(T, (2, 3, 4)):
        zookeeper(s).administer(operation)
    s.until(lambda: reassigned(s), "moved", 20_000)
    paths = {znodes.isr(T), znodes.replicas(T), znodes.leader(T), znodes.reassigned(T)}
    after = [(path, data) for path, data in seen if path in paths]
    start = next(
        at for at, (path, data) in enumerate(after) if path == znodes.isr(T) and b"4" in (data or b"")
    )
    names = [path.rpartition("/")[2] for path, _ in after[start : start + 3]]
    assert names == ["ISR", "replicas", "leader"]
    assert set(znodes.to_ids(after[start][1] or b"")) == {1, 2, 3, 4}, "RAR + ISR"
    assert after[start + 2][1] is None, "deleted"
    assert (znodes.reassigned(T), None) in after[start + 3 :]
    assert s.values(4) == [b"a"]
    s.finish()
    assert s.findings() == ()


@pytest.mark.parametrize("writes", range(4))
def test_z54_a_leader_that_dies_between_the_writes_leaves_what_the_next_one_can_end(writes: int) -> None:
    """After none, one, two and three of the writes."""
    s = moved()
    wanted = (znodes.isr(T), znodes.replicas(T), znodes.leader(T))
    begun: list[str] = []

    def dies(event: object, effects: Any) -> int | None:
        del event
        for at, effect in enumerate(effects):
            if isinstance(effect, Coordinate) and isinstance(effect.operation, Set | Delete):
                path = effect.operation.path
                switching = path == znodes.isr(T) and b"4" in getattr(effect.operation, "data", b"")
                if path in wanted and (begun or switching):
                    begun.append(path)
                    if len(begun) > writes:
                        return at
                elif path == znodes.reassigned(T) and len(begun) >= writes:
                    return at
        return None

    s.world.cut_process(1, dies)
    for operation in reassign(T, (2, 3, 4)):
        zookeeper(s).administer(operation)
    s.until(lambda: not s.up(1), "1 died on the way", 20_000)
    s.run(SESSION_MS + 2_000)
    s.start(1)
    s.until(lambda: reassigned(s), "moved all the same", 40_000)
    assert s.values(4) == [b"a"]


# --- sessions ----------------------------------------------------------------------------------------------


def open_leaders(s: Stage) -> list[NodeId]:
    return [
        node
        for node, server in s.world.brokers.items()
        if server.core and local(s, node).phase is Phase.LEADING
    ]


def test_a_leader_that_is_cut_off_stops_before_its_session_ends(s: Stage) -> None:
    s.commit(b"a")
    s.cut(1, ZOOKEEPER)
    cut_at = s.world.now_ms
    s.until(lambda: open_leaders(s) == [], "1 stops by its own rule")
    assert s.world.now_ms - cut_at < SESSION_MS * 1.15
    assert node_data(s, znodes.leader(T)) == b"1", "ZooKeeper has not ended the session yet"
    s.until(lambda: s.leader in (2, 3), "another leads")


def test_a_session_that_is_over_ends_the_leadership_at_once(s: Stage) -> None:
    s.commit(b"a")
    zookeeper(s).expire(1)
    s.until(lambda: 1 not in open_leaders(s), "1 has heard")
    s.until(lambda: s.leader is not None, "a leader", 10_000)
    s.finish()
    assert s.findings() == ()


def test_a_lost_connection_costs_no_leadership(s: Stage) -> None:
    s.commit(b"a")
    created = zookeeper(s).tree.nodes[znodes.leader(T)].created
    zookeeper(s).disconnect(1)
    s.run(1_000)
    s.acked(1, b"b")
    assert zookeeper(s).tree.nodes[znodes.leader(T)].created == created


@pytest.mark.parametrize("seed", range(8))
def test_a_write_of_the_isr_that_nobody_knows_the_outcome_of_is_found_out(seed: int) -> None:
    s = Stage(QUICK, (), seed)
    s.commit(b"a")
    s.kill(3)
    asked: list[float] = []

    def drops(world: World, step: StepRecord) -> None:
        del world
        written = [e.operation.path for e in step.effects if isinstance(e, Coordinate)]
        if znodes.isr(T) in written and not asked:
            asked.append(step.at_ms)
            s.world.at(step.at_ms + seed / 3, lambda: zookeeper(s).disconnect(1))

    s.world.observers.append(drops)
    s.acked(1, b"b")
    assert asked
    assert s.isr == {1, 2}
    s.finish()
    assert s.findings() == ()


def test_without_a_leader_in_zookeeper_nobody_is_elected_and_nobody_is_fenced_by_it(s: Stage) -> None:
    s.commit(b"a")
    zookeeper(s).change_leader(10_000)
    s.run(9_000)
    assert open_leaders(s) == [], "1 has stopped by its own rule: it cannot know"
    assert zookeeper(s).expired == []
    s.until(lambda: s.leader == 1, "it leads on", 10_000)
    s.finish()
    assert s.findings() == ()


# --- whole runs --------------------------------------------------------------------------------------------

SHORT = Setup(seed=4, seconds=8.0, profile="zk08")


def test_the_same_seed_is_the_same_run() -> None:
    first, second = run(SHORT, digest=True), run(SHORT, digest=True)
    assert first.digest == second.digest
    assert first.acked > 20
    assert run(replace(SHORT, seed=5), digest=True).digest != first.digest


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_under_one_fault_at_a_time(seed: int) -> None:
    result = run(replace(SHORT, seed=seed))
    assert result.violation is None, result.violation


def test_faults_that_overlap_lose_what_was_acknowledged() -> None:
    found = {
        result.violation.oracle
        for seed in range(12)
        if (result := run(replace(SHORT, seed=seed, seconds=10.0, overlap=True))).violation is not None
    }
    assert found & {"I01", "I07", "lost-write"}
