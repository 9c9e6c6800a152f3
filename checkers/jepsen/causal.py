"""A register that one chain of operations uses, and writes that are seen without what was there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, ClassVar

from wrackline.checkers.jepsen.origins import Origins, did, returned
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.protocol import Operation, Outcome, frozen, in_words

INIT = "init"
"""``:link`` of an operation that follows none."""


class Causal(Checker):
    """The operations of a key take effect one after another: a read shows the last write before it."""

    operations: ClassVar[Mapping[str, str]] = {
        "read-init": "read-init -> v: the first read of the key",
        "write": "write v: the register holds v",
        "read": "read -> v: the register holds v",
    }
    puts: ClassVar[Collection[str]] = ("write",)
    promise: ClassVar[str] = "causal"
    jepsen: ClassVar[str] = "jepsen.tests.causal/check"
    cannot_see: ClassVar[str] = "causal orders that branch: each key has one chain of operations"

    def __init__(self, initial: Any = 0) -> None:
        """``initial``: what a key holds at first, beside nil."""
        self._initial = frozen(initial)

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        _refuse_overlap(operations)
        _check_links(operations, found)
        origins = Origins()
        holds: Hashable = None
        writer: int | None = None
        unknown: Counter[Hashable] = Counter()
        """Values whose writes may take effect yet."""
        reads = 0
        for place, one in enumerate(operations):
            if one.f == "write":
                origins.put(place, one, one.argument)
                if did(one):
                    holds, writer = frozen(one.argument), place
                elif one.outcome is not Outcome.FAIL:
                    unknown[frozen(one.argument)] += 1
            elif did(one):
                reads += 1
                value = frozen(one.result)
                if value == holds or (writer is None and holds is None and value in (None, self._initial)):
                    continue
                if unknown[value]:
                    unknown[value] -= 1
                    holds, writer = value, place
                    continue
                why, others = origins.missing(value, returned(one))
                if value in (None, self._initial) or not why:
                    why = f"it held {in_words(holds if holds is not None else self._initial)} by then"
                    others = () if writer is None else (writer,)
                found.add(
                    "wrong read", f"process {one.process} read {in_words(value)}, and {why}", *others, place
                )
        found.figures = {"reads": reads}


class CausalReverse(Checker):
    """A read that shows a write shows each that was acknowledged before that one began."""

    operations: ClassVar[Mapping[str, str]] = {
        "write": "write v: v is there",
        "read": "read -> [v ..]: all that is there",
    }
    puts: ClassVar[Collection[str]] = ("write",)
    promise: ClassVar[str] = "free of causal reverse"
    jepsen: ClassVar[str] = "jepsen.tests.causal-reverse/checker"
    cannot_see: ClassVar[str] = "reads that miss only the latest writes, which are stale (set-full)"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        origins = Origins()
        for place, one in enumerate(operations):
            if one.f == "write":
                origins.put(place, one, one.argument)
        certain = [
            (returned(put.acknowledged[1]), value, put.acknowledged)
            for value, put in origins.of.items()
            if put.acknowledged is not None
        ]
        certain.sort(key=lambda one: one[0])
        reads = [place for place, one in enumerate(operations) if one.f == "read" and did(one)]
        for place in found.counted(reads, "read"):
            one = operations[place]
            if not isinstance(one.result, list | tuple | set | frozenset | None):
                raise OperationError(place, f":read needs a list of values, not {in_words(one.result)}")
            shown = {frozen(value): value for value in one.result or ()}
            latest: tuple[int, Operation] | None = None
            for value in shown.values():
                why, others = origins.missing(value, returned(one))
                if why:
                    found.add("unexpected", f"{in_words(value)} is in a read, and {why}", *others, place)
                    continue
                first = origins.of[frozen(value)].first
                if first is not None and (latest is None or first[1].inv > latest[1].inv):
                    latest = first
            if latest is None:
                continue
            later, visible = latest
            for since, value, (earlier, hidden) in certain:
                if since >= visible.inv:
                    break
                if value not in shown:
                    there, gone = in_words(visible.argument), in_words(hidden.argument)
                    sentence = (
                        f"process {one.process} read {there} and not {gone}, which was there before {there} "
                        "was written"
                    )
                    found.add("causal reverse", sentence, earlier, later, place)
                    break
        found.figures = {"writes": len(origins.of), "reads": len(reads)}


def _refuse_overlap(operations: Sequence[Operation]) -> None:
    """Raises OperationError."""
    before: Operation | None = None
    for place, one in enumerate(operations):
        if not did(one):
            continue
        if before is not None and one.inv < returned(before):
            why = f"this one began before :{before.f} of process {before.process} had returned"
            raise OperationError(
                place, f"a key has one operation at a time, and {why} (--independent: [key v])"
            )
        before = one


def _check_links(operations: Sequence[Operation], found: Found) -> None:
    """Checks that each operation follows the one before it, where operations name what they follow."""
    last: tuple[int, Operation] | None = None
    for place, one in enumerate(operations):
        if not did(one):
            continue
        link = one.more.get("link", INIT)
        if link != INIT and last is not None and link != last[1].more.get("position", link):
            position = in_words(last[1].more["position"])
            sentence = (
                f"process {one.process} followed {in_words(link)}, and the one before has position {position}"
            )
            found.add("broken link", sentence, last[0], place)
        last = place, one
