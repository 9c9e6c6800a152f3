"""A log of which nobody knows the topic any more (``partition.metadata`` is damaged): it is fetched anew
where another replica leads, never counts as having what it lost, and stays where it may be the last copy."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.driver import Cluster, T
from tests.broker.core.solo import Solo, log_of
from wrackline.broker.model.types import NO_LEADER, TopicPartition

BROKERS = (1, 2, 3)
VALUES = [b"m%d" % number for number in range(5)]


def cluster(*placement: int) -> Cluster:
    c = Cluster()
    c.create_topic("t", placement)
    for value in VALUES:
        assert c.produced(placement[0], value).error is ErrorCode.none
    return c


def partition(c: Cluster) -> Any:
    return c.controller.committed.partition(T)


def trusted(c: Cluster) -> set[int]:
    """Whom the controller would elect without a doubt."""
    found = partition(c)
    return {*found.isr, *found.elr}


def has_log(c: Cluster, node: int) -> bool:
    return T in c.nodes[node].disk.logs


@pytest.mark.parametrize("victim", BROKERS, ids=["the leader", "a follower", "the other follower"])
@pytest.mark.parametrize("clean", [False, True], ids=["killed", "stopped"])
def test_it_is_fetched_anew_and_joins_when_it_has_everything(victim: int, clean: bool) -> None:
    c = cluster(1, 2, 3)
    c.stop(victim) if clean else c.kill(victim)
    c.until(lambda: c.controller.committed.brokers[victim].fenced)
    c.boot(victim, damaged=(T,))

    def begun() -> bool:
        assert victim not in trusted(c), "nothing is there yet"
        return has_log(c, victim)

    c.until(begun)
    c.until(lambda: c.isr() == set(BROKERS))
    assert c.values(victim) == VALUES
    assert c.produced(c.leader(), b"after").base_offset == len(VALUES)


def test_when_all_went_at_once_the_others_are_asked_and_lead() -> None:
    """Balanced recovery waits for every candidate's answer: one that can say nothing holds it up no more."""
    c = cluster(1, 2, 3)
    for node in BROKERS:
        c.kill(node)
    c.until(lambda: not c.unfenced())
    c.boot(2, damaged=(T,))
    c.boot(1)
    c.until(lambda: {1, 2} <= c.unfenced())
    c.run(5_000)
    assert c.leader() == NO_LEADER, "3 may have more"
    assert not has_log(c, 2), "it may be the last copy still"
    c.boot(3)
    c.until(lambda: c.isr() == set(BROKERS))
    [candidates] = [line["candidates"] for line in c.traced("recovery") if line["winner"] is not None]
    assert 2 in candidates, "it was asked"
    assert c.leader() != 2
    assert all(c.values(node) == VALUES for node in BROKERS)


@pytest.mark.parametrize("placement", [(2,), (1, 2, 3)], ids=["of one replica", "of three, all damaged"])
def test_the_last_copy_is_left_alone_and_nobody_leads_without_it(placement: tuple[int, ...]) -> None:
    c = cluster(*placement)
    for node in placement:
        c.kill(node)
    c.until(lambda: not c.unfenced().intersection(placement))
    for node in placement:
        c.boot(node, damaged=(T,))
    c.until(lambda: c.unfenced() == set(BROKERS))
    c.run(30_000)
    assert (c.leader(), trusted(c)) == (NO_LEADER, set())
    assert not any(has_log(c, node) for node in placement)


def test_a_log_of_a_topic_that_is_gone_goes_aside() -> None:
    c = cluster(1, 2, 3)
    gone = TopicPartition("gone", 0)
    c.kill(3)
    c.until(lambda: c.controller.committed.brokers[3].fenced)
    c.nodes[3].disk.logs[gone] = c.nodes[3].disk.logs[T]
    c.boot(3, damaged=(gone,))
    c.nodes[3].disk.logs[gone] = c.nodes[3].disk.logs[T]
    c.until(lambda: gone not in c.nodes[3].disk.logs)
    c.until(lambda: c.isr() == set(BROKERS))


@pytest.mark.parametrize(("isr", "elr"), [((1, 2), ()), ((1,), (2,))], ids=["ISR", "ELR"])
def test_who_counts_as_having_it_does_not_begin_anew(isr: tuple[int, ...], elr: tuple[int, ...]) -> None:
    """Its registration took it out of both, or nothing may be put aside: an empty log would be believed."""
    solo = Solo(2, leader=1, isr=isr, elr=elr, offline=(T,))
    assert solo.replica.failed
    assert T not in solo.disk.logs


def test_a_log_that_was_fetched_meanwhile_is_kept_by_the_core_that_takes_over() -> None:
    """The later core of a bridging broker is booted with what the disk said at the start of the process."""
    solo = Solo(2, log=log_of([0, 0, 0]), leader=1, isr=(1, 3), offline=(T,))
    assert (solo.replica.failed, solo.replica.log.leo) == (False, 3)
