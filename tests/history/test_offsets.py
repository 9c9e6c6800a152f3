"""Sets of offsets, held against Python's own sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wrackline.history.offsets import Offsets, spelt

SETS = st.sets(st.integers(0, 3_000))


def of(offsets: Offsets) -> set[int]:
    return {one for first, last in offsets.intervals() for one in range(first, last + 1)}


@given(SETS, SETS, st.integers(-5, 3_000))
def test_they_are_sets(mine: set[int], others: set[int], start: int) -> None:
    one, other = Offsets(mine), Offsets(others)
    assert of(one) == mine
    assert of(one - other) == mine - others
    assert of(one | other) == mine | others
    assert of(one.from_on(start)) == {offset for offset in mine if offset >= start}
    assert (len(one), bool(one)) == (len(mine), bool(mine))
    assert all(offset in one for offset in mine)
    assert not any(offset in one for offset in (-1, 3_001))


def test_what_no_log_of_ours_has_is_left_out() -> None:
    assert of(Offsets([-1, 1 << 40, 5])) == {5}


def test_they_are_spelt() -> None:
    assert spelt(Offsets([57]).intervals()) == "offset 57"
    assert spelt(Offsets([3, 4, 5, 9]).intervals()) == "offsets 3 to 5 and 9"
    assert spelt(Offsets([1, 3, 5, 7, 9]).intervals()) == "offsets 1, 3, 5 and more up to 9"
