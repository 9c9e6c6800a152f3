"""Reassignment with real brokers in virtual time: K54, catch-up, logs that go, faults in the middle
(docs/protocol.md 2.10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.test_with_brokers import Client, T, create, partition, ready
from tests.broker.core.controller.world import CONTROLLER, Node, World
from wrackline.broker import defects
from wrackline.broker.core.lifecycle import State
from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.messages.metadata import NewTopic
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import NO_LEADER
from wrackline.broker.rules.profile import Rules

EVERYONE = (1, 2, 3, 4, 5)


def five(seed: int = 1, **settings: object) -> World:
    world = World(seed, **settings)  # type: ignore[arg-type]
    for broker in (4, 5):
        world.nodes[broker] = Node(broker)
        world.start(broker)
    ready(world)
    world.run_until("all running", lambda: all(world.broker(b).state is State.RUNNING for b in (4, 5)))
    create(world, NewTopic("t", assignments={0: (1, 2, 3)}))
    return world


def ask(world: World, request: Request, broker: int = 2) -> Response:
    answers: list[Response | None] = []
    world.ask(broker, request, answers.append, timeout_ms=5_000)
    world.run_until("an answer", lambda: bool(answers))
    assert answers[0] is not None
    return answers[0]


def reassign(world: World, target: tuple[int, ...] | None, broker: int = 2) -> ErrorCode:
    response = ask(world, a.AlterPartitionReassignmentsRequest((a.Reassignment(T, target),), 2_000), broker)
    assert isinstance(response, a.AlterPartitionReassignmentsResponse)
    return response.error if not response.partitions else response.partitions[0].error


def isr_size(world: World) -> int:
    """0 while the controller does not know yet."""
    known = world.controller.committed.partition(T)
    return 0 if known is None else len(known.isr)


def complete(world: World, *replicas: int) -> Callable[[], bool]:
    def holds() -> bool:
        p = world.controller.committed.partition(T)
        return (
            p is not None
            and not p.adding
            and not p.removing
            and set(p.isr) == set(p.replicas) == set(replicas)
        )

    return holds


def check(world: World, client: Client) -> None:
    """Everything acknowledged is on every replica, where it was acknowledged; nobody else has a log."""
    client.stopped = True
    members = set(partition(world).replicas)
    world.run_until("equal logs", lambda: len({world.nodes[b].logs[T].leo for b in members}) == 1)
    world.run_until(
        "logs of the others gone", lambda: {b for b in EVERYONE if T in world.nodes[b].logs} == members
    )
    logs = {b: world.nodes[b].logs[T].values() for b in members}
    first = next(iter(logs.values()))
    assert all(log == first for log in logs.values())
    there = {value: offset for offset, _, value in first}
    assert client.acked
    lost = [value for value, offset in client.acked.items() if there.get(value) != offset]
    assert not lost, f"{lost[:5]} of {len(client.acked)}"


def test_added_replicas_follow_without_a_new_leader_epoch() -> None:
    world = five()
    client = Client(world).start()
    world.run(500)
    epoch = partition(world).leader_epoch
    assert reassign(world, (4, 5, 1)) is ErrorCode.none
    assert partition(world).leader_epoch == epoch
    world.run_until("done", complete(world, 4, 5, 1))
    assert (partition(world).leader, partition(world).leader_epoch) == (1, epoch + 1)
    world.run(200)
    check(world, client)


def test_the_leader_itself_can_be_moved_away() -> None:
    world = five()
    client = Client(world).start()
    world.run(300)
    assert reassign(world, (4, 5)) is ErrorCode.none
    world.run_until("done", complete(world, 4, 5))
    world.run(500)
    before = len(client.acked)
    world.run(500)
    assert len(client.acked) > before, "the new leader serves"
    check(world, client)


def test_added_needs_epoch_keeps_the_added_replica_out_of_the_isr() -> None:
    """B44, its defect: the added replica has its log and follows nobody."""
    world = five(rules=defects.apply(Rules(), ["added_needs_epoch"]))
    client = Client(world).start()
    world.run(300)
    reassign(world, (4, 2, 3))
    world.run(8_000)
    assert partition(world).adding == (4,)
    assert 4 not in partition(world).isr
    client.stopped = True


@pytest.mark.parametrize("victim", [1, 2, 4, CONTROLLER])
def test_a_reassignment_completes_although_a_node_is_killed_in_the_middle(victim: int) -> None:
    world = five(seed=victim)
    client = Client(world).start()
    world.run(500)
    assert reassign(world, (4, 5, 2), broker=3) is ErrorCode.none
    world.run(world.random.uniform(0, 60))
    world.kill(victim)
    world.run(3_000)
    world.start(victim)
    world.run_until("done", complete(world, 4, 5, 2), 60_000)
    check(world, client)


def test_a_cancelled_one_leaves_no_log_behind() -> None:
    world = five()
    client = Client(world).start()
    world.run(300)
    world.kill(5)
    world.run(1_500)
    assert reassign(world, (4, 5, 1)) is ErrorCode.none
    world.run_until("4 in the ISR", lambda: 4 in partition(world).isr)
    assert partition(world).adding == (4, 5)
    assert reassign(world, None) is ErrorCode.none
    world.start(5)
    world.run_until("back", complete(world, 1, 2, 3))
    check(world, client)


def test_a_rate_holds_back_who_is_added_and_nobody_else() -> None:
    world = five()
    client = Client(world).start()
    world.run(1_000)
    rate = a.ConfigChange("follower.replication.throttled.rate", a.AlterOp.SET, "2000")
    ask(world, a.IncrementalAlterConfigsRequest((a.AlteredResource(a.Resource(a.BROKER, ""), (rate,)),)))
    reassign(world, (4, 1, 2))
    world.run(2_000)
    assert partition(world).adding == (4,), "a log of more than 4 kB at 2 kB a second"
    assert 0 < world.nodes[4].logs[T].leo < world.nodes[1].logs[T].leo / 2
    assert set(partition(world).isr) == {1, 2, 3}
    more = rate._replace(op=a.AlterOp.DELETE, value=None)
    ask(world, a.IncrementalAlterConfigsRequest((a.AlteredResource(a.Resource(a.BROKER, ""), (more,)),)))
    world.run_until("done", complete(world, 4, 1, 2))
    check(world, client)


def test_brokers_count_by_a_changed_min_isr_at_once() -> None:
    """For the whole cluster, so that no record names the topic (KAFKA-16540)."""
    world = five()
    client = Client(world).start()
    world.run(300)
    world.kill(2)
    world.kill(3)
    world.run_until("alone", lambda: isr_size(world) == 1)
    world.run(1_000)
    before = len(client.acked)
    world.run(500)
    assert len(client.acked) == before, "one of two: nothing is acknowledged"
    change = a.ConfigChange("min.insync.replicas", a.AlterOp.SET, "1")
    cluster = a.AlteredResource(a.Resource(a.BROKER, ""), (change,))
    ask(world, a.IncrementalAlterConfigsRequest((cluster,)), broker=4)
    assert (partition(world).elr, partition(world).last_known_elr) == ((), ())
    world.run(1_000)
    assert len(client.acked) > before
    world.start(2)
    world.start(3)
    world.run_until("all back", complete(world, 1, 2, 3))
    check(world, client)


@pytest.mark.parametrize("seed", range(12))
def test_moves_and_faults_at_random(seed: int) -> None:
    """Any targets, cancelled now and then, under kills, power cuts and isolation of one node at a time."""
    world = five(seed)
    client = Client(world).start()
    for _ in range(5):
        size = world.random.choice((2, 3, 3))
        target = tuple(world.random.sample(EVERYONE, size))
        reassign(world, target, broker=world.random.choice(EVERYONE))
        world.run(world.random.uniform(0, 150))
        if world.random.random() < 0.3:
            reassign(world, None, broker=world.random.choice(EVERYONE))
        victim = world.random.choice((*EVERYONE, CONTROLLER))
        fault = world.random.choice(("kill", "power", "isolate"))
        if fault == "isolate":
            world.isolate(victim)
        elif fault == "power" and victim != CONTROLLER:
            world.cut_power(victim)
        else:
            world.kill(victim)
        world.run(world.random.uniform(100, 3_000))
        world.heal()
        if world.nodes[victim].core is None:
            world.start(victim)
        world.run_until("everyone up", lambda: all(world.nodes[b].core is not None for b in EVERYONE))
        world.run_until("a large enough ISR", lambda: isr_size(world) >= 2, 60_000)
    final = partition(world).replicas
    if partition(world).adding or partition(world).removing:
        final = tuple(b for b in final if b not in partition(world).removing)
    world.run_until("the last move done", complete(world, *final), 60_000)
    assert partition(world).leader != NO_LEADER
    world.run(500)
    check(world, client)
