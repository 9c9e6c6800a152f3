"""Histories of servers that keep their promise, drawn; and the same with something changed.

Several clients at once use a server that does each thing at some moment between invocation and return. An
operation of unknown outcome is done at any later moment, or never; one that failed is not done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from wrackline.checkers.models.protocol import Operation, Outcome

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO
REFUSED = object()
"""A server's answer to what it does not do: the operation fails."""
Server = Callable[[str, Any, int], Any]
"""(f, argument, process) to the result. A result that is a generator is done step by step, at moments of its
own, and returns the result."""
Draw = Callable[[Random, int], tuple[str, Any]]
"""(chance, process) to the next operation of a client."""


@dataclass
class _Open:
    process: int
    f: str
    argument: Any
    inv: int
    fate: Outcome
    steps: Iterator[Any] | None = None
    done: bool = False
    result: Any = None
    left: int = 0
    """Of an unknown outcome: how many steps are never done; -1 for none of them."""


def _steps(server: Server, one: _Open) -> Iterator[Any]:
    result = server(one.f, one.argument, one.process)
    if hasattr(result, "send"):
        result = yield from result
    one.result, one.done = result, True


def simulate(
    server: Server,
    draw: Draw,
    chance: Random,
    *,
    clients: int = 3,
    operations: int = 8,
    unknown: float = 0.15,
    failed: float = 0.1,
    last: Callable[[], list[tuple[str, Any]]] = list,
) -> list[Operation]:
    """A history. ``last``: operations that one client does at the end, one after another, and that do not
    fail."""
    found: list[Operation] = []
    now = 0
    running: dict[int, _Open] = {}
    lingering: list[_Open] = []
    names = list(range(clients))
    begun = 0
    while begun < operations or running:
        now += 1
        if lingering and chance.random() < 0.2:
            _advance(chance.choice(lingering), server)
        client = chance.randrange(clients)
        one = running.get(client)
        if one is None:
            if begun < operations:
                f, argument = draw(chance, names[client])
                fate = chance.choices([OK, FAIL, INFO], [1 - unknown - failed, failed, unknown])[0]
                running[client] = _Open(names[client], f, argument, now, fate)
                begun += 1
            continue
        if one.fate is OK and not one.done:
            _advance(one, server)
            continue
        if one.fate is INFO and not one.done and chance.random() < 0.4:
            _advance(one, server)
            continue
        del running[client]
        found.append(_ended(one, now))
        if found[-1].outcome is INFO:
            names[client] += clients  # as Jepsen does, so that a client keeps its remainder
            if not one.done and chance.random() < 0.6:
                lingering.append(one)
    for f, argument in last():
        one = _Open(0, f, argument, now + 1, OK)
        while not one.done:
            _advance(one, server)
        found.append(_ended(one, now + 2))
        now += 2
    return sorted(found, key=lambda one: one.inv)


def _advance(one: _Open, server: Server) -> None:
    if one.steps is None:
        one.steps = _steps(server, one)
    next(one.steps, None)


def _ended(one: _Open, now: int) -> Operation:
    if one.fate is OK and one.result is not REFUSED:
        return Operation(one.process, one.f, one.argument, one.result, one.inv, now, OK)
    if one.fate is INFO:
        return Operation(one.process, one.f, one.argument, None, one.inv, None, INFO)
    return Operation(one.process, one.f, one.argument, None, one.inv, now, FAIL)


def changed(
    history: list[Operation],
    chance: Random,
    values: Callable[[Random, Operation], Any],
    *,
    moves: bool = True,
) -> list[Operation]:
    """The history with one or two things changed: a result, an outcome, two results exchanged, an operation
    gone, one that is later. ``values``: another result for an operation. ``moves``: whether one may be
    later."""
    found = list(history)
    for _ in range(chance.choice([1, 1, 2])):
        known = [place for place, one in enumerate(found) if one.outcome is OK]
        if not known:
            return found
        place = chance.choice(known)
        one = found[place]
        match chance.randrange(7 if moves else 6):
            case 0 | 1:
                found[place] = replace(one, result=values(chance, one))
            case 2:
                other = chance.choice([at for at in known if found[at].f == one.f])
                found[place] = replace(one, result=found[other].result)
                found[other] = replace(found[other], result=one.result)
            case 3:
                found[place] = replace(one, outcome=FAIL, result=None)
            case 4:
                del found[place]
            case 5:
                for at, refused in enumerate(found):
                    if refused.outcome is FAIL and refused.f not in ("read", "dequeue", "drain", "generate"):
                        said = values(chance, replace(refused, result=refused.argument))
                        found[at] = replace(refused, outcome=OK, result=said)
                        break
            case 6:
                times = sorted(chance.sample(range(1, 40), 2))
                found[place] = replace(one, inv=one.inv + times[0], ret=(one.ret or one.inv) + times[1])
    return sorted(found, key=lambda one: one.inv)
