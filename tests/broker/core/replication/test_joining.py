"""A follower on its way into the ISR: how near the end it must be (K39, B45), and that the high watermark
does not run away from it (H08, B60). The lag time is 10 s."""

from __future__ import annotations

import pytest

from tests.broker.core.solo import EPOCHS, Solo
from wrackline.broker.model.metadata.records import BrokerRegistrationChangeRecord

ALONE = (1,)
"""The ISR; MinISR is 2, so the high watermark stands still, or 1."""


def proposed(solo: Solo) -> set[int]:
    """Who is counted beside the committed ISR."""
    leading = solo.replica.leading
    return set(leading.maximal - leading.isr)


# --- recent enough -----------------------------------------------------------------------------------------


def below_min_isr() -> Solo:
    """The high watermark stands at 0, and the log goes on to 1,200."""
    solo = Solo(isr=ALONE)
    solo.produce(*(b"%d" % n for n in range(1_200)), acks=1)
    return solo


def test_a_follower_far_behind_the_log_does_not_join_at_a_high_watermark_that_stands_still() -> None:
    solo = below_min_isr()
    for offset in (0, 100, 1_100):
        solo.fetch(3, offset)
        assert not proposed(solo), offset
    solo.fetch(3, 1_200)
    assert proposed(solo) == {3}


def test_one_round_behind_a_log_that_grows_is_near_enough() -> None:
    """It has all that was there when it fetched last, and that was within the lag time."""
    solo = below_min_isr()
    solo.fetch(3, 1_100)
    solo.produce(b"more", acks=1)
    solo.wait(1_000)
    solo.fetch(3, 1_200)
    assert proposed(solo) == {3}


def test_one_round_that_takes_longer_than_the_lag_time_is_not() -> None:
    solo = below_min_isr()
    solo.fetch(3, 1_100)
    solo.produce(b"more", acks=1)
    solo.wait(10_001)
    solo.fetch(3, 1_200)
    assert not proposed(solo)


# --- waited for --------------------------------------------------------------------------------------------


def under_load() -> Solo:
    """Broker 2 had the end of the log a second ago, and has asked for what came since, all committed; now
    there is one record more. Its next fetch will be at 2."""
    solo = Solo(isr=ALONE, min_isr=1)
    solo.produce(b"a", acks=1)
    solo.fetch(2, 0)
    solo.produce(b"b", acks=1)
    solo.wait(1_000)
    solo.fetch(2, 1)
    assert (solo.replica.log.leo, solo.replica.high_watermark) == (2, 2)
    solo.produce(b"c", acks=1)
    return solo


def test_the_high_watermark_waits_for_a_follower_that_is_about_to_join() -> None:
    solo = under_load()
    assert solo.replica.high_watermark == 2
    solo.fetch(2, 2)
    assert proposed(solo) == {2}


def test_a_follower_that_was_never_caught_up_is_not_waited_for() -> None:
    solo = Solo(isr=ALONE, min_isr=1)
    for value in (b"a", b"b", b"c"):
        solo.produce(value, acks=1)
    solo.fetch(2, 0)
    solo.fetch(2, 1)
    solo.produce(b"d", acks=1)
    assert solo.replica.high_watermark == 4


def test_one_that_does_not_come_is_let_go_when_the_isr_is_looked_at_next() -> None:
    """Half a lag time after the lag time at the latest, without a fetch or a write."""
    solo = under_load()
    waiting = solo.produce(b"d")
    solo.wait(8_000)
    assert waiting not in solo.replies
    solo.wait(7_000)
    assert waiting in solo.replies
    assert solo.replica.high_watermark == 4


@pytest.mark.parametrize("how", ["fenced", "in_controlled_shutdown"])
def test_one_that_may_not_join_any_more_is_let_go_at_once(how: str) -> None:
    """KAFKA-15021, B43: its partition has no change to tell of that, since it is not in the ISR."""
    solo = under_load()
    waiting = solo.produce(b"d")
    assert waiting not in solo.replies
    solo.metadata(BrokerRegistrationChangeRecord(2, EPOCHS[2], **{how: True}))
    assert waiting in solo.replies


def test_a_former_life_is_not_waited_for() -> None:
    """The broker has registered again, and may have lost its log since it fetched (KIP-903)."""
    solo = under_load()
    waiting = solo.produce(b"d")
    solo.replica.leading.followers[2].broker_epoch = EPOCHS[2] - 1
    solo.produce(b"e", acks=1)
    assert waiting in solo.replies
