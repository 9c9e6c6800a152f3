"""Long histories of a FIFO queue whose values repeat."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, replace

from wrackline.checkers.models import Operation, Outcome


@dataclass(frozen=True)
class Drawn:
    """How a history is drawn."""

    operations: int
    values: int
    """So many different ones."""
    unknown: float = 0.0
    """Share of operations that never return; their client is replaced."""
    empty: bool = True
    """Whether dequeues that find nothing are answered so; else they fail."""
    clients: int = 10
    seed: int = 1


def drawn(wanted: Drawn) -> list[Operation]:
    """A linearizable history of concurrent clients, by a queue that is simulated."""
    rng = random.Random(wanted.seed)
    held: deque[int] = deque()
    open_ones: dict[int, Operation] = {}
    done: list[Operation] = []
    begun = clock = 0
    while begun < wanted.operations or open_ones:
        clock += 1
        if begun < wanted.operations and len(open_ones) < wanted.clients and rng.random() < 0.5:
            f, value = ("enqueue", rng.randrange(wanted.values)) if rng.random() < 0.5 else ("dequeue", None)
            open_ones[begun] = Operation(begun, f, value, None, clock, None, Outcome.INFO)
            begun += 1
        elif open_ones:
            number = rng.choice(list(open_ones))
            one = open_ones[number]
            if one.outcome is Outcome.INFO:
                open_ones[number] = _happened(one, held, empty=wanted.empty)
                continue
            del open_ones[number]
            lost = rng.random() < wanted.unknown
            done.append(replace(one, outcome=Outcome.INFO, result=None) if lost else replace(one, ret=clock))
    return done


def _happened(one: Operation, held: deque[int], *, empty: bool) -> Operation:
    if one.f == "enqueue":
        held.append(one.argument)
        return replace(one, result=one.argument, outcome=Outcome.OK)
    if held:
        return replace(one, result=held.popleft(), outcome=Outcome.OK)
    return replace(one, result="empty", outcome=Outcome.OK) if empty else replace(one, outcome=Outcome.FAIL)


def with_garbage(history: list[Operation]) -> tuple[list[Operation], int]:
    """One dequeue, at 80 %, gives what nobody put in; where it is."""
    gets = _gets(history)
    place = gets[len(gets) * 8 // 10]
    return [*history[:place], replace(history[place], result="never"), *history[place + 1 :]], place


def with_exchange(history: list[Operation]) -> list[Operation]:
    """At 80 %, two dequeues one after the other have each other's values: it is nearly always wrong."""
    gets = _gets(history)
    found = list(history)
    for at in range(len(gets) * 8 // 10, len(gets)):
        for other in reversed(gets[at + 1 : at + 30]):
            one, later = history[gets[at]], history[other]
            if one.result != later.result and (one.ret or 0) < later.inv:
                found[gets[at]] = replace(one, result=later.result)
                found[other] = replace(later, result=one.result)
                return found
    return found


def _gets(history: list[Operation]) -> list[int]:
    return [
        place
        for place, one in enumerate(history)
        if one.f == "dequeue" and one.outcome is Outcome.OK and one.result != "empty"
    ]
