"""Reassignment with real brokers in virtual time: K54, catch-up, logs that go, faults in the middle
(docs/protocol.md 2.10)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import CONTROLLER, Cluster, T, Writer
from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER

EVERYONE = (1, 2, 3, 4, 5)


def five(**changes: object) -> tuple[Cluster, Writer]:
    c = Cluster(brokers=EVERYONE, session_timeout_ms=1_000, **changes)  # type: ignore[arg-type]
    c.create_topic()
    writer = Writer(c)
    c.run(500)
    return c, writer


def partition(c: Cluster) -> PartitionImage:
    found = c.controller.committed.partition(T)
    assert found is not None
    return found


def reassign(c: Cluster, target: tuple[int, ...] | None, broker: int = 2) -> ErrorCode:
    request = a.AlterPartitionReassignmentsRequest((a.Reassignment(T, target),), 2_000)
    response = c.answer(broker, request)
    error: ErrorCode = response.partitions[0].error if response.partitions else response.error
    return error


def configure(c: Cluster, name: str, value: str | None, broker: int = 2) -> None:
    """A setting of the whole cluster."""
    change = a.ConfigChange(name, a.AlterOp.DELETE if value is None else a.AlterOp.SET, value)
    resource = a.AlteredResource(a.Resource(a.BROKER, ""), (change,))
    c.answer(broker, a.IncrementalAlterConfigsRequest((resource,)))


def isr_size(c: Cluster) -> int:
    """0 while the controller does not know yet."""
    known = c.controller.committed.partition(T)
    return 0 if known is None else len(known.isr)


def complete(c: Cluster, *replicas: int) -> Callable[[], bool]:
    def holds() -> bool:
        p = c.controller.committed.partition(T)
        moved = p is not None and not p.adding and not p.removing
        return p is not None and moved and set(p.isr) == set(p.replicas) == set(replicas)

    return holds


def test_added_replicas_follow_without_a_new_leader_epoch() -> None:
    c, writer = five()
    epoch = partition(c).leader_epoch
    assert reassign(c, (4, 5, 1)) is ErrorCode.none
    assert partition(c).leader_epoch == epoch
    c.until(complete(c, 4, 5, 1))
    assert (partition(c).leader, partition(c).leader_epoch) == (1, epoch + 1)
    c.run(200)
    writer.finish()


def test_the_leader_itself_can_be_moved_away() -> None:
    c, writer = five()
    assert reassign(c, (4, 5)) is ErrorCode.none
    c.until(complete(c, 4, 5))
    c.run(500)
    before = len(writer.acked)
    c.run(500)
    assert len(writer.acked) > before, "the new leader serves"
    writer.finish()


def test_added_needs_epoch_keeps_the_added_replica_out_of_the_isr() -> None:
    """B44, its defect: the added replica has its log and follows nobody."""
    c, _ = five(defects=["added_needs_epoch"])
    reassign(c, (4, 2, 3))
    c.run(3_000)
    assert partition(c).adding == (4,)
    assert 4 not in partition(c).isr


@pytest.mark.parametrize("victim", [1, 2, 4, CONTROLLER])
def test_a_reassignment_completes_although_a_node_is_killed_in_the_middle(victim: int) -> None:
    c, writer = five()
    assert reassign(c, (4, 5, 2), broker=3) is ErrorCode.none
    c.run(victim)
    c.kill(victim)
    c.run(3_000)
    c.boot(victim)
    c.until(complete(c, 4, 5, 2), 60_000)
    writer.finish()


def test_a_cancelled_one_leaves_no_log_behind() -> None:
    c, writer = five()
    c.kill(5)
    c.run(1_500)
    assert reassign(c, (4, 5, 1)) is ErrorCode.none
    c.until(lambda: 4 in partition(c).isr)
    assert partition(c).adding == (4, 5)
    assert reassign(c, None) is ErrorCode.none
    c.boot(5)
    c.until(complete(c, 1, 2, 3))
    writer.finish()


def test_a_rate_holds_back_who_is_added_and_nobody_else() -> None:
    c, writer = five()
    configure(c, "follower.replication.throttled.rate", "2000")
    reassign(c, (4, 1, 2))
    c.run(2_000)
    assert partition(c).adding == (4,), "a log of more than 4 kB at 2 kB a second"
    assert 0 < c.replica(4).log.leo < c.replica(1).log.leo / 2
    assert set(partition(c).isr) == {1, 2, 3}
    configure(c, "follower.replication.throttled.rate", None)
    c.until(complete(c, 4, 1, 2))
    writer.finish()


def test_brokers_count_by_a_changed_min_isr_at_once() -> None:
    """For the whole cluster, so that no record names the topic (KAFKA-16540)."""
    c, writer = five()
    c.kill(2)
    c.kill(3)
    c.until(lambda: isr_size(c) == 1)
    c.run(1_000)
    before = len(writer.acked)
    c.run(500)
    assert len(writer.acked) == before, "one of two: nothing is acknowledged"
    configure(c, "min.insync.replicas", "1", broker=4)
    assert (partition(c).elr, partition(c).last_known_elr) == ((), ())
    c.run(1_000)
    assert len(writer.acked) > before
    c.start_all()
    c.until(complete(c, 1, 2, 3))
    writer.finish()


@pytest.mark.parametrize("seed", range(12))
def test_moves_and_faults_at_random(seed: int) -> None:
    """Any targets, cancelled now and then, under kills, power cuts and isolation of one node at a time."""
    chance = random.Random(seed)
    c, writer = five()
    c.latency = lambda: chance.uniform(0.2, 3.0)
    for _ in range(5):
        target = tuple(chance.sample(EVERYONE, chance.choice((2, 3, 3))))
        reassign(c, target, broker=chance.choice(EVERYONE))
        c.run(chance.uniform(0, 150))
        if chance.random() < 0.3:
            reassign(c, None, broker=chance.choice(EVERYONE))
        victim = chance.choice((*EVERYONE, CONTROLLER))
        fault = chance.choice(("kill", "power", "isolate"))
        if fault == "isolate":
            c.isolate(victim)
        elif fault == "power" and victim != CONTROLLER:
            c.power(victim)
        else:
            c.kill(victim)
        c.run(chance.uniform(100, 3_000))
        c.heal()
        c.start_all()
        c.until(lambda: isr_size(c) >= 2, 60_000)
    final = set(partition(c).replicas) - set(partition(c).removing)
    c.until(complete(c, *final), 60_000)
    assert partition(c).leader != NO_LEADER
    c.run(500)
    writer.finish()
