"""Spark's tables with named columns.

A ``Frame`` is a DataFrame and its columns: those of a table (wrackline.checkers.inputs.table), so that a
column is written ``c.offset`` and a misspelt one is an error in mypy. Every frame has a name of its own in
Spark, which its columns begin with, so two frames with columns of the same names can be joined::

    c, end = polls.c, ends.c
    late = polls.join(ends, (c.log == end.log) & (c.offset >= end.offset)).select(
        Late(run=c.run, log=c.log, offset=c.offset, shown=end.time_ns)
    )
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import reduce
from itertools import count
from operator import and_
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from wrackline.checkers.inputs.table import Table

Int = Annotated[Column, "int"]
Long = Annotated[Column, "bigint"]
Text = Annotated[Column, "string"]
Truth = Annotated[Column, "boolean"]
Texts = Annotated[Column, "array<string>"]
"""What Spark calls the type of a column, for the tables that are made here (``schema``, ``small``)."""

A = TypeVar("A")
"""The columns of a frame: a table, or of joined frames the pair of theirs."""
B = TypeVar("B")
T = TypeVar("T", bound=Table[Column])
U = TypeVar("U", bound=Table[Column])
_names = count()


@dataclass(frozen=True, slots=True)
class Frame(Generic[A]):
    """Rows in Spark and their columns ``c``. Of joined frames ``c`` is the pair of both sides' columns."""

    rows: DataFrame
    c: A

    def filter(self, test: Column) -> Frame[A]:
        """The rows for which the test is true."""
        return Frame(self.rows.filter(test), self.c)

    def select(self, columns: T) -> Frame[T]:
        """A row of these columns for each row."""
        return frame(self.rows.select(*aliased(columns)), type(columns))

    def plus(self, column: Column) -> tuple[Frame[A], Column]:
        """The rows with one more column, and that column. For what needs a place of its own in a query: a
        window, an explosion, what many columns are made of."""
        name = f"x{next(_names)}"
        return Frame(self.rows.withColumn(name, column), self.c), F.col(name)

    def exploded(self, items: Column, kind: type[T]) -> Frame[tuple[A, T]]:
        """A row for each item of an array of structs, with the columns of the item."""
        rows, item = self.plus(F.explode(items))
        return Frame(rows.rows, (self.c, unpacked(kind, item)))

    def grouped(self, by: T, to: U) -> Frame[tuple[T, U]]:
        """One row for each combination of ``by``, with aggregates."""
        keys = [column.alias(f"by_{name}") for name, column in _pairs(by)]
        found = [column.alias(f"to_{name}") for name, column in _pairs(to)]
        name = f"t{next(_names)}"
        rows = self.rows.groupBy(*keys).agg(*found).alias(name)
        return Frame(
            rows,
            (
                type(by).of_names(lambda column: F.col(f"{name}.by_{column}")),
                type(to).of_names(lambda column: F.col(f"{name}.to_{column}")),
            ),
        )

    def join(self, other: Frame[B], on: Column, how: str = "inner") -> Frame[tuple[A, B]]:
        """``how``: ``inner`` or ``left``."""
        return Frame(self.rows.join(other.rows, on, how), (self.c, other.c))

    def matching(self, other: Frame[Any], on: Column) -> Frame[A]:
        """The rows that some row of the other frame goes with."""
        return Frame(self.rows.join(other.rows, on, "semi"), self.c)

    def without(self, other: Frame[Any], on: Column) -> Frame[A]:
        """The rows that no row of the other frame goes with."""
        return Frame(self.rows.join(other.rows, on, "anti"), self.c)

    def union(self: Frame[T], other: Frame[T]) -> Frame[T]:
        return frame(self.rows.union(other.rows), type(self.c))

    def distinct(self) -> Frame[A]:
        return Frame(self.rows.distinct(), self.c)

    def small(self) -> Frame[A]:
        """Where it is joined, every task gets all of it, and the other side is not shuffled."""
        return Frame(F.broadcast(self.rows), self.c)

    def made(self: Frame[T], how: Callable[[DataFrame], DataFrame]) -> Frame[T]:
        """What ``how`` makes of the rows, which has the same columns."""
        return frame(how(self.rows), type(self.c))


def frame(rows: DataFrame, kind: type[T]) -> Frame[T]:
    """Rows that have all columns of the table. Raises pyspark's AnalysisException where one is missing."""
    name = f"t{next(_names)}"
    columns = kind.of_names(lambda column: F.col(f"{name}.{column}"))
    return Frame(rows.select(*kind.names()).alias(name), columns)


def small(spark: SparkSession, kind: type[T], rows: list[tuple[object, ...]]) -> Frame[T]:
    """A frame of rows that the driver has, with the values in the order of the columns."""
    return frame(spark.createDataFrame(rows, schema(kind)), kind)


def schema(kind: type[Table[Column]]) -> str:
    """What Spark calls a table whose fields are annotated with their types."""
    return ", ".join(f"{name} {type_}" for name, type_ in _types(kind))


def struct_type(kind: type[Table[Column]]) -> str:
    """The same as the type of a column."""
    return f"struct<{', '.join(f'{name}: {type_}' for name, type_ in _types(kind))}>"


def _types(kind: type[Table[Column]]) -> list[tuple[str, str]]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for one in fields(kind):  # type: ignore[arg-type]
        hint = hints[one.name]
        if get_origin(hint) is Annotated:
            found.append((one.name, str(get_args(hint)[1])))
        else:
            found += [(f"{one.name}_{name}", type_) for name, type_ in _types(hint)]
    return found


def _pairs(columns: Table[Column]) -> list[tuple[str, Column]]:
    return list(zip(columns.names(), columns.columns(), strict=True))


def aliased(columns: Table[Column]) -> list[Column]:
    return [column.alias(name) for name, column in _pairs(columns)]


def packed(columns: Table[Column]) -> Column:
    """All columns in one, as a struct: rows are compared by the first of them, then by the next."""
    return F.struct(*aliased(columns))


def unpacked(kind: type[T], column: Column) -> T:
    """The columns of a struct; all are null where it is."""
    return kind.of_names(lambda name: column.getField(name))


def all_of(*tests: Column) -> Column:
    """Whether all are true."""
    return reduce(and_, tests)
