"""The exact checks of registers and queues against brute force, and the witnesses they give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkers.search import is_queue, is_register
from wrackline.checkers.exact import queue, register
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns, Contradiction, RepeatedValue, columns
from wrackline.checkers.exact.queue import check_queue
from wrackline.checkers.exact.register import check_register

Row = tuple[bool, int, int, int, bool]
WRITE, READ = True, False


@st.composite
def histories(draw: st.DrawFn, *, fifo: bool) -> Columns:
    """A few operations on random intervals, as a correct object would have answered them; then some answers
    are replaced, so that both verdicts are common. Stamps may be equal."""
    count = draw(st.integers(2, 8))
    if draw(st.booleans()):
        points = draw(st.permutations(range(2 * count)))
    else:
        points = draw(st.lists(st.integers(0, count), min_size=2 * count, max_size=2 * count))
    spans = [sorted(points[2 * n : 2 * n + 2]) for n in range(count)]
    effect = [draw(st.integers(*span)) for span in spans]
    held: list[int] = []
    put: list[int] = []
    rows: list[Row] = []
    for n in sorted(range(count), key=lambda n: (effect[n], n)):
        inv, ret = spans[n]
        outcome = draw(st.sampled_from(["ok", "ok", "ok", "ok", "info", "fail"]))
        end, failed = NEVER if outcome == "info" else ret, outcome == "fail"
        happens = outcome == "ok" or (outcome == "info" and draw(st.booleans()))
        if draw(st.booleans()):
            value = 100 + n
            put.append(value)
            if happens:
                held = [*held, value] if fifo else [value]
            rows.append((True, value, inv, end, failed))
            continue
        value = held[0] if held else NOTHING
        if fifo and happens:
            held = held[1:]
        if draw(st.sampled_from([False, False, False, True])):
            value = draw(st.sampled_from([NOTHING, 100 + draw(st.integers(0, count)), *put]))
        rows.append((False, value, inv, end, failed))
    return columns(rows)


EXAMPLES = [
    # Two values for one dequeue of unknown outcome; and one that comes too late for an empty answer.
    columns([(True, 1, 0, 1), (True, 2, 2, 3), (False, 0, 4, NEVER), (False, NOTHING, 5, 6)]),
    columns([(True, 1, 0, 1), (False, NOTHING, 2, 3), (False, 0, 4, NEVER)]),
]


@pytest.mark.parametrize("examples", [500, pytest.param(1_500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("check", [check_register, check_queue])
def test_an_exact_check_agrees_with_brute_force(
    check: Callable[..., list[Contradiction]], examples: int
) -> None:
    fifo = check is check_queue
    is_right = is_queue if fifo else is_register

    @settings(max_examples=examples, deadline=None)
    @given(histories(fifo=fifo))
    def agrees(history: Columns) -> None:
        found = check(history)
        assert (not found) == is_right(history), found
        for contradiction in found:
            assert fifo or len(contradiction.rows) <= 6
            assert not is_right(history.rows(contradiction.rows)), contradiction

    agrees()
    for history in EXAMPLES if fifo else ():
        assert (not check_queue(history)) == is_queue(history)


def register_rules(*rows: tuple[bool, int, int, int]) -> set[register.Rule]:
    return {one.rule for one in check_register(columns(rows))}


def test_register_rules_by_name() -> None:
    one, two = (WRITE, 1, 0, 1), (WRITE, 2, 2, 3)
    assert not register_rules(one, two, (READ, 2, 4, 5), (READ, 1, 1, 2))
    assert register_rules((READ, 9, 0, 1)) == {register.Rule.GARBAGE}
    assert register_rules(two, (READ, 2, 0, 1)) == {register.Rule.FUTURE}
    assert register_rules(one, two, (READ, 1, 4, 5)) == {register.Rule.INSIDE}
    assert register_rules(one, two, (READ, 2, 4, 5), (READ, 1, 6, 7)) == {register.Rule.TWO_AT_ONCE}
    assert register_rules(one, (READ, NOTHING, 2, 3)) == {register.Rule.INSIDE}
    aborted = check_register(columns([(WRITE, 1, 0, 1, True), (READ, 1, 2, 3)]))
    assert [(b.rule, b.rows) for b in aborted] == [(register.Rule.ABORTED, (0, 1))]


def test_one_late_read_is_one_finding_however_many_values_it_contradicts() -> None:
    rows = [(WRITE, n, 10 * n, 10 * n + 1) for n in range(1, 50)]
    [contradiction] = check_register(columns([*rows, (READ, 1, 1000, 1001)]))
    assert (contradiction.rule, contradiction.value, contradiction.contradicted) == (
        register.Rule.INSIDE,
        1,
        48,
    )


def queue_rules(*rows: tuple[bool, int, int, int]) -> list[queue.Rule]:
    return sorted(one.rule for one in check_queue(columns(rows)))


def test_queue_rules_by_name() -> None:
    one, two = (WRITE, 1, 0, 1), (WRITE, 2, 2, 3)
    assert not queue_rules(one, two, (READ, 1, 4, 5), (READ, 2, 6, 7), (READ, NOTHING, 8, 9))
    assert queue_rules((READ, 9, 0, 1)) == [queue.Rule.GARBAGE]
    assert queue_rules(two, (READ, 2, 0, 1)) == [queue.Rule.FUTURE]
    assert queue_rules(one, (READ, 1, 2, 3), (READ, 1, 4, 5)) == [queue.Rule.TWICE]
    assert queue_rules(one, two, (READ, 2, 4, 5)) == [queue.Rule.LOST]
    assert queue_rules(one, two, (READ, 2, 4, 5), (READ, 1, 6, 7)) == [queue.Rule.OVERTAKEN]
    assert queue_rules(one, (READ, NOTHING, 2, 3)) == [queue.Rule.NOT_EMPTY]


def test_an_empty_answer_is_wrong_though_no_single_value_was_inside_all_the_time() -> None:
    rows = [(WRITE, 1, 0, 1), (WRITE, 2, 2, 3), (READ, NOTHING, 4, 9), (READ, 1, 6, 7), (READ, 2, 10, 11)]
    [contradiction] = check_queue(columns(rows))
    assert (contradiction.rule, contradiction.rows) == (queue.Rule.NOT_EMPTY, (1, 2, 4))
    chain = [(WRITE, 1, 0, 1), (READ, NOTHING, 2, 9), (WRITE, 2, 3, 4), (READ, 1, 5, 6), (READ, 2, 10, 11)]
    [contradiction] = check_queue(columns(chain))
    assert (contradiction.contradicted, contradiction.rows) == (2, (0, 1, 2, 3, 4))


def test_a_value_put_twice_is_refused() -> None:
    rows = columns([(WRITE, 1, 0, 1), (WRITE, 1, 2, 3)])
    for check in (check_register, check_queue):
        with pytest.raises(RepeatedValue, match="value 1 was put more than once"):
            check(rows)
