"""A run waits until its workload is warm; the clock is simulated."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wrackline.harness.run.live.warm import become_steady


def stretches(rate: float, each: list[int], *, stretch_s: float = 8, warm_s: float = 60) -> float:
    """How many seconds went by until a workload was steady of which so many operations succeed in each
    stretch; the last number stands for all that follow."""
    now, done = 0.0, 0

    def counts() -> Iterator[int]:
        yield from each
        while True:
            yield each[-1]

    ahead = counts()

    def wait(seconds: float) -> bool:
        nonlocal now, done
        now, done = now + seconds, done + next(ahead)
        return True

    become_steady(
        rate,
        stretch_s,
        warm_s,
        done=lambda: done,
        wait=wait,
        give_up=lambda: now > 500,
        clock=lambda: now,
    )
    return now


@pytest.mark.parametrize(
    ("rate", "each", "took_s"),
    [
        (100, [800], 8),
        (100, [760], 8),
        (100, [100, 500, 790, 0], 24),
        (0, [0], 8),
        (100, [759], 56),
    ],
)
def test_it_takes_whole_stretches_until_the_rate_was_reached(
    rate: float, each: list[int], took_s: float
) -> None:
    assert stretches(rate, each) == took_s


def test_without_a_stretch_nothing_is_waited_for() -> None:
    assert stretches(100, [0], stretch_s=0) == 0


def test_warming_up_ends_when_the_caller_gives_up() -> None:
    assert stretches(100, [0], warm_s=1e9) == 504
