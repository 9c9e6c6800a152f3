"""A set."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

from wrackline.checkers.models.observability import ObservedValues, Unobservable
from wrackline.checkers.models.protocol import REFUSED, Model, Operation, Outcome, Refused, frozen

UNOBSERVABLE = frozenset[Hashable]({Unobservable.UNOBSERVABLE})
"""The state of a set that is in none that was read."""


class Set(Model[frozenset[Hashable]]):
    """A set of values. A state is a frozenset of them."""

    jepsen: ClassVar[str] = "knossos.model/set"
    operations: ClassVar[Mapping[str, str]] = {
        "add": "add v: v is in the set",
        "remove": "remove v: v is not in the set, whether or not it was",
        "read": "read -> [v ..]: these are all that is in the set",
    }

    puts = ("add", "remove")
    _shown: tuple[frozenset[Hashable], ...] | None = None
    """Of a narrowed model: the largest sets that were read."""

    def narrowed(self, operations: Sequence[Operation]) -> Set:
        """Returns the model of a part: where nothing is removed, one state stands for all that are in no
        set that was read."""
        same = copy(self)
        if all(one.f != "remove" for one in operations):
            read = {_elements(one.result) for one in operations if one.f == "read"}
            largest: list[frozenset[Hashable]] = []
            for each in sorted(read, key=len, reverse=True):
                if not any(each <= other for other in largest):
                    largest.append(each)
            same._shown = tuple(largest)
        return same

    def initial(self) -> frozenset[Hashable]:
        return frozenset()

    def step(self, state: frozenset[Hashable], operation: Operation) -> frozenset[Hashable] | Refused:
        match operation.f:
            case "add":
                after = state | {frozen(operation.argument)}
                if self._shown is None or any(after <= one for one in self._shown):
                    return after
                return UNOBSERVABLE
            case "remove":
                return state - {frozen(operation.argument)}
            case "read":
                return state if _elements(operation.result) == state else REFUSED
        return REFUSED

    def observes(self, operation: Operation) -> bool:
        return operation.f == "read"

    def unknowns(self, operations: Sequence[Operation]) -> Mapping[int, int | None]:
        """An element that no read shows need not have been added. One that is shown and that one operation
        alone can have added was added by then."""
        seen = ObservedValues()
        for place, one in enumerate(operations):
            if one.f == "add":
                seen.put(place, one, frozen(one.argument))
            elif one.f == "read" and one.outcome is Outcome.OK:
                seen.see(one, _elements(one.result))
        return seen.forgettable()

    def describe_state(self, state: frozenset[Hashable]) -> str:
        if state == UNOBSERVABLE:
            return "more than anybody saw"
        return "{" + ", ".join(sorted(map(repr, state))) + "}"


def _elements(result: Any) -> frozenset[Hashable]:
    return frozenset(frozen(each) for each in result or ())
