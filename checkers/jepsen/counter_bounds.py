"""A counter, between what must have been added and what may have been."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar

from wrackline.checkers.jepsen.origins import did, returned
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.protocol import ModelError, Operation, Outcome, in_words


class CounterBounds(Checker):
    """Each read lies between the sum of what had been added before it and of what may have been added until
    its end."""

    operations: ClassVar[Mapping[str, str]] = {
        "add": "add n: the counter is n larger (n may be negative)",
        "read": "read -> n: the counter is n",
    }
    promise: ClassVar[str] = "within its bounds"
    jepsen: ClassVar[str] = "jepsen.checker/counter"
    cannot_see: ClassVar[str] = "sums between the bounds that no additions have, and reads that go back"

    def __init__(self, initial: int = 0) -> None:
        """``initial``: what the counter is at first. Raises ModelError."""
        if not _is_number(initial):
            raise ModelError(f"the initial value of a counter is a number, not {initial!r:.40}")
        self._initial = initial

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        adds = [
            (_number(place, one, one.argument), one)
            for place, one in enumerate(operations)
            if one.f == "add" and one.outcome is not Outcome.FAIL
        ]
        # What is added may count from its invocation on, and must from its return on.
        may_rise = _Sums((one.inv, n) for n, one in adds if n > 0)
        may_fall = _Sums((one.inv, n) for n, one in adds if n < 0)
        rose = _Sums((returned(one), n) for n, one in adds if n > 0 and did(one))
        fell = _Sums((returned(one), n) for n, one in adds if n < 0 and did(one))
        reads = 0
        for place, one in enumerate(operations):
            if one.f != "read" or not did(one):
                continue
            reads += 1
            value, end = _number(place, one, one.result), returned(one)
            low = self._initial + rose.before(one.inv) + may_fall.until(end)
            high = self._initial + fell.before(one.inv) + may_rise.until(end)
            if not low <= value <= high:
                bound = f"at least {low:,}" if value < low else f"at most {high:,}"
                sentence = f"process {one.process} read {value:,}, and the counter was {bound} then"
                found.add("out of bounds", sentence, place)
        found.figures = {"reads": reads, "additions": len(adds)}


class _Sums:
    """The sum of all numbers before some time."""

    def __init__(self, timed: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(timed, key=lambda one: one[0])
        self._times = [time for time, _ in ordered]
        self._sums = [0, *accumulate(number for _, number in ordered)]

    def before(self, time: int) -> int:
        return self._sums[bisect_left(self._times, time)]

    def until(self, time: int) -> int:
        return self._sums[bisect_right(self._times, time)]


def _number(place: int, one: Operation, value: Any) -> int:
    if not _is_number(value):
        raise OperationError(place, f":{one.f} needs a whole number, not {in_words(value)}")
    return int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
