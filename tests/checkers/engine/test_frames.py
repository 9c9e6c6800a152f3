"""Frames: Spark's tables with typed columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Column
from pyspark.sql import functions as F
from wrackline.checkers.engine.frames import Frame, Int, Long, Text, frame, packed, schema, small, unpacked

from wrackline.checkers.inputs.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True, slots=True)
class Read(Table[Column]):
    run: Int
    at: Long
    by: Text


@dataclass(frozen=True, slots=True)
class Run(Table[Column]):
    run: Int


@dataclass(frozen=True, slots=True)
class Ends(Table[Column]):
    first: Read
    count: Column


@pytest.fixture(scope="module")
def reads(spark: SparkSession) -> Frame[Read]:
    return small(spark, Read, [(0, 5, "a"), (0, 3, "b"), (1, 4, "c")])


def rows_of(some: Frame[Read]) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in some.rows.collect())


def test_a_table_names_its_types() -> None:
    assert schema(Read) == "run int, at bigint, by string"


def test_a_frame_is_joined_with_itself(reads: Frame[Read]) -> None:
    others = reads.select(reads.c)
    one, other = reads.c, others.c
    later = reads.join(others, (one.run == other.run) & (one.at < other.at)).select(replace(one, by=other.by))
    assert rows_of(later) == [(0, 3, "a")]
    assert rows_of(reads.matching(others, (one.run == other.run) & (one.at < other.at))) == [(0, 3, "b")]
    assert rows_of(reads.without(others, (one.run == other.run) & (one.at < other.at))) == [
        (0, 5, "a"),
        (1, 4, "c"),
    ]


def test_groups_have_keys_and_aggregates_even_of_several_parts(reads: Frame[Read]) -> None:
    c = reads.c
    first = unpacked(Read, F.min_by(packed(c), c.at))
    grouped = reads.grouped(Run(c.run), Ends(first=first, count=F.count("*")))
    of, ends = grouped.c
    found = grouped.rows.select(of.run, ends.first.by, ends.count).collect()
    assert sorted(map(tuple, found)) == [(0, "b", 2), (1, "c", 1)]


def test_a_column_and_an_explosion_keep_the_others(reads: Frame[Read]) -> None:
    more, double = reads.plus(reads.c.at * 2)
    each = more.exploded(F.array(packed(reads.c), packed(reads.c)), Read)
    one, item = each.c
    found = each.filter(one.run == 1).rows.select(one.by, double, item.at).collect()
    assert [tuple(row) for row in found] == [("c", 8, 4)] * 2


def test_what_a_table_lacks_is_refused_at_once(reads: Frame[Read]) -> None:
    with pytest.raises(AnalysisException, match="by"):
        frame(reads.rows.drop("by"), Read)
