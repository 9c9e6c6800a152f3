"""Histories by hand: events of clients, as operations."""

from __future__ import annotations

from typing import Any

from wrackline.checkers.models.protocol import Operation, Outcome


def history(*events: tuple[Any, ...]) -> list[Operation]:
    """Operations of events ``(process, "invoke" | "ok" | "fail" | "info", f, value[, more])``. The place of
    an event, from 0, is its time; ten milliseconds lie between two."""
    begun: dict[int, tuple[int, str, Any]] = {}
    found: dict[int, Operation] = {}
    for at, (process, kind, f, value, *more) in enumerate(events):
        if kind == "invoke":
            begun[process] = at, f, value
            found[at] = Operation(process, f, value, None, at, None, Outcome.INFO, inv_ns=at * 10_000_000)
            continue
        inv, _, argument = begun.pop(process)
        outcome = Outcome(kind)
        found[inv] = Operation(
            process,
            f,
            argument,
            value if outcome is Outcome.OK else None,
            inv,
            None if outcome is Outcome.INFO else at,
            outcome,
            inv_ns=inv * 10_000_000,
            ret_ns=at * 10_000_000,
            more=more[0] if more else {},
        )
    return [found[inv] for inv in sorted(found)]


def done(process: int, f: str, argument: Any = None, result: Any = None) -> list[tuple[Any, ...]]:
    """An operation that nothing else overlaps."""
    return [(process, "invoke", f, argument), (process, "ok", f, argument if result is None else result)]
