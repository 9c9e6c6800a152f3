"""Rows that each insert the largest value so far, and one more, with the time of their transaction."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

from wrackline.checkers.jepsen.origins import did, last_read, returned
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.protocol import Operation, Outcome, in_words

Number: TypeAlias = int | Decimal


class Monotonic(Checker):
    """Values rise with the times of their transactions, and the last read shows all that were told."""

    operations: ClassVar[Mapping[str, str]] = {
        "add": "add -> {:val n, :sts t}: a row that is there: the new one, or the one before it",
        "read": "read -> [{:val n, :sts t} ..]: all rows, in the order of their times",
    }
    promise: ClassVar[str] = "monotonic"
    jepsen: ClassVar[str] = "jepsen.cockroach.monotonic/check-monotonic"
    cannot_see: ClassVar[str] = "the order of rows with one time"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        reads = [place for place, one in enumerate(operations) if one.f == "read" and did(one)]
        last = last_read(operations, reads)
        rows: dict[Number, _Row] = {}
        for place in found.counted(reads, "read"):
            read = _rows(place, operations[place])
            _order(place, operations[place], read, found)
            if place == last:
                rows = {row.val: row for row in read}
        if last is None:
            found.undecided = "nobody read the rows"
        else:
            _final(operations, last, rows, found)
        found.figures |= {"reads": len(reads), "rows": len(rows)}


@dataclass(frozen=True, slots=True)
class _Row:
    val: Number
    sts: Number | None
    """The time of its transaction; None where the history does not say it."""

    @property
    def name(self) -> str:
        return f"value {self.val}" + ("" if self.sts is None else f" (time {self.sts})")


def _order(place: int, one: Operation, rows: Sequence[_Row], found: Found) -> None:
    """Adds what is wrong in one read."""
    seen: set[Number] = set()
    for row in rows:
        if row.val in seen:
            found.add("duplicate", f"process {one.process} read {row.name} more than once", place)
        seen.add(row.val)
    timed = [row for row in rows if row.sts is not None]
    for earlier, later in pairwise(timed):
        if earlier.sts is not None and later.sts is not None and earlier.sts > later.sts:
            sentence = f"process {one.process} read {later.name} behind {earlier.name}, whose time is later"
            found.add("times out of order", sentence, place)
    # Rows of one time have no order: each is held against the largest value of the times before.
    largest: _Row | None = None
    group: _Row | None = None
    for row in sorted(timed, key=lambda row: (row.sts or 0, row.val)) if timed else rows:
        if group is not None and (row.sts is None or row.sts != group.sts):
            largest = group if largest is None or group.val > largest.val else largest
            group = None
        group = row if group is None or row.val > group.val else group
        if largest is not None and row.val < largest.val:
            sentence = f"{largest.name} has the earlier time and the larger value, and {row.name} the smaller"
            found.add("values out of order", sentence, place)


def _final(operations: Sequence[Operation], last: int, rows: Mapping[Number, _Row], found: Found) -> None:
    """Adds what is missing in the last read, and what should be."""
    read = operations[last]
    acknowledged: dict[Number, int] = {}
    failed: dict[Number, int] = {}
    possible: set[Hashable] = set()
    recovered = 0
    for place, one in enumerate(operations):
        if one.f != "add":
            continue
        row = _maybe(one.result if did(one) else one.argument)
        if row is None:
            continue
        if did(one):
            if returned(one) < read.inv:
                acknowledged.setdefault(row.val, place)
        elif isinstance(one.argument, Mapping):  # a bare number is no value yet: the row gets its own
            if one.outcome is Outcome.FAIL:
                failed.setdefault(row.val, place)
            else:
                possible.add(row.val)
                recovered += row.val in rows
        if did(one):
            possible.add(row.val)
    for val, place in acknowledged.items():
        if val not in rows:
            sentence = (
                f"{val}, which process {operations[place].process} was told of, is not in the last read"
            )
            found.add("lost", sentence, place, last)
    for val, place in failed.items():
        if val in rows and val not in possible:
            sentence = f"{val}, whose add by process {operations[place].process} failed, is in the last read"
            found.add("revived", sentence, place, last)
    found.figures = {"acknowledged": len(acknowledged), "recovered": recovered}


def _rows(place: int, one: Operation) -> list[_Row]:
    if not isinstance(one.result, list | tuple | None):
        raise OperationError(place, f":read needs a list of rows, not {in_words(one.result)}")
    found = []
    for each in one.result or ():
        row = _maybe(each)
        if row is None:
            raise OperationError(place, f":read needs rows as {{:val n, :sts t}}, not {in_words(each)}")
        found.append(row)
    return found


def _maybe(row: Any) -> _Row | None:
    """A row, if it is one: a map with :val and :sts, or the value alone."""
    if isinstance(row, Mapping):
        val, time = _number(row.get("val")), row.get("sts")
        sts = None if time is None else _number(time)
        return None if val is None or (time is not None and sts is None) else _Row(val, sts)
    val = _number(row)
    return None if val is None else _Row(val, None)


def _number(value: Any) -> Number | None:
    """The number, also of one that is written as text: times of 96 bits are."""
    if type(value) is int or (isinstance(value, str) and value.isdecimal()):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
