"""The writes of one client are seen in the order in which it made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from wrackline.checkers.jepsen.origins import Origins, did, returned
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.protocol import Operation, Outcome, frozen, in_words


class Sequential(Checker):
    """A read that goes through the parts of a key from the last one written to the first finds none missing
    behind one that is there."""

    operations: ClassVar[Mapping[str, str]] = {
        "write": "write k: its parts, one after another",
        "read": "read k -> [k [p ..]]: its parts, the last one first; nil where there is none",
    }
    promise: ClassVar[str] = "in sequential order"
    jepsen: ClassVar[str] = "jepsen.cockroach.sequential/checker"
    cannot_see: ClassVar[str] = "reads that are stale as a whole"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        writes = Origins()
        for place, one in enumerate(operations):
            if one.f == "write":
                # Several transactions: one that failed may have left its first parts behind.
                tried = one if one.outcome is Outcome.OK else _unknown(one)
                writes.put(place, tried, one.argument)
        reads = whole = none = 0
        for place, one in enumerate(operations):
            if one.f != "read" or not did(one):
                continue
            match one.result:
                case [key, [*parts]]:
                    pass
                case _:
                    raise OperationError(place, f":read needs [k [p ..]], not {in_words(one.result)}")
            reads += 1
            there = [part is not None for part in parts]
            whole, none = whole + all(there), none + (not any(there))
            if not any(there):
                continue
            why, others = writes.missing(key, returned(one))
            first = there.index(True)
            if why:
                sentence = f"process {one.process} read parts of {in_words(key)}, and {why}"
                found.add("unexpected", sentence, *others, place)
            elif not all(there[first:]):
                part, of = in_words(parts[first]), in_words(key)
                sentence = (
                    f"process {one.process} read part {part} of {of}, and after that missed an earlier part"
                )
                wrote = writes.of[frozen(key)].first
                found.add("out of order", sentence, *(() if wrote is None else (wrote[0],)), place)
        found.figures = {"reads": reads, "whole": whole, "empty": none, "in part": reads - whole - none}


def _unknown(one: Operation) -> Operation:
    return Operation(one.process, one.f, one.argument, None, one.inv, None, Outcome.INFO)
