"""The search for an order, held against all orders of small histories and against histories that were
made."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.checkers.exact.search.by_hand import is_an_order, linearizable
from tests.checkers.exact.search.drawn import KINDS, Kind, drawn, spoilt
from wrackline.checkers.exact.search import part as part_of_history
from wrackline.checkers.exact.search import several
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import Operation, Outcome
from wrackline.checkers.models.counter import Counter
from wrackline.checkers.models.log import Log
from wrackline.checkers.models.registers import Register


@pytest.mark.parametrize("histories", [60, pytest.param(5_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", KINDS)
def test_decides_small_histories_as_all_orders_do(name: str, histories: int) -> None:
    decided = [agrees(KINDS[name], random.Random(f"{name} {seed}")) for seed in range(histories)]
    assert {Answer.VALID, Answer.INVALID} == set(decided)


def agrees(kind: Kind, rng: random.Random) -> Answer:
    """Draw one history, and hold all that the search says of it against all orders."""
    unknown = rng.choice([0.0, 0.3, 0.7])
    history = drawn(
        kind, rng, rng.randrange(2, 8), rng.randrange(2, 5), unknown=unknown, ties=rng.random() < 0.3
    )
    if rng.random() < 0.7:
        history = spoilt(kind, history, rng)
    right = linearizable(kind.model, history)
    found = search(history, kind.model)
    assert found.answer is (Answer.VALID if right else Answer.INVALID), history
    for part in found.parts:
        assert is_an_order(kind.model, history, part.order), (history, part)
        mine = [one for one in history if kind.model.partition(one) == part.key]
        if part.answer is Answer.VALID:
            sure = {n for n, one in enumerate(history) if one in mine and one.outcome is Outcome.OK}
            assert sure <= set(part.order), (history, part)
        else:
            is_first_without_a_place(kind, history, mine, part.stuck)
    return found.answer


def is_first_without_a_place(kind: Kind, history: list[Operation], mine: list[Operation], stuck: Any) -> None:
    returned, model = history[stuck].ret, kind.model
    assert returned is not None
    if isinstance(model, Log):  # has no place beside what was shown later, either
        model = model.narrowed([one for one in mine if one.outcome is not Outcome.FAIL])
    assert not linearizable(model, mine, until=returned), (history, stuck)
    if all(one is history[stuck] or one.ret != returned for one in mine):
        assert linearizable(model, mine, until=returned - 1), (history, stuck)


@pytest.mark.parametrize("name", KINDS)
def test_finds_the_order_of_a_long_history(name: str) -> None:
    rng = random.Random(name)
    kind = KINDS[name]
    # Of values that repeat, a queue shows only when they come out in which order they went in.
    history = drawn(kind, rng, 150 if name == "fifo-queue" else 1_000, 6, unknown=0.01)
    found = search(history, kind.model)
    assert found.answer is Answer.VALID
    placed = [place for part in found.parts for place in part.order]
    assert {n for n, one in enumerate(history) if one.outcome is Outcome.OK} <= set(placed)
    assert all(is_an_order(kind.model, history, part.order) for part in found.parts)


def test_a_read_of_what_was_never_written_is_found_among_many() -> None:
    history = drawn(KINDS["register"], random.Random(1), 1_000, 6)
    reads = [n for n, one in enumerate(history) if one.f == "read" and one.outcome is Outcome.OK]
    history[reads[500]] = replace(history[reads[500]], result="never")
    (one,) = search(history, Register()).parts
    assert (one.answer, one.stuck) == (Answer.INVALID, reads[500])
    for end in one.ends:
        assert end.waiting[0] == reads[500]
        assert not set(end.placed) & set(end.waiting)
        assert set(end.placed) <= {
            n for n, one in enumerate(history) if (one.ret or 0) >= history[reads[500]].inv
        }


def hard(operations: int) -> list[Operation]:
    """All open at once, and a read that nothing explains: each order has to be tried."""
    adds = [Operation(n, "add", 1 << n, None, n, 1_000, Outcome.OK) for n in range(operations)]
    return [*adds, Operation(99, "read", None, -1, 1_001, 1_002)]


def test_a_deadline_ends_the_search_with_the_reason() -> None:
    found = search(hard(40), Counter(), deadline_s=0.3)
    (one,) = found.parts
    assert found.answer is Answer.UNKNOWN
    assert one.why.startswith("no answer within 0.3 s: the first 40 of 41 to return have a place, ")
    assert len(one.order) > 5


def test_a_limit_of_memory_ends_the_search_with_the_reason() -> None:
    (one,) = search(hard(40), Counter(), memory_bytes=4 << 20).parts
    assert one.answer is Answer.UNKNOWN
    assert one.why.startswith("4 MB of memory are used up: ")


def test_parts_are_decided_by_several_processes_as_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class PerClient(Counter):
        def partition(self, operation: Operation) -> int:
            return operation.process // 100

    history = [replace(one, process=100 * key + one.process) for key in range(6) for one in hard(4 + key % 2)]
    history = [
        replace(one, result=15) if (one.result, one.process // 100 % 3) == (-1, 0) else one for one in history
    ]
    alone = search(history, PerClient())
    assert [part.answer for part in alone.parts] == [
        *(Answer.VALID, Answer.INVALID, Answer.INVALID, Answer.INVALID, Answer.INVALID, Answer.INVALID)
    ]
    monkeypatch.setattr(several, "ALONE_S", 0.0)
    together = search(history, PerClient(), processes=2)
    assert [replace(part, seconds=0.0) for part in together.parts] == [
        replace(part, seconds=0.0) for part in alone.parts
    ]
    first = search(history, PerClient(), first=True)
    assert [part.answer for part in first.parts[:3]] == [Answer.VALID, Answer.INVALID, Answer.UNKNOWN]
    assert "another part is not linearizable" in first.parts[2].why


def test_a_hard_part_keeps_the_others_waiting_for_a_moment_only() -> None:
    class PerClient(Counter):
        def partition(self, operation: Operation) -> bool:
            return operation.process >= 100

    easy = Operation(100, "read", None, 7, 2_000, 2_001)
    found = search([*hard(40), easy], PerClient(), first=True, deadline_s=60)
    assert [part.answer for part in found.parts] == [Answer.UNKNOWN, Answer.INVALID]
    assert sum(part.seconds for part in found.parts) < 10


def test_long_work_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_of_history, "PROGRESS_S", 0.1)
    told: list[str] = []
    search(hard(40), Counter(), deadline_s=0.5, progress=told.append)
    assert told
    assert "of 41 to return have a place" in told[0]


def test_equal_unknowns_and_unseen_ones_cost_nothing() -> None:
    """200 writes of unknown outcome, of 5 values: as sets of operations there are 2^200 of them."""
    unknown = [Operation(n, "write", n % 5, None, n, None, Outcome.INFO) for n in range(200)]
    reads = [Operation(1_000, "read", None, n % 5, 300 + 2 * n, 301 + 2 * n) for n in range(100)]
    (one,) = search([*unknown, *reads], Register()).parts
    assert one.answer is Answer.VALID
    too_many = [Operation(1_000, "read", None, n % 2, 300 + 2 * n, 301 + 2 * n) for n in range(100)]
    (one,) = search([*unknown, *too_many], Register()).parts
    assert one.answer is Answer.INVALID  # 0 was written 40 times, and is read after a 1 more often
    assert one.configurations < 50_000
