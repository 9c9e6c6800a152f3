"""What the factors promise: f = MinISR - 1 whatever the replication factor, two replicas are of use, a slow
one costs a bounded time (docs/protocol.md K25, R33, R37, Z12, Z13)."""

from __future__ import annotations

import pytest

from tests.simulator.queries import end_offset
from wrackline.simulator.guided.setting import Setting, T, carries_records
from wrackline.simulator.guided.stage import Stage


def outage(min_isr: int, lossy: int) -> Stage:
    """Five replicas, MinISR of them in the ISR hold m2. These lose power at once, ``lossy`` of them m2 with
    it."""
    s = Stage(Setting(brokers=5, replicas=(1, 2, 3, 4, 5), min_isr=min_isr))
    s.commit(b"m1")
    for away in range(min_isr + 1, 6):
        s.isolate(away)
    s.acked(1, b"m2")
    members = frozenset(range(1, min_isr + 1))
    assert s.isr == members
    for node in members:
        s.power(node, keep=1 if node <= lossy else 2)
    s.finish()
    return s


@pytest.mark.parametrize("min_isr", [2, 3, 4])
def test_k25_one_lossy_shutdown_fewer_than_min_isr_loses_nothing(min_isr: int) -> None:
    s = outage(min_isr, lossy=min_isr - 1)
    assert not s.findings(), s.lines
    assert s.values(1) == [b"m1", b"m2"]


@pytest.mark.parametrize("min_isr", [2, 3])
def test_k25_as_many_as_min_isr_lose_it(min_isr: int) -> None:
    """The bound is sharp: the promise ends here, and the oracle sees it."""
    assert "lost-write" in {finding.oracle for finding in outage(min_isr, lossy=min_isr).findings()}


def test_k25_a_life_that_lost_its_log_joins_by_a_late_proposal_and_counts_as_lossy() -> None:
    """3 has fetched m2 and is proposed; a power cut takes m2 from it before the controller hears, which still
    has it registered: it joins, m2 is acknowledged, and one lossy shutdown is fewer than MinISR."""
    s = Stage(Setting())
    s.commit(b"m1")
    s.isolate(3)
    late = s.hold("AlterPartitionRequest", source=1)
    s.rejoin(3)
    s.until(lambda: bool(late.held), "3 proposed")
    slow = s.hold("FetchResponse", source=1, to=2, when=carries_records)
    call = s.produce(1, b"m2")
    s.until(
        lambda: (r := s.replica(1)) is not None and r.leader is not None and r.leader.followers[3].leo == 2,
        "m2 on 3",
    )
    s.power(3, keep=1)
    s.release(late)
    s.until(lambda: s.isr == {1, 2, 3}, "3 in the ISR")
    assert not s.up(3)
    s.release(slow)
    s.until(lambda: call.done, "m2 answered")
    assert s.is_acked(call)
    assert not s.findings(), s.lines
    assert s.isr == {1, 2, 3}
    impaired = s.checker.observer.partitions[T].impaired
    assert set(impaired) == {3}
    s.until(lambda: s.isr == {1, 2}, "3's session ended")
    s.finish()
    assert not s.findings(), s.lines
    assert not impaired, "its next life has joined"
    assert s.values(3) == [b"m1", b"m2"]


def test_z12_two_replicas_go_on_with_one_after_the_lag_time() -> None:
    s = Stage(Setting(brokers=2, replicas=(1, 2), min_isr=1, lag_ms=1_000))
    s.commit(b"m1")
    s.cut(1, 2)
    s.acked(1, b"m2")
    assert s.isr == {1}
    s.mend(1, 2)
    s.finish()
    assert not s.findings(), s.lines


def test_z12_three_replicas_survive_two_crashes() -> None:
    s = Stage(Setting(min_isr=1, lag_ms=1_000))
    s.commit(b"m1")
    s.kill(1, 2)
    s.commit(b"m2")
    assert s.leader == 3
    assert end_offset(s, 3) == 2
    s.finish()
    assert not s.findings(), s.lines


@pytest.mark.parametrize("silent_after_ms", [0.0, 130.0, 260.0, 390.0])
def test_z13_a_silent_follower_holds_writes_back_for_the_lag_time_and_a_check_at_most(
    silent_after_ms: float,
) -> None:
    lag_ms = 1_000
    s = Stage(Setting(lag_ms=lag_ms))
    s.commit(b"m1")
    s.run(silent_after_ms)
    s.cut(3, 1)
    began = s.world.now_ms
    s.acked(1, b"m2")
    waited = s.world.now_ms - began
    # A check every half lag time; the answer of the controller takes some milliseconds of the network.
    assert lag_ms / 2 < waited <= lag_ms + lag_ms / 2 + 50
    assert s.isr == {1, 2}
