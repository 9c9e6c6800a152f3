"""FIFO queues whose values repeat, against all orders of small histories, and at the size of real ones."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.checkers.exact.search.by_hand import is_an_order, linearizable
from tests.checkers.exact.search.drawn import Kind, drawn, spoilt
from tests.checkers.exact.search.queues import Long, queue, with_exchange, with_garbage
from tests.checkers.exact.search.test_search import is_first_without_a_place
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import Operation, Outcome
from wrackline.checkers.models.queues import FifoQueue

QUEUE = FifoQueue()


def few_values(rng: random.Random) -> Kind:
    """A queue of one to three values, with or without answers that it is empty."""
    values = rng.choice([1, 2, 3])
    answers = [*(["empty"] if rng.random() < 0.6 else []), *range(values)]
    return queue(values, answers, rng.choice([0.4, 0.5, 0.6]))


def decided_as_by_hand(seed: str) -> Answer:
    rng = random.Random(seed)
    kind = few_values(rng)
    history = drawn(
        *(kind, rng, rng.randrange(2, 11), rng.randrange(2, 6)),
        unknown=rng.choice([0.0, 0.0, 0.2, 0.4]),
        ties=rng.random() < 0.3,
    )
    for chance in (0.7, 0.3):
        history = spoilt(kind, history, rng) if rng.random() < chance else history
    (part,) = search(history, QUEUE).parts or (None,)
    if part is None:
        return Answer.VALID
    assert part.answer is (Answer.VALID if linearizable(QUEUE, history) else Answer.INVALID), (seed, history)
    assert is_an_order(QUEUE, history, part.order), (seed, history, part)
    if part.answer is Answer.VALID:
        assert {n for n, one in enumerate(history) if one.outcome is Outcome.OK} <= set(part.order), seed
    else:
        is_first_without_a_place(kind, history, history, part.stuck)
        assert part.ends[0].waiting[0] == part.stuck
    return part.answer


@pytest.mark.parametrize("histories", [1_500, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_small_histories_are_decided_as_by_all_orders(histories: int) -> None:
    found = [decided_as_by_hand(str(seed)) for seed in range(histories)]
    assert min(found.count(answer) for answer in (Answer.VALID, Answer.INVALID)) > 300


LONG = [
    Long(operations, values, unknown, empty)
    for operations in (100, 1_000)
    for values in (2, 10, 100)
    for unknown in (0.0, 0.05)
    for empty in (False, True)
]


@pytest.mark.parametrize("wanted", LONG, ids=str)
def test_long_histories_are_decided(wanted: Long) -> None:
    history = wanted.drawn()
    (part,) = search(history, QUEUE, deadline_s=60).parts
    assert part.answer is Answer.VALID
    assert is_an_order(QUEUE, history, part.order)
    assert {n for n, one in enumerate(history) if one.outcome is Outcome.OK} <= set(part.order)
    wrong, place = with_garbage(history)
    (part,) = search(wrong, QUEUE, deadline_s=60).parts
    assert (part.answer, part.stuck) == (Answer.INVALID, place)
    (part,) = search(with_exchange(history), QUEUE, deadline_s=60).parts
    assert part.answer is not Answer.UNKNOWN


def test_one_that_went_in_behind_comes_out_first() -> None:
    history = [
        Operation(0, "enqueue", "a", "a", 0, 1),
        Operation(0, "enqueue", "b", "b", 2, 3),
        Operation(0, "enqueue", "a", "a", 4, 5),
        Operation(1, "dequeue", None, "a", 6, 7),
        Operation(1, "dequeue", None, "a", 8, 9),
    ]
    (part,) = search(history, QUEUE).parts
    assert (part.answer, part.stuck, part.order) == (Answer.INVALID, 4, (0, 1, 2, 3))
    (end,) = part.ends
    assert (end.state, end.waiting) == (("b", "a"), (4,))


def test_a_subclass_with_other_steps_is_asked() -> None:
    class Twice(FifoQueue):
        """A value goes in twice."""

        def step(self, state: Any, operation: Operation) -> Any:
            if operation.f == "enqueue":
                return (*state, operation.argument, operation.argument)
            return super().step(state, operation)

    history = [
        Operation(0, "enqueue", "a", "a", 0, 1),
        Operation(0, "dequeue", None, "a", 2, 3),
        Operation(0, "dequeue", None, "a", 4, 5),
    ]
    assert search(history, Twice()).answer is Answer.VALID
    assert search(history, QUEUE).answer is Answer.INVALID
