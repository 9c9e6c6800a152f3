"""Each mark has a bit, and workers of Spark are handed the marks that the driver has."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from wrackline.checkers.checks import registry
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.marks import Alone, Mark, Marks
from wrackline.checkers.inputs.table import Bools, Ints


def small(rows: Candidate[Ints]) -> Bools:
    return rows.offset < 2


def in_unfilled(rows: Candidate[Ints], unfilled: frozenset[int]) -> Bools:
    return np.isin(rows.log, sorted(unfilled))


MARKS = Marks([Mark("b", small, Alone(small)), Mark("c", by_value=in_unfilled), Mark("a")])


def rows() -> Candidate[Ints]:
    zero = np.zeros(4, dtype=np.int64)
    some = Candidate[Ints].unknown(4)
    return replace(some, log=np.array([7, 7, 8, 8]), offset=np.arange(4), marks=zero)


def test_bits_are_in_the_order_of_names() -> None:
    assert [MARKS.bit(name) for name in "abc"] == [1, 2, 4]
    with pytest.raises(KeyError):
        MARKS.bit("d")


def test_a_mark_by_value_overrides_a_mark_by_place() -> None:
    found = rows()
    found = replace(found, marks=MARKS.at_places(found) | np.array([0, 1, 0, 7]))
    assert found.marks.tolist() == [2, 3, 0, 7]
    found = replace(found, marks=MARKS.by_value(found, frozenset({8})))
    assert found.marks.tolist() == [2, 3, 4, 5], "b and c are judged anew, a stays as it was set"
    assert MARKS.counted(found) == {"a": 2, "b": 2, "c": 2}
    assert Marks([Mark("z")]).counted(rows()) == {}


def test_a_worker_gets_the_marks_that_the_driver_has() -> None:
    there = pickle.loads(pickle.dumps(registry.marks()))
    assert there.__dict__ == registry.marks().__dict__


def test_a_mark_that_no_worker_could_be_given_is_refused() -> None:
    with pytest.raises(ValueError, match="mark nested: its tests must be functions at the top of a module"):
        registry.mark("nested", lambda rows: small(rows))
    with pytest.raises(KeyError):
        registry.marks().bit("nested")
