"""The rules in numpy agree with brute force, which tries every order of a small history."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def linearizable(appends: list[Append], reads: list[list[Read]], ends: list[End]) -> bool:
    """By trying every order. A read has no lower bound (it may show less than there is), so it may take
    effect at any moment up to its return: it is invoked at the beginning of time."""
    operations: list[tuple[int, int, Append | list[Read] | End]] = [(a.inv, a.ret, a) for a in appends]
    operations += [(-1, one[0].ret, one) for one in reads if one]
    operations += [(e.inv, e.ret, e) for e in ends]

    def explore(left: frozenset[int], log: tuple[int, ...]) -> bool:
        required = [n for n in left if operations[n][1] != NEVER]
        if not required:
            return True
        deadline = min(operations[n][1] for n in required)
        for n in left:
            inv, _, what = operations[n]
            if inv > deadline:
                continue
            match what:
                case Append(value=value, offset=offset):
                    fits, grown = offset in (NOWHERE, len(log)), (*log, value)
                case End(offset=offset):
                    fits, grown = offset == len(log), log
                case shown:
                    fits, grown = all(r.offset < len(log) and log[r.offset] == r.value for r in shown), log
            if fits and explore(left - {n}, grown):
                return True
        return False

    return explore(frozenset(range(len(operations))), ())


Small = tuple[list[Append], list[list[Read]], list[End]]


def agrees_with_brute_force(history: Small) -> None:
    appends, reads, ends = history
    found = check_log(appends, [record for read in reads for record in read], ends)
    assert (not found) == linearizable(appends, reads, ends), found


@settings(max_examples=500, deadline=None)
@given(small_histories())
def test_the_rules_agree_with_brute_force(history: Small) -> None:
    agrees_with_brute_force(history)


@pytest.mark.nightly
@settings(max_examples=1500, deadline=None)
@given(small_histories())
def test_the_rules_agree_with_brute_force_on_many_histories(history: Small) -> None:
    agrees_with_brute_force(history)
