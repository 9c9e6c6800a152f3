"""Rows of the source documents that are one sentence each (docs/protocol-coverage.md)."""

from __future__ import annotations

import math

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.solo import Solo, T, log_of
from wrackline.broker.model.effects import Append, Flush, Reply
from wrackline.broker.model.messages.requests import (
    EARLIEST,
    LATEST,
    FetchRequest,
    FetchResponse,
    FetchResult,
)
from wrackline.broker.rules.profile import profile
from wrackline.broker.rules.replication.isr import LagFacts
from wrackline.broker.rules.replication.produce import ProduceRules


def test_z20_a_follower_acknowledges_from_memory() -> None:
    """It asks on, which is its acknowledgement, in the event that appends: no flush comes first."""
    solo = Solo(2, log=log_of([]), leader=1)
    send = solo.sent("fetcher-0")
    data = log_of([0]).batches[0][1]
    solo.answer(send, FetchResponse((FetchResult(T, high_watermark=0, records=data),)))
    effects = solo.effects
    assert any(isinstance(effect, Append) for effect in effects)
    assert not any(isinstance(effect, Flush) for effect in effects)
    request = solo.sent("fetcher-0").request
    assert isinstance(request, FetchRequest)
    assert [part.fetch_offset for part in request.partitions] == [1]


def test_z23_the_high_watermark_is_checkpointed_by_the_clock() -> None:
    solo = Solo(isr=(1, 2), high_watermark_checkpoint_interval_ms=5_000)
    solo.produce(b"a")
    solo.fetch(2, 1)
    assert solo.disk.checkpoints.get("high-watermark", {}).get(T, 0) == 0
    solo.wait(5_000)
    assert solo.disk.checkpoints["high-watermark"][T] == 1


@pytest.mark.parametrize(("checkpoint", "leo", "after"), [(5, 3, 3), (2, 3, 2), (0, 3, 0)])
def test_z45_after_a_start_the_high_watermark_lies_within_the_log(
    checkpoint: int, leo: int, after: int
) -> None:
    solo = Solo(2, log=log_of([0] * leo), leader=1, high_watermark=checkpoint)
    assert solo.replica.high_watermark == after


def test_z40_acknowledgements_leave_in_the_order_of_offsets() -> None:
    solo = Solo(isr=(1, 2))
    waiting = [solo.produce(b"%d" % n) for n in range(5)]
    follower = solo.fetch(2, 4)
    answered = [effect.request_id for effect in solo.effects if isinstance(effect, Reply)]
    assert [request for request in answered if request != follower] == waiting[:4]
    assert [solo.result(request).base_offset for request in waiting[:4]] == [0, 1, 2, 3]


def test_k11_an_empty_replica_has_all_its_offsets_at_zero() -> None:
    solo = Solo(isr=(1,), min_isr=1)
    assert (solo.replica.log.leo, solo.replica.high_watermark, solo.replica.log.log_start) == (0, 0, 0)
    assert [solo.list_offsets(at).offset for at in (EARLIEST, LATEST)] == [0, 0]
    end = solo.fetched(-1, 0)
    assert (end.high_watermark, end.last_stable_offset) == (0, 0), "without transactions LSO is the HWM"


@pytest.mark.parametrize("acks", [0, 1])
def test_k29_acks_0_and_1_do_not_ask_for_min_isr(acks: int) -> None:
    assert ProduceRules().refusal(acks, isr_size=1, min_isr=3) is ErrorCode.none
    assert ProduceRules().refusal(-1, isr_size=2, min_isr=3) is ErrorCode.not_enough_replicas
    solo = Solo(isr=(1,), min_isr=2)
    solo.produce(b"a", acks=acks)
    assert solo.replica.log.leo == 1


@pytest.mark.parametrize(
    ("leo", "caught_up_ms", "lags"),
    [(10, -math.inf, False), (10, 0, False), (9, 69_999, True), (9, 70_000, False), (9, 99_000, False)],
    ids=["at the end, never timed", "at the end, long ago", "behind too long", "just in time", "recently"],
)
def test_k39_a_follower_lags_when_it_is_behind_and_has_been_for_the_lag_time(
    leo: int, caught_up_ms: float, lags: bool
) -> None:
    """H08 too: to be counted as in sync takes both, membership and a small lag."""
    facts = LagFacts(leo, leader_leo=10, last_caught_up_ms=caught_up_ms, now_ms=100_000, lag_max_ms=30_000)
    assert profile("kip966").isr.lags(facts) is lags
