"""A log whose values repeat: long ones are decided, with many appends of which nobody knows what became."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.checkers.exact.search.drawn import KINDS, drawn, spoilt
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import Operation, Outcome
from wrackline.checkers.models.log import Log, alike


def long_log(operations: int, *, read: bool, seed: int = 1) -> list[Operation]:
    """Ten clients append one of three values each; of one append in ten nobody knows the outcome, of one in
    ten only that it happened. At the end somebody asks for the end, and reads everything if told to."""
    rng = random.Random(seed)
    held: list[int] = []
    history: list[Operation] = []
    active: list[Operation] = []
    clock = 0
    for process in range(operations):
        clock += 2
        active.append(Operation(process, "append", rng.randrange(3), None, clock - 1, None, Outcome.INFO))
        if len(active) < 10:
            continue
        one = active.pop(rng.randrange(10))
        lot = rng.random()
        offset = None
        if lot > 0.05:  # else it never happened
            offset = len(held)
            held.append(one.argument)
        if lot < 0.1:
            history.append(one)
        else:
            told = None if lot < 0.2 else offset
            history.append(replace(one, result=(told, one.argument), ret=clock, outcome=Outcome.OK))
    history += active
    history.append(Operation(operations, "end", None, len(held), clock + 1, clock + 2))
    if read:
        history.append(Operation(operations, "read", None, list(enumerate(held)), clock + 3, clock + 4))
    return history


@pytest.mark.parametrize("read", [True, False])
def test_a_long_log_is_decided(read: bool) -> None:
    history = alike(long_log(2_000, read=read))
    assert search(history, Log(), deadline_s=30).answer is Answer.VALID
    # The end cannot be more than all that may have been appended.
    end = next(n for n, one in enumerate(history) if one.f == "end")
    history[end] = replace(history[end], result=2_001)
    (part,) = search(history, Log(), deadline_s=30).parts
    assert (part.answer, part.stuck) == (Answer.INVALID, end)


def test_to_take_what_nobody_can_tell_apart_for_one_changes_no_answer() -> None:
    answers, changed = set(), 0
    for seed in range(100):
        rng = random.Random(seed)
        history = spoilt(KINDS["log"], drawn(KINDS["log"], rng, 9, 4, unknown=0.4), rng)
        same = alike(history)
        answer = search(history, Log()).answer
        assert search(same, Log()).answer is answer, history
        answers.add(answer)
        changed += same != history
    assert answers == {Answer.VALID, Answer.INVALID}
    assert changed > 20


def test_of_two_that_show_different_records_the_later_one_has_no_place() -> None:
    appends = [Operation(n, "append", n, None, 0, None, Outcome.INFO) for n in range(2)]
    reads = [Operation(2 + n, "read", None, [[0, n]], 1, 4 - n) for n in range(2)]
    (part,) = search([*appends, *reads], Log()).parts
    assert (part.answer, part.stuck) == (Answer.INVALID, 2)
    assert "1 record" in {end.in_words for end in part.ends}
