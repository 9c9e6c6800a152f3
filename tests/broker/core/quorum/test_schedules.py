"""A quorum plays golden schedules in virtual time (docs/protocol.md 2.12, B46, B47), with and without
brokers."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.quorum.quorum import FAST, InvariantViolated, Quorum
from wrackline.broker.model.effects import Send
from wrackline.broker.model.messages.controller import BrokerHeartbeatRequest
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    DescribeClusterRequest,
    MetadataResponse,
    NewTopic,
)
from wrackline.broker.model.messages.requests import FetchRequest, Refused
from wrackline.broker.model.types import METADATA
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.world.world import StepRecord, World

FETCH_TIMEOUT_MS = FAST["quorum_fetch_timeout_ms"]


def others(world: Quorum, node: int) -> list[int]:
    return [other for other in world.ids if other != node]


@pytest.mark.parametrize("voters", [1, 3, 5])
def test_one_leader_is_elected_and_all_voters_get_the_same_log(voters: int) -> None:
    world = Quorum(1, voters)
    leader = world.wait_active()
    world.until(world.settled, 5_000)
    world.run(2_000)
    assert world.active == leader, "nobody disturbs a leader that answers"
    assert len(world.leaders) == 1
    for node in world.ids:
        core = world.controllers[node].core
        assert core is not None
        assert core.committed.controller_id == leader
        assert core.is_active == (node == leader)


def test_standbys_refuse_and_say_who_leads() -> None:
    world = Quorum(2)
    leader = world.wait_active()
    world.until(world.settled, 5_000)
    for node in others(world, leader):
        refused = world.asked(node, BrokerHeartbeatRequest(1, 1, 1, False, False))
        assert isinstance(refused, Refused)
        assert refused.error is ErrorCode.not_controller
        told = world.asked(node, DescribeClusterRequest())
        assert isinstance(told, MetadataResponse)
        assert told.controller_id == leader


def test_a_killed_leader_is_replaced_and_comes_back_as_a_follower() -> None:
    world = Quorum(3)
    first = world.wait_active()
    world.kill(first)
    second = world.wait_active(other_than=first)
    world.start(first)
    core = world.controllers[first].core
    assert core is not None
    assert core.raft.role is RaftRole.RESIGNED
    world.until(lambda: core.raft.role is RaftRole.FOLLOWER, 5_000)
    assert world.active == second, "its return disturbs nobody"
    world.until(world.settled, 5_000)


@pytest.mark.parametrize("seed", range(3, 8))
def test_a_leader_whose_process_is_gone_is_replaced_before_the_fetch_timeout(seed: int) -> None:
    """Its connections are refused: nobody need wait until it might be slow only."""
    world = Quorum(seed, quorum_fetch_timeout_ms=5_000, quorum_request_timeout_ms=4_000)
    first = world.wait_active()
    world.until(world.settled, 5_000)
    world.kill(first)
    world.wait_active(other_than=first, within_ms=2_000)


def test_a_connection_that_was_cut_once_brings_no_election() -> None:
    world = Quorum(9)
    leader = world.wait_active()
    world.until(world.settled, 5_000)
    epochs = dict(world.epochs)
    for _ in range(5):
        world._hang_up(world.server(leader), silent=False)
        world.run(300)
    assert world.active == leader
    assert world.epochs == epochs


@pytest.mark.parametrize("seed", range(3))
def test_a_broker_that_dies_with_the_active_controller_is_missed_once_not_twice(seed: int) -> None:
    world = Quorum(seed, brokers=2, quorum_fetch_timeout_ms=1_000)
    leader = world.wait_active()

    def unfenced() -> set[int]:
        return {broker.id for broker in world.image.brokers.values() if not broker.fenced}

    world.until(lambda: unfenced() == set(world.brokers), 10_000, "two brokers")
    world.run(1_000)
    dies, lives = world.brokers
    world.kill(dies)
    world.kill(leader)
    killed_ms = world.now_ms
    world.until(lambda: world.active not in (0, leader) and dies not in unfenced(), 10_000, "a fenced broker")
    assert world.now_ms - killed_ms <= FAST["session_timeout_ms"] + 100  # until it is committed
    world.run(5_000)
    assert unfenced() == {lives}


def test_without_a_majority_nobody_leads_and_nothing_is_answered() -> None:
    world = Quorum(4)
    leader = world.wait_active()
    for node in others(world, leader):
        world.kill(node)
    assert not world.create("lost", leader)
    world.until(lambda: world.active == 0, 5_000)
    core = world.controllers[leader].core
    assert core is not None
    assert core.raft.role is not RaftRole.LEADER
    assert "lost" not in core.committed.topics_by_name
    for node in others(world, leader):
        world.start(node)
    world.wait_active()
    world.until(world.settled, 5_000)


def test_what_a_deposed_leader_had_only_speculated_is_dropped() -> None:
    world = Quorum(5, brokers=3)
    world.until(world.all_unfenced, 10_000)
    old = world.wait_active()
    for other in others(world, old):
        world.cut(old, other)
    call = world.ask(old, CreateTopicsRequest((NewTopic("ghost", 1, 3),), 5_000), 5_000)
    core = world.controllers[old].core
    assert core is not None
    world.until(lambda: "ghost" in core.speculative.topics_by_name, 1_000)
    world.until(lambda: call.done, 5_000)
    assert isinstance(call.response, Refused)
    assert call.response.error is ErrorCode.not_controller
    assert "ghost" not in core.speculative.topics_by_name
    world.until(lambda: world.active not in (0, old), 5_000)
    world.heal()
    world.until(world.settled, 5_000)
    assert "ghost" not in core.committed.topics_by_name


@pytest.mark.parametrize(("defects", "stays"), [((), False), (("no_check_quorum",), True)])
def test_a_leader_that_hears_nobody_resigns(defects: tuple[str, ...], stays: bool) -> None:
    """B47, KAFKA-15489: what it sends arrives, what others send to it does not."""
    world = Quorum(6, defects=defects)
    old = world.wait_active()
    core = world.controllers[old].core
    assert core is not None
    for other in others(world, old):
        world.cut(other, old, one_way=True)
    world.run(1.5 * FETCH_TIMEOUT_MS + FETCH_TIMEOUT_MS)
    assert core.is_active is stays
    assert any(world.controllers[other].core.is_active for other in others(world, old))  # type: ignore[union-attr]


def test_a_cut_off_voter_disturbs_nobody_when_it_returns() -> None:
    """KIP-996: without a majority for a pre-vote its epoch does not rise."""
    world = Quorum(7)
    leader = world.wait_active()
    world.until(world.settled, 5_000)
    lonely = others(world, leader)[0]
    world.isolate(lonely, others(world, lonely))
    world.run(10 * FETCH_TIMEOUT_MS)
    epoch = world.epochs[leader]
    assert world.epochs[lonely] == epoch
    world.heal()
    world.until(world.settled, 5_000)
    assert (world.active, world.epochs[leader]) == (leader, epoch)


def test_a_leader_that_stops_hands_over_without_a_timeout() -> None:
    world = Quorum(8)
    leader = world.wait_active()
    world.until(world.settled, 5_000)
    before = world.now_ms
    world.clean_stop(leader)
    world.wait_active(other_than=leader)
    assert world.now_ms - before < FETCH_TIMEOUT_MS
    world.until(lambda: not world.controllers[leader].up, 5_000)
    assert world.controllers[leader].down == "clean"


@pytest.mark.parametrize(("defects", "kept"), [((), True), (("raft_no_fsync",), False)])
def test_committed_metadata_outlives_a_power_cut_of_everyone(defects: tuple[str, ...], kept: bool) -> None:
    """B46, KAFKA-10533: all disks are slow, and the power goes right after the answer."""
    world = Quorum(9, brokers=1, defects=defects, flush_ms=(200.0, 250.0))
    world.observers.clear()
    world.create_topic("before", replicas=(1,))
    world.create_topic("after", replicas=(1,))
    for node in world.ids:
        world.power(node, keep={METADATA: 0})
    for node in world.ids:
        world.start(node)
    world.wait_active()
    assert ("after" in world.image.topics_by_name) is kept


def test_brokers_go_on_at_the_next_controller_without_fetching_anything_again() -> None:
    world = Quorum(10, brokers=3)
    fetched: dict[int, int] = {}
    again: list[tuple[int, int, int]] = []

    def watch(_: World, step: StepRecord) -> None:
        for effect in step.effects:
            if isinstance(effect, Send) and isinstance(effect.request, FetchRequest) and step.node < 100:
                for part in effect.request.partitions:
                    if part.tp == METADATA:
                        if part.fetch_offset < fetched.get(step.node, 0):
                            again.append((step.node, fetched[step.node], part.fetch_offset))
                        fetched[step.node] = part.fetch_offset

    world.observers.append(watch)
    world.create_topic("before", replicas=(1, 2, 3))
    epochs = {node: broker.core.broker_epoch for node, broker in world.brokers.items() if broker.core}
    for round_ in range(3):
        old = world.wait_active()
        world.kill(old)
        world.wait_active(other_than=old)
        world.create_topic(f"after-{round_}", replicas=(1, 2, 3))
        world.start(old)
        world.run(1_000)
    assert again == []
    assert {n: b.core.broker_epoch for n, b in world.brokers.items() if b.core} == epochs, (
        "nobody registered anew"
    )
    assert not any(broker.exits for broker in world.brokers.values())


def test_brokers_survive_an_isolated_leader_that_they_can_still_reach() -> None:
    """It cannot commit, and must not tell a broker that its epoch is unknown (compare B42)."""
    world = Quorum(11, brokers=3)
    world.create_topic("before", replicas=(1, 2, 3))
    for round_ in range(4):
        old = world.wait_active()
        for other in others(world, old):
            world.cut(old, other)
        world.run(300)
        world.kill(round_ % 3 + 1)
        world.run(100)
        world.start(round_ % 3 + 1)
        world.run(3_000)
        world.heal()
        world.until(world.all_unfenced, 20_000)
        world.until(world.settled, 10_000)
    world.run(2_000)
    assert not any(broker.exits for broker in world.brokers.values())
    world.create_topic("after", replicas=(1, 2, 3))


def test_the_oracle_catches_a_leader_of_the_same_epoch_after_a_restart() -> None:
    """B46, KAFKA-10527: the canary."""
    world = Quorum(12, defects=("raft_keep_role",))
    leader = world.wait_active()
    world.kill(leader)
    with pytest.raises(InvariantViolated, match="Q01"):
        world.start(leader)
