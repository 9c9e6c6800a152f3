"""The operations that may have put a value there before it was seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.checkers.models.protocol import Operation, Outcome, frozen


@dataclass(slots=True)
class Put:
    """All operations that put one value. ``first``: the place and the operation of the first invocation among
    those that may have happened. ``acknowledged``: that of the first return among those that did.
    ``failed``: one that did not happen."""

    first: tuple[int, Operation] | None = None
    acknowledged: tuple[int, Operation] | None = None
    failed: tuple[int, Operation] | None = None
    possible: int = 0
    """How many may have happened."""
    certain: int = 0
    """How many did."""

    @property
    def known_at(self) -> int | None:
        """When the value was there, at the latest; None where nobody knows that it ever was."""
        return None if self.acknowledged is None else returned(self.acknowledged[1])


@dataclass(slots=True)
class Origins:
    """The puts of each value."""

    of: dict[Hashable, Put] = field(default_factory=lambda: defaultdict(Put))

    def put(self, place: int, one: Operation, value: Any) -> None:
        known = self.of[frozen(value)]
        if one.outcome is Outcome.FAIL:
            known.failed = known.failed or (place, one)
            return
        known.possible += 1
        if known.first is None or one.inv < known.first[1].inv:
            known.first = place, one
        if one.outcome is Outcome.OK:
            known.certain += 1
            if known.acknowledged is None or returned(one) < returned(known.acknowledged[1]):
                known.acknowledged = place, one

    def missing(self, value: Any, seen_until: int) -> tuple[str, tuple[int, ...]]:
        """Returns why nobody can have put what was seen until then, in words, and the places of operations
        that tell it. Empty where somebody can."""
        known = self.of.get(frozen(value))
        if known is None:
            return "nobody put it there", ()
        if known.first is None:
            assert known.failed is not None
            place, failed = known.failed
            return f"it was never put there: process {failed.process} tried, and failed", (place,)
        place, first = known.first
        if first.inv > seen_until:
            return f"it was put there only later, first by process {first.process}", (place,)
        return "", ()


def returned(one: Operation) -> int:
    """When an operation that did happen returned. Raises ValueError where nobody knows."""
    if one.ret is None:
        raise ValueError(f"{one.f} of process {one.process} never returned")
    return one.ret


def did(one: Operation) -> bool:
    """Tells whether the operation certainly happened."""
    return one.outcome is Outcome.OK and one.ret is not None


def last_read(operations: Sequence[Operation], reads: Iterable[int]) -> int | None:
    """The place of the read that returned last, of those at these places."""
    return max(reads, key=lambda place: (returned(operations[place]), operations[place].inv), default=None)
