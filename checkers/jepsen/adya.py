"""Adya's G2: two transactions that each find a predicate empty, and each insert what the other looked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from wrackline.checkers.jepsen.origins import did
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.protocol import Operation, frozen, in_words


class Adya(Checker):
    """Every insert of a key looks for the others first, and at most one of them succeeds (no G2)."""

    operations: ClassVar[Mapping[str, str]] = {
        "insert": "insert [key [a b]]: there was no row of this key in either table, and now there is one"
    }
    promise: ClassVar[str] = "free of G2"
    jepsen: ClassVar[str] = "jepsen.tests.adya/g2-checker"
    cannot_see: ClassVar[str] = "a second insert whose outcome nobody knows"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        keys: dict[Hashable, list[int]] = defaultdict(list)
        for place, one in enumerate(operations):
            succeeded = keys[frozen(_key(place, one))]
            if did(one):
                succeeded.append(place)
        for places in keys.values():
            if len(places) > 1:
                of = _key(places[0], operations[places[0]])
                who = " and ".join(f"process {operations[place].process}" for place in places[:4])
                of_key = "" if of is None else f" for key {in_words(of)}"
                found.add("G2", f"{who} each inserted a row{of_key} and found none of the other", *places)
        found.figures = {
            "keys": len(keys),
            "keys with one insert": sum(len(places) == 1 for places in keys.values()),
        }


def _key(place: int, one: Operation) -> Any:
    """The key of ``[key [a b]]``; None of ``[a b]``, which is what --independent leaves."""
    match one.argument:
        case [key, [_, _]]:
            return key
        case [_, _]:
            return None
    raise OperationError(place, f":insert needs [key [a b]], not {in_words(one.argument)}")
