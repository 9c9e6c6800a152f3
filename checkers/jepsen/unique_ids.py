"""Identifiers that are generated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

from wrackline.checkers.jepsen.origins import did
from wrackline.checkers.models.checker import Checker, Found
from wrackline.checkers.models.protocol import Operation, frozen, in_words


class UniqueIds(Checker):
    """No identifier is given out twice."""

    operations: ClassVar[Mapping[str, str]] = {"generate": "generate -> id: nobody else gets this one"}
    promise: ClassVar[str] = "unique"
    jepsen: ClassVar[str] = "jepsen.checker/unique-ids"
    cannot_see: ClassVar[str] = "identifiers that nobody was told"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        given: dict[Hashable, list[int]] = defaultdict(list)
        for place, one in enumerate(operations):
            if did(one):
                given[frozen(one.result)].append(place)
        for places in given.values():
            if len(places) > 1:
                who = ", ".join(f"process {operations[place].process}" for place in places[:5])
                more = f" and {len(places) - 5} more" if len(places) > 5 else ""
                what = in_words(operations[places[0]].result)
                found.add("duplicate", f"{what} was given to {who}{more}", *places)
        found.figures = {
            "attempted": len(operations),
            "acknowledged": sum(map(len, given.values())),
            "distinct": len(given),
        }
