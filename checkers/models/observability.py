"""The evidence on operations of unknown outcome from values that others saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum

from wrackline.checkers.models.protocol import Operation, Outcome


class Unobservable(Enum):
    """Stands in a state for what no operation can see: no value of a history is equal to it."""

    UNOBSERVABLE = "what nobody sees"

    def __repr__(self) -> str:
        return self.value


class ObservedValues:
    """The values that the operations of a history put somewhere, and which of them were seen, by when."""

    def __init__(self, there: Iterable[Hashable] = ()) -> None:
        """``there``: the values that were there at first."""
        self._puts: Counter[Hashable] = Counter(there)
        self._by: dict[Hashable, int | None] = {}
        self._unknown: list[tuple[int, Hashable]] = []

    def put(self, place: int, one: Operation, value: Hashable) -> None:
        """The operation at ``place`` puts ``value`` there, if it happens."""
        self._puts[value] += 1
        if one.outcome is Outcome.INFO:
            self._unknown.append((place, value))

    def see(self, one: Operation, values: Iterable[Hashable]) -> None:
        """The operation tells that these were there; one of unknown outcome, that it needs them there."""
        for value in values:
            before = self._by.get(value)
            known = one.ret if one.outcome is Outcome.OK else None
            self._by[value] = known if before is None else before if known is None else min(before, known)

    def forgettable(self) -> Mapping[int, int | None]:
        """An operation may be left out whose value was not seen by anyone. It did happen where its value was
        seen and no other can have put it there."""
        result: dict[int, int | None] = {}
        for place, value in self._unknown:
            if value not in self._by:
                result[place] = None
            elif self._by[value] is not None and self._puts[value] == 1:
                result[place] = self._by[value]
        return result
