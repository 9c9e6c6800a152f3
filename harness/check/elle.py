"""What Elle found, with the operations of the file and in sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wrackline.checkers.jvm.answers import Case, Edge, Judgement
from wrackline.harness.check.answers import Anomaly, Example, Link, Operation, operation, shown
from wrackline.harness.jepsen.object_histories import Done

_NOTHING_TO_SHOW = "empty-transaction-graph"
_Name = Callable[[int | None], Any]


def anomalies(
    found: Judgement, model: str, names: Mapping[int, Any], done: Sequence[Done]
) -> tuple[Anomaly, ...]:
    """``names``: what negative numbers in Elle's answer stand for; ``done``: the operation of each
    transaction."""

    def name(number: int | None) -> Any:
        return names.get(number, number) if number is not None else None

    return tuple(
        Anomaly(
            kind,
            count,
            tuple(_example(case, model, name, names, done) for case in cases if kind != _NOTHING_TO_SHOW),
        )
        for kind, (count, cases) in found.anomalies.items()
    )


def _example(case: Case, model: str, name: _Name, names: Mapping[int, Any], done: Sequence[Done]) -> Example:
    rows = [edge.before for edge in case.cycle] or list(case.rows)
    number = {row: at for at, row in enumerate(rows, 1)}
    mentioned = {int(word) for word in re.findall(r"(?<![\w.])-\d+", case.text)} & names.keys()
    return Example(
        tuple(operation(done[row]) for row in rows),
        tuple(
            Link(
                edge.kind,
                number[edge.before],
                number[edge.after],
                sentence(edge, model, f"T{number[edge.before]}", f"T{number[edge.after]}", name),
                name(edge.key),
                name(edge.value),
                name(edge.next_value),
            )
            for edge in case.cycle
        ),
        case.text,
        {str(one): names[one] for one in sorted(mentioned, reverse=True)},
    )


def sentence(edge: Edge, model: str, before: str, after: str, name: _Name) -> str:
    """Why ``before`` comes before ``after``, in words."""
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
    mops = one.value if isinstance(one.value, list) else []
    words = " ".join(shown(mop, 60) for mop in mops[:8])
    return words + (" ..." if len(mops) > 8 else "")
