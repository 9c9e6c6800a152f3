"""Brute force: every order of a small history of one object is tried. The oracle of the exact checks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns

State = TypeVar("State", bound=Hashable)


def linearizable(
    spans: Sequence[tuple[int, int]], start: State, step: Callable[[State, int], Iterable[State]]
) -> bool:
    """Whether some order of the operations that respects real time is one of the object's. ``spans``: of each
    invocation and return. ``step``: the states after one of them; none where it cannot happen."""
    seen: set[tuple[frozenset[int], State]] = set()

    def explore(left: frozenset[int], state: State) -> bool:
        deadline = min((spans[row][1] for row in left), default=NEVER)
        if deadline == NEVER:
            return True
        if (left, state) in seen:
            return False
        seen.add((left, state))
        return any(
            explore(left - {row}, after)
            for row in left
            if spans[row][0] <= deadline
            for after in step(state, row)
        )

    return explore(frozenset(range(len(spans))), start)


def is_register(table: Columns) -> bool:
    def step(state: int, puts: bool, value: int, known: bool) -> list[int]:
        if puts:
            return [value]
        return [state] if not known or state == value else []

    return _is_object(table, NOTHING, step)


def is_queue(table: Columns) -> bool:
    def step(state: tuple[int, ...], puts: bool, value: int, known: bool) -> list[tuple[int, ...]]:
        if puts:
            return [(*state, value)]
        if not known:
            return [state[1:]]
        if value == NOTHING:
            return [] if state else [state]
        return [state[1:]] if state and state[0] == value else []

    return _is_object(table, (), step)


def _is_object(table: Columns, start: State, step: Callable[[State, bool, int, bool], list[State]]) -> bool:
    table = table.rows(np.flatnonzero(~table.failed))
    puts, value, ret = table.puts.tolist(), table.value.tolist(), table.ret.tolist()
    spans = [*zip(table.inv.tolist(), ret, strict=True)]
    known = [end != NEVER for end in ret]
    return linearizable(spans, start, lambda state, row: step(state, puts[row], value[row], known[row]))
