"""The rules in numpy agree with brute force, which tries every order of a small history."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkers.search import linearizable
from wrackline.checkers.exact.log import NEVER, NOWHERE, Append, End, Read, Rule, check_log


def rules(*args: object, **options: object) -> set[Rule]:
    return {one.rule for one in check_log(*args, **options)}  # type: ignore[arg-type]


def test_a_correct_history_has_no_violation() -> None:
    appends = [Append(10, 0, 2, 0), Append(11, 1, 5, 1), Append(12, 3)]
    assert not rules(appends, [Read(6, 2, 12)], [End(4, 7, 3)])


def test_rules_by_name() -> None:
    a, b = Append(10, 0, 1, 0), Append(11, 2, 3, 1)
    assert rules([Append(10, 0, 3, 0), Append(11, 1, 2, 0)], [], []) == {Rule.TWO_VALUES}
    assert rules([a, b], [Read(4, 2, 10)], []) == {Rule.TWO_OFFSETS}
    assert rules([a], [Read(4, 1, 99)], []) == {Rule.GARBAGE}
    assert rules([a, Append(11, 2, 3, failed=True)], [Read(4, 1, 11)], []) == {Rule.ABORTED}
    assert rules([Append(10, 2, 3, 0), Append(11, 0, 1, 1)], [], []) == {Rule.LATE}  # real time order
    assert rules([a, b], [], [End(4, 5, 1)]) == {Rule.LATE}  # stale end
    assert rules([a], [], [End(4, 5, 2)]) == {Rule.UNFILLED}
    assert rules([a], [Read(5, 0, 10)], [], covered=(0, 2)) == {Rule.HOLE}


def test_an_unseen_offset_needs_a_send_that_was_invoked_in_time() -> None:
    a = Append(10, 0, 1, 0)
    assert not rules([a, Append(11, 2)], [], [End(3, 4, 2)])
    assert rules([a, Append(11, 5)], [], [End(3, 4, 2)]) == {Rule.UNFILLED}


@st.composite
def small_histories(draw: st.DrawFn) -> tuple[list[Append], list[list[Read]], list[End]]:
    """A few operations on random intervals. Most come from a real log, some are then spoiled, so that both
    verdicts are common."""
    count = draw(st.integers(2, 6))
    kinds = draw(
        st.lists(
            st.sampled_from(["append", "append", "acked", "lost", "read", "end"]),
            min_size=count,
            max_size=count,
        )
    )
    points = draw(st.permutations(range(2 * count)))
    spans = [sorted(points[2 * n : 2 * n + 2]) for n in range(count)]
    log: list[int] = []
    appends: list[Append] = []
    reads: list[list[Read]] = []
    ends: list[End] = []
    effect = {n: draw(st.integers(*spans[n])) for n in range(count)}
    for n in sorted(range(count), key=lambda n: (effect[n], n)):
        inv, ret = spans[n]
        wobble = draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
        match kinds[n]:
            case "append":
                appends.append(Append(100 + n, inv, ret, max(0, len(log) + wobble)))
                log.append(100 + n)
            case "acked":  # without an offset
                appends.append(Append(100 + n, inv, ret))
                if not wobble:
                    log.append(100 + n)
            case "lost":
                appends.append(Append(100 + n, inv, NEVER))
                if draw(st.booleans()):
                    log.append(100 + n)
            case "read":
                first = draw(st.integers(0, len(log)))
                shown = log[first : first + 2]
                reads.append([Read(ret, max(0, first + k + wobble), value) for k, value in enumerate(shown)])
            case _:
                ends.append(End(inv, ret, max(0, len(log) + wobble)))
    return appends, reads, ends


def is_log(appends: list[Append], reads: list[list[Read]], ends: list[End]) -> bool:
    """By trying every order. A read has no lower bound (it may show less than there is), so it may take
    effect at any moment up to its return: it is invoked at the beginning of time."""
    shown = [one for one in reads if one]
    operations: list[Append | list[Read] | End] = [*appends, *shown, *ends]
    spans = [(-1, one[0].ret) if isinstance(one, list) else (one.inv, one.ret) for one in operations]

    def step(log: tuple[int, ...], number: int) -> list[tuple[int, ...]]:
        match operations[number]:
            case Append(value=value, offset=offset):
                return [(*log, value)] if offset in (NOWHERE, len(log)) else []
            case End(offset=offset):
                return [log] if offset == len(log) else []
            case records:
                fits = all(r.offset < len(log) and log[r.offset] == r.value for r in records)
                return [log] if fits else []

    return linearizable(spans, (), step)


@pytest.mark.parametrize("examples", [500, pytest.param(1_500, marks=pytest.mark.nightly)])
def test_the_rules_agree_with_brute_force(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(small_histories())
    def agrees(history: tuple[list[Append], list[list[Read]], list[End]]) -> None:
        appends, reads, ends = history
        found = check_log(appends, [record for read in reads for record in read], ends)
        assert (not found) == is_log(appends, reads, ends), found

    agrees()
