"""The anomalies that Elle's cycles show in transactions, with the operations of the file and in sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wrackline.checkers.exact.transactions.answers import Case, Edge
from wrackline.checkers.models.protocol import Operation as Done
from wrackline.harness.check.results import Anomaly, Example, Link, Operation, operation, shown

_NOTHING_TO_SHOW = "empty-transaction-graph"
_Name = Callable[[int | None], Any]


def anomalies(
    found: Mapping[str, tuple[int, tuple[Case, ...]]],
    model: str,
    names: Mapping[int, Any],
    done: Sequence[Done],
) -> tuple[Anomaly, ...]:
    """``names``: what negative numbers in the answer stand for; ``done``: the operation of each
    transaction."""
    told = _Telling(model, names, done)
    return tuple(
        Anomaly(
            kind,
            count,
            tuple(told.example(kind, case) for case in cases if kind != _NOTHING_TO_SHOW),
        )
        for kind, (count, cases) in found.items()
    )


@dataclass(frozen=True, slots=True)
class _Telling:
    model: str
    names: Mapping[int, Any]
    done: Sequence[Done]

    def name(self, number: int | None) -> Any:
        return self.names.get(number, number) if number is not None else None

    def example(self, kind: str, case: Case) -> Example:
        rows = [edge.before for edge in case.cycle] or list(case.rows)
        number = {row: at for at, row in enumerate(rows, 1)}
        said = facts(dict(case.facts), number, self.name)
        mentioned = {int(word) for word in re.findall(r"(?<![\w.])-\d+", case.text)} & self.names.keys()
        return Example(
            tuple(operation(self.done[row]) for row in rows),
            tuple(self._link(edge, number) for edge in case.cycle),
            what_is_wrong(kind, said),
            said,
            case.text,
            {str(one): self.names[one] for one in sorted(mentioned, reverse=True)},
        )

    def _link(self, edge: Edge, number: Mapping[int, int]) -> Link:
        before, after = number[edge.before], number[edge.after]
        return Link(
            edge.kind,
            before,
            after,
            sentence(edge, self.model, f"T{before}", f"T{after}", self.name),
            self.name(edge.key),
            self.name(edge.value),
            self.name(edge.next_value),
        )


def facts(value: Any, number: Mapping[int, int], name: _Name) -> Any:
    """The same with the names of keys, values and transactions."""
    match value:
        case {"operation": int(row)}:
            return {"operation": f"T{number[row]}"} if row in number else None
        case dict():
            return {name(k) if isinstance(k, int) else k: facts(v, number, name) for k, v in value.items()}
        case list() | tuple():
            return [facts(one, number, name) for one in value]
        case int():
            return name(value)
    return value


def what_is_wrong(kind: str, said: Mapping[str, Any]) -> str:
    """A sentence about an anomaly that is no cycle; empty for kinds that have none."""
    one, writer = (_name_of(said.get(part)) for part in ("op", "writer"))
    mop = said.get("mop")
    _, key, seen = mop if isinstance(mop, list | tuple) and len(mop) == 3 else (None, said.get("key"), None)
    of, read = f"of key {shown(key)}", shown(said.get("element", seen))
    match kind, said.get("values"):
        case "G1a", _:
            return f"{one} read {read} {of}, which {writer} wrote, and {writer} failed"
        case "G1b", _:
            return f"{one} read {read} {of}, which is not the last that {writer} wrote there"
        case "internal", _:
            expected = shown(said.get("expected"))
            return f"{one} read {shown(seen)} {of}, and by what it did itself it is {expected}"
        case "garbage-read", _:
            return f"{one} read {read} {of}, which nobody wrote"
        case "future-read", _:
            return f"{one} read {read} {of} before it wrote that itself"
        case "incompatible-order", [first, second, *_]:
            return f"{shown(first)} and {shown(second)} were read {of}: neither goes on with the other"
        case "duplicate-elements", _:
            return f"{one} read an element {of} more than once: {shown(seen)}"
        case "lost-update", _:
            txns = ", ".join(_name_of(txn) for txn in said.get("txns", ()))
            return f"{txns} all read {shown(said.get('value'))} {of} and wrote over it: only one may"
    return ""


def _name_of(txn: Any) -> str:
    """T1, of the data {"operation": "T1"}."""
    return str(txn["operation"]) if isinstance(txn, dict) and "operation" in txn else "a transaction"


def sentence(edge: Edge, model: str, before: str, after: str, name: _Name) -> str:
    """Returns in words why ``before`` comes before ``after``."""
    key, value, later = shown(name(edge.key)), shown(name(edge.value)), shown(name(edge.next_value))
    lists = model == "list-append"
    match edge.kind:
        case "ww" if lists:
            return f"{before} appended {value} to key {key}, and {after} appended {later} behind it"
        case "ww":
            return f"{before} wrote {value} to key {key}, and {after} wrote {later} over it"
        case "wr":
            return f"{before} {'appended' if lists else 'wrote'} {value} to key {key}, and {after} read it"
        case "rw" if edge.value is None:
            wrote = f"appended {later} to it" if lists else f"wrote {later} to it"
            return f"{before} read nil of key {key}, and {after} {wrote}"
        case "rw" if lists:
            return f"{before} read key {key} up to {value}, and {after} appended {later} behind that"
        case "rw":
            return f"{before} read {value} of key {key}, and {after} wrote {later} over it"
        case "realtime":
            return f"{before} had completed before {after} was invoked"
        case "process":
            return f"process {edge.process} did {before} before {after}"
    return f"{before} comes before {after} ({edge.kind})"


def transaction(one: Operation) -> str:
    """``[append x 1] [r y nil]``."""
    mops = one.value if isinstance(one.value, tuple) else ()
    words = " ".join(shown(mop, 60) for mop in mops[:8])
    return words + (" ..." if len(mops) > 8 else "")
