"""The real broker and the real controller together, in virtual time: elections, rejoining, nothing acked
lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller import world as ctl_world
from tests.broker.core.controller.test_random import IgnoreUnclean, KeepElr
from tests.broker.core.controller.world import CONTROLLER, World
from wrackline.broker import defects
from wrackline.broker.core.lifecycle import State
from wrackline.broker.model.batches import batch
from wrackline.broker.model.messages.metadata import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    NewTopic,
)
from wrackline.broker.model.messages.requests import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    Response,
)
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER, TopicPartition
from wrackline.broker.rules.profile import Rules

T = TopicPartition("t", 0)


class Client:
    """Sends one record after the other with acks=all to whom it believes to lead; never the same value
    twice."""

    def __init__(self, world: World, tp: TopicPartition = T, pause_ms: float = 2) -> None:
        self.world = world
        self.pause_ms = pause_ms
        self.tp = tp
        self.acked: dict[bytes, int] = {}
        self.refused: list[ErrorCode] = []
        self.sent = 0
        self.stopped = False

    def start(self) -> Client:
        self._next()
        return self

    def _next(self) -> None:
        leader = (
            self.world.controller.committed.partition(self.tp) if self.world.nodes[CONTROLLER].core else None
        )
        if self.stopped:
            return
        if leader is None or leader.leader == NO_LEADER:
            self.world.after(20, self._next)
            return
        self.sent += 1
        value = f"v{self.sent}".encode()
        records = batch.build([value], 0, -1, int(self.world.now_ms))
        request = ProduceRequest(-1, 500, (ProducePartition(self.tp, records),))
        self.world.ask(leader.leader, request, lambda r: self._answered(value, r), timeout_ms=1_000)

    def _answered(self, value: bytes, response: Response | None) -> None:
        if isinstance(response, ProduceResponse):
            result = response.partitions[0]
            if result.error is ErrorCode.none:
                self.acked[value] = result.base_offset
            else:
                self.refused.append(result.error)
        self.world.after(self.world.random.uniform(0, 2 * self.pause_ms), self._next)


def ready(world: World) -> None:
    brokers = (1, 2, 3)
    world.run_until("all running", lambda: all(world.broker(b).state is State.RUNNING for b in brokers))


def create(world: World, topic: NewTopic) -> None:
    answers: list[Response | None] = []
    world.ask(1, CreateTopicsRequest((topic,), 2_000), answers.append)
    world.run_until("topic created", lambda: bool(answers))
    (answer,) = answers
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error is ErrorCode.none, answer
    shown = (lambda b=b: world.broker(b).image.partition(T) is not None for b in (1, 2, 3))
    for holds in shown:
        world.run_until("topic known", holds)


@pytest.fixture
def world() -> World:
    world = World(seed=1)
    ready(world)
    create(world, NewTopic("t", 1, 3))
    return world


def partition(world: World) -> PartitionImage:
    found = world.controller.committed.partition(T)
    assert found is not None
    return found


def full_isr(world: World) -> Callable[[], bool]:
    def holds() -> bool:
        up = [n for n in (1, 2, 3) if world.nodes[n].core is not None]
        running = all(world.broker(n).state is State.RUNNING for n in up)
        known = world.controller.committed.partition(T)
        return running and known is not None and set(known.isr) == set(up) == {1, 2, 3}

    return holds


def settle(world: World, *clients: Client) -> None:
    """No more faults, no more sends: every replica becomes the same."""
    for client in clients:
        client.stopped = True
    world.run_until("full ISR", full_isr(world))
    world.run_until("equal logs", lambda: len({world.nodes[b].logs[T].leo for b in (1, 2, 3)}) == 1)
    check(world, *clients)


def check(world: World, *clients: Client) -> None:
    logs = {b: world.nodes[b].logs[T].values() for b in (1, 2, 3)}
    for a, b in combinations(logs, 2):
        assert logs[a] == logs[b], f"logs of {a} and {b} differ"
    for client in clients:
        by_value = {value: offset for offset, _, value in logs[1]}
        for value, offset in client.acked.items():
            assert by_value.get(value) == offset, f"{value!r} acked at {offset}: {by_value.get(value)}"


def test_three_brokers_start_and_replicate(world: World) -> None:
    client = Client(world).start()
    world.run_until("100 acks", lambda: len(client.acked) >= 100)
    assert client.refused == []
    settle(world, client)
    assert partition(world).leader_epoch == 0
    for broker in (1, 2, 3):
        metadata = world.nodes[broker].logs[(T._replace(topic="__cluster_metadata"))].values()
        assert (
            metadata
            == world.nodes[CONTROLLER].logs[T._replace(topic="__cluster_metadata")].values()[: len(metadata)]
        )


@pytest.mark.parametrize("how", ["kill", "power", "stop"])
def test_the_leader_goes_another_is_elected_and_it_comes_back(world: World, how: str) -> None:
    client = Client(world).start()
    world.run_until("50 acks", lambda: len(client.acked) >= 50)
    leader = partition(world).leader
    if how == "stop":
        world.stop(leader)
        world.run_until("stopped", lambda: world.nodes[leader].core is None)
        assert world.nodes[leader].exits[0].code == 0
        assert world.nodes[leader].clean_epoch >= 0
    elif how == "kill":
        world.kill(leader)
    else:
        world.cut_power(leader)
    before = len(client.acked)
    world.run_until("acks from another", lambda: len(client.acked) >= before + 50)
    assert partition(world).leader not in (leader, NO_LEADER)
    world.start(leader)
    settle(world, client)


def test_a_killed_broker_that_is_back_before_its_session_ends_waits_for_it(world: World) -> None:
    client = Client(world).start()
    leader = partition(world).leader
    world.run(300)
    world.kill(leader)
    world.run(20)
    world.start(leader)
    world.run(300)
    assert world.broker(leader).state is State.STARTING
    settle(world, client)
    assert partition(world).leader != leader


def test_an_isolated_leader_acks_nothing_and_joins_again(world: World) -> None:
    client = Client(world).start()
    world.run(500)
    leader = partition(world).leader
    world.isolate(leader)
    world.run_until("another leads", lambda: partition(world).leader not in (leader, NO_LEADER))
    before = len(client.acked)
    world.run_until("acks again", lambda: len(client.acked) > before + 20)
    world.heal()
    settle(world, client)


def test_below_min_isr_nothing_is_acked_until_a_follower_is_back(world: World) -> None:
    client = Client(world).start()
    world.run(500)
    leader = partition(world).leader
    followers = [b for b in (1, 2, 3) if b != leader]
    for broker in followers:
        world.kill(broker)
    world.run_until("ISR of one", lambda: partition(world).isr == (leader,))
    world.run(1_000)
    acked = len(client.acked)
    world.run(2_000)
    assert len(client.acked) == acked
    assert ErrorCode.not_enough_replicas in client.refused
    for broker in followers:
        world.start(broker)
    world.run_until("acks again", lambda: len(client.acked) > acked)
    settle(world, client)


@pytest.mark.parametrize("power", [False, True])
def test_a_controller_that_restarts_fences_nobody_who_is_alive(world: World, power: bool) -> None:
    client = Client(world).start()
    world.run(500)
    epoch = partition(world).leader_epoch
    if power:
        world.cut_power(CONTROLLER)
    else:
        world.kill(CONTROLLER)
    world.run(400)
    world.start(CONTROLLER)
    world.run(3_000)
    assert partition(world).leader_epoch == epoch
    settle(world, client)
    leader = partition(world).leader
    client.stopped = False
    world.kill(leader)
    world.run_until("still elects", lambda: partition(world).leader not in (leader, NO_LEADER))


def test_deleted_topics_leave_no_log_and_come_back_empty(world: World) -> None:
    client = Client(world).start()
    world.run(300)
    client.stopped = True
    answers: list[Response | None] = []
    world.ask(2, DeleteTopicsRequest(("t",), 2_000), answers.append)
    world.run_until("logs gone", lambda: all(T not in world.nodes[b].logs for b in (1, 2, 3)))
    create(world, NewTopic("t", 1, 3))
    again = Client(world).start()
    world.run_until("acks", lambda: len(again.acked) >= 5)
    assert min(again.acked.values()) == 0
    settle(world, again)


def strike(world: World, fault: str, victim: int) -> None:
    """One fault; nothing happens to a node that is down already, and nobody stops a controller politely."""
    if fault == "cut":
        world.cuts.add(frozenset(world.random.sample([1, 2, 3, CONTROLLER], 2)))
    elif fault == "isolate":
        world.isolate(victim)
    elif world.nodes[victim].core is None:
        return
    elif fault == "power":
        world.cut_power(victim)
    elif fault == "stop" and victim != CONTROLLER:
        world.stop(victim)
    else:
        world.kill(victim)


def start_all(world: World) -> None:
    for node in (CONTROLLER, 1, 2, 3):
        if world.nodes[node].core is None:
            world.start(node)


@pytest.mark.parametrize("seed", range(8))
def test_random_faults_one_broker_at_a_time_lose_nothing(seed: int) -> None:
    """One broker at most is down or has lost records, MinISR is 2: f = 1 is never exceeded. Cuts come at any
    time."""
    world = World(seed=100 + seed)
    ready(world)
    create(world, NewTopic("t", 1, 3))
    client = Client(world, pause_ms=20).start()
    chance = world.random
    for _ in range(12):
        world.run(chance.uniform(50, 800))
        fault = chance.choice(["kill", "power", "power", "stop", "isolate", "cut"])
        victim = chance.choice((1, 2, 3, partition(world).leader, CONTROLLER))
        strike(world, fault, victim)
        if fault == "stop":
            world.run_until("stopped", lambda v=victim: world.nodes[v].core is None)
        world.run(chance.uniform(10, 3_000))
        world.heal()
        world.run(chance.choice([0, 10, 500, 2_500]))
        start_all(world)
        world.run_until("recovered", full_isr(world))
    assert len(client.acked) > 100
    settle(world, client)


@pytest.mark.parametrize("seed", range(8))
def test_overlapping_faults_with_one_lossy_broker_lose_nothing(seed: int) -> None:
    """Any number of crashes and cuts at once, but only one broker ever loses records (R37). When every
    candidate was killed their logs are compared (R33), and nothing is lost all the same."""
    world = World(seed=500 + seed)
    ready(world)
    create(world, NewTopic("t", 1, 3))
    client = Client(world, pause_ms=20).start()
    chance = world.random
    lossy = chance.choice((1, 2, 3))
    for _ in range(40):
        world.run(chance.uniform(10, 600))
        fault = chance.choice(["kill", "power", "stop", "isolate", "cut", "heal", "heal", "start", "start"])
        victim = chance.choice((1, 2, 3, CONTROLLER))
        if fault == "heal":
            world.heal()
        elif fault == "start":
            start_all(world)
        else:
            strike(world, fault, lossy if fault == "power" else victim)
    client.stopped = True
    world.heal()
    for _ in range(10):
        world.run(1_000)
        start_all(world)
    assert client.acked
    settle(world, client)


@pytest.mark.parametrize("defect", ["no_divergence_check", "elr_not_cleared", "ignore_unclean"])
def test_the_same_worlds_find_a_wrong_rule(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the silence of the tests above would say nothing."""
    wrong = {
        "no_divergence_check": defects.apply(Rules(), ["no_divergence_check"]),
        "elr_not_cleared": replace(Rules(), election=KeepElr()),
        "ignore_unclean": replace(Rules(), registration=IgnoreUnclean()),
    }[defect]
    monkeypatch.setattr(ctl_world, "Rules", lambda: wrong)

    def worlds() -> None:
        for seed in range(12):
            test_overlapping_faults_with_one_lossy_broker_lose_nothing(seed)
            test_random_faults_one_broker_at_a_time_lose_nothing(seed)

    with pytest.raises(AssertionError, match=r"logs of . and . differ|acked at"):
        worlds()
