"""Histories of a FIFO queue whose values repeat."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from tests.checkers.exact.search.drawn import Kind, Move, drawn
from wrackline.checkers.models import Operation, Outcome
from wrackline.checkers.models.queues import FifoQueue


@dataclass(frozen=True)
class Long:
    """How a history is drawn."""

    operations: int
    values: int
    """So many different ones."""
    unknown: float = 0.0
    """Share of operations that never return; their client is replaced."""
    empty: bool = True
    """Whether dequeues that find nothing are answered so; else they fail."""

    def drawn(self) -> list[Operation]:
        answers = [*(["empty"] if self.empty else []), *range(self.values)]
        return drawn(queue(self.values, answers), random.Random(1), self.operations, 10, unknown=self.unknown)


def queue(values: int, answers: list[Any], puts: float = 0.5) -> Kind:
    """A FIFO queue of so many values."""

    def move(rng: random.Random) -> Move:
        if rng.random() < puts:
            return "enqueue", rng.randrange(values), [None]
        return "dequeue", None, answers

    return Kind(FifoQueue(), move)


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
