"""No more replicas lose bytes at once than the contract tolerates."""

from __future__ import annotations

import pytest

from tests.nemesis.doubles import cluster, partition
from wrackline.nemesis.follow import losses
from wrackline.nemesis.follow.losses import Losses

WHOLE, WITHOUT_2 = cluster(), cluster(partition(isr=(1, 3)))


def test_a_second_replica_loses_nothing_before_the_isr_was_without_the_first_and_full_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(losses, "NOTICED_S", 0.0)
    taken = Losses()
    assert taken.fit(WHOLE, {2}, 1)
    assert not taken.fit(WHOLE, {2, 3}, 1)
    taken.begin(WHOLE, {2})
    for state in (WHOLE, WHOLE, WITHOUT_2):
        taken.see(state)
        assert not taken.fit(state, {3}, 1), "metadata that has not noticed proves nothing"
        assert taken.fit(state, {2}, 1), "it has nothing more to lose"
        assert taken.fit(state, {3}, 2)
    taken.see(WHOLE)
    assert taken.fit(WHOLE, {3}, 1)


def test_a_replica_that_was_out_too_shortly_to_be_noticed_counts_on() -> None:
    taken = Losses()
    taken.begin(WHOLE, {2})
    taken.see(WITHOUT_2)
    taken.see(WHOLE)
    assert not taken.fit(WHOLE, {3}, 1)


def test_whoever_may_lose_nothing_is_spared() -> None:
    taken = Losses()
    assert taken.spared(WHOLE, 1) == set()
    taken.begin(WHOLE, {2})
    assert taken.spared(WHOLE, 1) == {1, 3}
    assert taken.spared(WHOLE, 2) == set()


def test_nodes_without_a_replica_lose_nothing_and_where_nobody_answers_nobody_may() -> None:
    assert Losses().fit(WHOLE, {101}, 0)
    assert not Losses().fit(None, {101}, 3)
