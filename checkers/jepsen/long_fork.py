"""Long fork: two readers see two writes in two orders, which snapshot isolation forbids and parallel snapshot
isolation allows (Sovran et al., *Transactional storage for geo-replicated systems*, 2011)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar

from wrackline.checkers.jepsen.origins import did, returned
from wrackline.checkers.models.checker import Checker, Found, OperationError
from wrackline.checkers.models.protocol import Operation, Outcome, frozen, in_words

_READS, _WRITES = ("r", "read"), ("w", "write")


class LongFork(Checker):
    """All reads see the writes of keys, each written once, in one order."""

    operations: ClassVar[Mapping[str, str]] = {
        "write": "write [[:w k v]]: one key that nobody else writes",
        "read": "read [[:r k nil] ..] -> [[:r k v] ..]: several keys at once",
        "txn": "txn: either of these",
    }
    promise: ClassVar[str] = "free of long forks"
    jepsen: ClassVar[str] = "jepsen.tests.long-fork/checker"
    cannot_see: ClassVar[str] = "keys that are written twice, and whether the order is that of time"

    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        writes, reads = _divided(operations)
        twice = [key for key, places in writes.items() if len(places) > 1]
        if twice:
            place = writes[twice[0]][1]
            key = in_words(_micro(place, operations[place])[0][1])
            found.undecided = f"key {key} is written more than once: its reads have no order"
        order = _Order()
        for place in found.counted(reads, "read"):
            _see(place, operations, writes, order, found)
        order.contradictions(operations, found)
        found.figures = {"keys": len(writes), "reads": len(reads)}


@dataclass(slots=True)
class _Order:
    """The order in which keys were written, by who read the one and not yet the other."""

    reads: dict[tuple[Hashable, Hashable], int] = field(default_factory=dict)
    """(written, not yet written): the place of a read that saw so."""
    names: dict[Hashable, Any] = field(default_factory=dict)

    def contradictions(self, operations: Sequence[Operation], found: Found) -> None:
        pairs = False
        for (x, y), place in self.reads.items():
            other = self.reads.get((y, x))
            if other is not None and place < other:
                pairs = True
                found.add("long fork", self._said([x, y], operations), place, other)
        if pairs:
            return
        before: dict[Hashable, list[Hashable]] = {}
        for x, y in self.reads:
            before.setdefault(y, []).append(x)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as cycle:
            keys = cycle.args[1][:-1]
            places = [self.reads[x, y] for x, y in zip(keys, [*keys[1:], keys[0]], strict=True)]
            found.add("long fork", self._said(keys, operations), *places)

    def _said(self, keys: Sequence[Hashable], operations: Sequence[Operation]) -> str:
        steps = []
        for x, y in zip(keys, [*keys[1:], keys[0]], strict=True):
            reader = operations[self.reads[x, y]].process
            first, second = in_words(self.names[x]), in_words(self.names[y])
            steps.append(f"process {reader} read the write of {first} and not that of {second}")
        return ", ".join(steps)


def _divided(operations: Sequence[Operation]) -> tuple[dict[Hashable, list[int]], list[int]]:
    """The places of the writes of each key that may have happened, and those of the reads that did."""
    writes: dict[Hashable, list[int]] = {}
    reads = []
    for place, one in enumerate(operations):
        micro = _micro(place, one)
        if all(f in _READS for f, _, _ in micro):
            if did(one):
                reads.append(place)
        elif len(micro) > 1:
            raise OperationError(place, "a transaction writes one key, or it only reads")
        elif one.outcome is not Outcome.FAIL:
            writes.setdefault(frozen(micro[0][1]), []).append(place)
    return writes, reads


def _see(
    place: int,
    operations: Sequence[Operation],
    writes: Mapping[Hashable, Sequence[int]],
    order: _Order,
    found: Found,
) -> None:
    """Add what a read tells of the order."""
    one = operations[place]
    values: dict[Hashable, Hashable] = {}
    for _, key, value in _micro(place, one):
        name, held = frozen(key), frozen(value)
        if values.setdefault(name, held) != held:
            both = f"{in_words(values[name])} and {in_words(value)}"
            found.add(
                "two values", f"process {one.process} read {both} of key {in_words(key)} at once", place
            )
        order.names[name] = key
    written = []
    for key, value in values.items():
        if value is None:
            continue
        may = [at for at in writes.get(key, ()) if frozen(_micro(at, operations[at])[0][2]) == value]
        if not any(operations[at].inv <= returned(one) for at in may):
            who = "nobody wrote it" if not may else "it was written only later"
            what = (
                f"process {one.process} read {in_words(value)} of key {in_words(order.names[key])}, and {who}"
            )
            found.add("unexpected", what, *may[:1], place)
        elif len(writes[key]) == 1:
            written.append(key)
    missing = [key for key, value in values.items() if value is None and len(writes.get(key, ())) == 1]
    for x in written:
        for y in missing:
            order.reads.setdefault((x, y), place)


def _micro(place: int, one: Operation) -> list[tuple[str, Any, Any]]:
    """The micro-operations of a transaction: of reads that did happen, with what they got. Raises
    OperationError."""
    asked = _parsed(place, one, one.argument)
    only_reads = all(f in _READS for f, _, _ in asked)
    return _parsed(place, one, one.result) if only_reads and did(one) else asked


def _parsed(place: int, one: Operation, value: Any) -> list[tuple[str, Any, Any]]:
    result = []
    for each in value if isinstance(value, list | tuple) else [value]:
        match each:
            case [str(f), key, held] if f in _READS or f in _WRITES:
                result.append((f, key, held))
            case [str(f), key] if f in _READS:
                result.append((f, key, None))
            case _:
                raise OperationError(
                    place, f":{one.f} needs [[:r k v] ..] or [[:w k v]], not {in_words(value)}"
                )
    if not result:
        raise OperationError(place, f":{one.f} needs [[:r k v] ..] or [[:w k v]], and has none")
    return result
