"""Tables of typed columns: rows taken and put together, and what says nothing costs nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wrackline.checkers.engine.candidates import Candidate, Entry, Proof
from wrackline.checkers.engine.facts import KIND_OF, Final, Kind, Poll, Read
from wrackline.checkers.inputs.table import NONE, Ints, assigned, concatenated, constant, pack, unpack


def final(*offsets: int) -> Final:
    column = np.array(offsets, dtype=np.int64)
    return Final(column, column + 100, constant(7, len(column)), constant(NONE, len(column)))


def test_columns_of_a_part_have_its_name_before_theirs() -> None:
    assert Final.names() == ("offset", "value", "index", "ns")
    names = Candidate.names()
    assert {"earlier_offset", "by_ack_ns", "invoke_index"} <= set(names)
    assert len(set(names)) == len(names)


def test_a_table_is_made_of_as_many_columns_as_it_has() -> None:
    assert Entry.of_columns([1, 2, 3]) == Entry(offset=1, value=2, index=3)
    with pytest.raises(ValueError, match="Entry has 3 columns, not 2"):
        Entry.of_columns([1, 2])


@pytest.mark.parametrize("rows", [np.array([2, 0]), np.array([True, False, True])])
def test_rows_are_taken_by_position_or_by_a_mask(rows: Ints) -> None:
    some = final(5, 6, 9).take(rows)
    assert sorted(some.offset.tolist()) == [5, 9]
    assert (some.value - some.offset).tolist() == [100, 100]
    assert some.index.tolist() == [7, 7]


def test_a_column_that_says_the_same_everywhere_takes_no_room() -> None:
    rows = replace(Candidate[Ints].unknown(1_000_000), offset=np.arange(1_000_000))
    half = concatenated(Candidate[Ints], [rows.take(np.arange(250_000)), rows.take(np.arange(250_000))])
    assert len(half) == 500_000
    heavy = [
        name for name, column in zip(half.names(), half.columns(), strict=True) if column.strides != (0,)
    ]
    assert heavy == ["offset"]
    assert len(pack(half.columns())) < 4 * len(half) + 9 * (len(half.names()) + 1)
    back = unpack(pack(half.columns()), len(half), Candidate[Ints])
    assert back.offset.tolist() == half.offset.tolist()
    assert set(back.by_ack.ns.tolist()) == {NONE}


def test_rows_come_one_after_another() -> None:
    both = concatenated(Final, [final(1, 2), final(), final(3)])
    assert (both.offset.tolist(), both.index.tolist()) == ([1, 2, 3], [7, 7, 7])
    other = replace(final(4), index=constant(8, 1))
    assert concatenated(Final, [both, other]).index.tolist() == [7, 7, 7, 8]
    assert len(concatenated(Final, [])) == 0
    # Of two kinds: what they have in common.
    assert type(concatenated(Read, [final(1), Poll(*final(2).columns())])) is Read


def test_other_values_are_put_into_a_copy() -> None:
    nothing = constant(NONE, 3)
    assert assigned(nothing, np.array([1]), 5).tolist() == [NONE, 5, NONE]
    assert nothing.tolist() == [NONE] * 3
    with pytest.raises(ValueError, match="read-only"):
        nothing[0] = 1


def test_each_kind_but_notes_and_events_has_a_table_of_its_own() -> None:
    assert sorted(KIND_OF.values()) == [kind for kind in Kind if kind not in (Kind.NOTE, Kind.EVENTS)]
    assert Proof[Ints].unknown(2).index.tolist() == [NONE, NONE]
    assert all(kind.__doc__ for kind in KIND_OF)
