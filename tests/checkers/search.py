"""Brute force: every order of a small history of one object is tried. The oracle of the exact checks."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns

State = TypeVar("State", bound=Hashable)
Step = Callable[[State, bool, int, bool], "list[State]"]
"""(state, puts, value, known) -> the states after it; none where it cannot happen."""


def linearizable(table: Columns, start: State, step: Step[State]) -> bool:
    """Whether some order of the operations that respects real time is one of the object's."""
    rows = [row for row in range(len(table)) if not table.failed[row]]
    inv, ret = table.inv.tolist(), table.ret.tolist()
    seen: set[tuple[frozenset[int], State]] = set()

    def explore(left: frozenset[int], state: State) -> bool:
        deadline = min((ret[row] for row in left), default=NEVER)
        if deadline == NEVER:
            return True
        if (left, state) in seen:
            return False
        seen.add((left, state))
        for row in left:
            if inv[row] > deadline:
                continue
            known = ret[row] != NEVER
            for after in step(state, bool(table.puts[row]), int(table.value[row]), known):
                if explore(left - {row}, after):
                    return True
        return False

    return explore(frozenset(rows), start)


def register(state: int, puts: bool, value: int, known: bool) -> list[int]:
    if puts:
        return [value]
    return [state] if not known or state == value else []


def queue(state: tuple[int, ...], puts: bool, value: int, known: bool) -> list[tuple[int, ...]]:
    if puts:
        return [(*state, value)]
    if not known:
        return [state[1:]]
    if value == NOTHING:
        return [] if state else [state]
    return [state[1:]] if state and state[0] == value else []


def is_register(table: Columns) -> bool:
    return linearizable(table, NOTHING, register)


def is_queue(table: Columns) -> bool:
    return linearizable(table, (), queue)
