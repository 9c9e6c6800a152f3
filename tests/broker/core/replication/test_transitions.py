"""Golden: every passage of a replica from one role to the next (docs/protocol.md K48-K54, K16, K20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.broker.core.solo import TOPIC_ID, Solo, T, change, log_of
from wrackline.broker.model.messages.requests import FetchPartition, FetchRequest, FetchResponse, FetchResult
from wrackline.broker.model.metadata.records import PartitionChangeRecord, PartitionRecord
from wrackline.broker.model.types import NO_LEADER, TopicPartition


def asked(solo: Solo, channel: str = "fetcher-0") -> tuple[Any, FetchPartition]:
    send = solo.sent(channel)
    assert isinstance(send.request, FetchRequest)
    (part,) = send.request.partitions
    return send, part


def fetches(solo: Solo) -> bool:
    return any(send.channel.startswith("fetcher") for send in solo.sends)


@pytest.mark.parametrize(("min_isr", "committed"), [(1, 3), (2, 1)])
def test_k48_follower_to_leader(min_isr: int, committed: int) -> None:
    """Out of the fetcher, followers unknown, LESO = LEO; alone it commits its whole log only with MinISR
    1."""
    log = log_of([0, 0, 0])
    solo = Solo(2, log=log, leader=1, isr=(1, 2), high_watermark=1, min_isr=min_isr)
    late, _ = asked(solo)
    solo.metadata(change(leader=2, isr=(2,)))
    leading = solo.replica.leading
    assert (leading.leso, solo.replica.leader_epoch) == (3, 1)
    assert {node: follower.leo for node, follower in leading.followers.items()} == {1: -1, 3: -1}
    assert solo.replica.high_watermark == committed
    assert not fetches(solo)
    stray = FetchResult(T, high_watermark=3, records=log_of([0] * 4).batches[3][1])
    solo.answer(late, FetchResponse((stray,)))
    assert solo.replica.log.leo == 3, "what it had asked for as a follower comes too late"
    assert not fetches(solo)


def test_k49_leader_to_leader_of_the_same_epoch() -> None:
    """A smaller ISR may have committed more; what is known of the followers stays."""
    solo = Solo(isr=(1, 2, 3))
    solo.produce(b"a", acks=1)
    solo.fetch(2, 1)
    assert solo.replica.high_watermark == 0
    solo.metadata(change(isr=(1, 2)))
    assert (solo.replica.high_watermark, solo.replica.leader_epoch) == (1, 0)
    assert solo.replica.leading.followers[2].leo == 1
    assert solo.replica.leading.leso == 0


def test_k50_leader_to_leader_of_a_new_epoch() -> None:
    """Followers outside the ISR are unknown again, LESO is the end of now (B21)."""
    solo = Solo(isr=(1, 2))
    solo.produce(b"a", acks=1)
    solo.fetch(2, 1)
    solo.fetch(3, 0)
    solo.metadata(change(leader=1))
    leading = solo.replica.leading
    assert (solo.replica.leader_epoch, leading.leso) == (1, 1)
    assert {node: follower.leo for node, follower in leading.followers.items()} == {2: 1, 3: -1}


def test_k50_several_epochs_seen_as_one_change() -> None:
    """Others may have led in between: what was known of the followers is true no more (B21)."""
    solo = Solo(isr=(1, 2))
    solo.produce(b"a", acks=1)
    solo.fetch(3, 1)
    solo.metadata(change(leader=2), change(leader=1, isr=(1, 3)))
    leading = solo.replica.leading
    assert (solo.replica.leader_epoch, leading.isr) == (2, {1, 3})
    assert {node: follower.leo for node, follower in leading.followers.items()} == {2: -1, 3: -1}
    assert solo.replica.high_watermark == 0


def test_k51_leader_to_follower() -> None:
    """It asks at its own end, in the new leader epoch, with its broker epoch; nothing is cut before the
    answer."""
    solo = Solo(isr=(1, 2), leader_epoch=4)
    solo.produce(b"a", acks=1)
    solo.produce(b"b", acks=1)
    assert not fetches(solo)
    solo.metadata(change(leader=2))
    send, part = asked(solo)
    assert send.destination == 2
    assert send.request.broker_epoch == solo.broker.broker_epoch
    assert (part.fetch_offset, part.current_leader_epoch, part.last_fetched_epoch) == (2, 5, 4)
    assert solo.replica.log.leo == 2
    assert solo.replica.leader is None


def test_k52_follower_to_follower_of_the_same_epoch() -> None:
    """The request on its way stays the current one: no second is sent, and its answer is taken."""
    solo = Solo(2, log=log_of([]), leader=1)
    send, _ = asked(solo)
    solo.metadata(change(isr=(1, 2)))
    assert not fetches(solo)
    data = log_of([0]).batches[0][1]
    solo.answer(send, FetchResponse((FetchResult(T, high_watermark=0, records=data),)))
    assert solo.replica.log.leo == 1


@pytest.mark.parametrize("heir", [1, 3], ids=["same leader", "another leader"])
def test_k53_follower_to_follower_of_a_new_epoch(heir: int) -> None:
    """Into the fetcher anew, of whoever leads; the former request's answer is nobody's any more."""
    solo = Solo(2, log=log_of([0]), leader=1)
    late, _ = asked(solo)
    solo.metadata(change(leader=heir))
    (send,) = (s for s in solo.sends if s.channel.startswith("fetcher"))
    assert isinstance(send.request, FetchRequest)
    (part,) = send.request.partitions
    assert send.destination == heir
    assert (part.fetch_offset, part.current_leader_epoch, part.last_fetched_epoch) == (1, 1, 0)
    data = log_of([0, 0]).batches[1][1]
    solo.answer(late, FetchResponse((FetchResult(T, high_watermark=0, records=data),)))
    assert solo.replica.log.leo == 1


def test_k54_a_newly_added_replica() -> None:
    """Growing leaves the leader epoch alone, and the added replica follows all the same (B44)."""
    solo = Solo(3, leader=1, isr=(1, 2), replicas=(1, 2), leader_epoch=6)
    assert solo.broker.replica(T) is None
    grow = change(replicas=(1, 2, 3), adding_replicas=(3,))
    solo.metadata(grow)
    _, part = asked(solo)
    assert (part.fetch_offset, part.current_leader_epoch) == (0, 6)
    stuck = Solo(3, leader=1, isr=(1, 2), replicas=(1, 2), leader_epoch=6, defects=["added_needs_epoch"])
    stuck.metadata(grow)
    assert not fetches(stuck)


# --- K20: deltas at once or one by one ----------------------------------------------------------------------

LIFE: Sequence[PartitionChangeRecord] = (
    change(isr=(1, 2)),
    change(leader=2, isr=(2,)),
    change(isr=(1, 2)),
    change(leader=NO_LEADER, isr=()),
    change(leader=1, isr=(1,)),
    change(isr=(1, 3)),
    change(leader=3),
    change(leader=1),
)


@pytest.mark.parametrize("cuts", [(), (4,), (2, 6), (1, 3, 5, 7), tuple(range(1, 8))], ids=str)
def test_k20_only_the_final_image_of_a_batch_is_acted_upon(cuts: tuple[int, ...]) -> None:
    """However the same records are delivered, the replica ends in the same role, with nothing left of the
    others."""
    solo = Solo(1, isr=(1, 2, 3))
    solo.produce(b"a", acks=1)
    solo.fetch(3, 0)
    bounds = [0, *cuts, len(LIFE)]
    for begin, end in pairwise(bounds):
        solo.sends = [s for s in solo.sends if s.channel == "controller-fetch"]
        solo.metadata(*LIFE[begin:end])
    replica = solo.replica
    assert (replica.leader_epoch, replica.partition_epoch) == (5, len(LIFE))
    assert replica.leading.isr == replica.leading.maximal == {1, 3}
    assert replica.leading.leso == replica.log.leo == 1
    # What 3 fetched was in epoch 0: it is a member, so it may be known (0) or not (-1), but nothing newer.
    assert replica.leading.followers[3].leo in (-1, 0)
    assert replica.leading.followers[2].leo == -1
    assert not fetches(solo)
    assert replica.high_watermark == 0


def test_k16_a_partition_leaves_its_fetcher_with_its_leader() -> None:
    """Two partitions of one leader: the one that moves is asked of the new leader and no more of the old."""
    solo = Solo(2, log=log_of([]), leader=1)
    solo.metadata(PartitionRecord(1, TOPIC_ID, (1, 2, 3), (1, 2, 3), 1, 0, 0))
    first = solo.sent("fetcher-0.1")
    assert isinstance(first.request, FetchRequest)
    solo.metadata(replace(change(leader=3), partition_id=1))
    for send in [s for s in solo.sends if s.channel.startswith("fetcher")]:
        assert isinstance(send.request, FetchRequest)
        moved = [p for p in send.request.partitions if p.tp == TopicPartition("t", 1)]
        assert bool(moved) == (send.destination == 3)
