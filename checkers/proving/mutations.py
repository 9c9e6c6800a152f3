"""Mutations: each puts one anomaly into a correct history, changing as little as that takes.

What else must then be found is *implied*: by the anomaly itself (``IMPLIED``, with the reason) or by this way
of making it (``also``). Nothing more may be found. ``mutate`` gives None where a history has no place for the
anomaly: take the next seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from wrackline.checkers.proving.edit import Edit
from wrackline.checkers.proving.knobs import Final, Knobs
from wrackline.checkers.proving.made import Made
from wrackline.history.model import Event

IMPLIED: Mapping[str, Mapping[str, str]] = {
    "inconsistent-offset": {"not-linearizable": "no order gives one offset two values"},
    "append-order": {"not-linearizable": "the order of the log contradicts real time"},
    "session-order": {"append-order": "a process goes on after its earlier send was acked"},
    "stale-read": {"not-linearizable": "an end offset contradicts an ack before it"},
    "watermark-regression": {"not-linearizable": "an end offset contradicts what was shown before it"},
    "future-read": {"not-linearizable": "a record was there before anybody sent it"},
}
"""Anomaly -> anomalies that follow from it, and why."""


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    anomaly: str
    what: str
    apply: Callable[[Edit], bool]
    """Changes the history; False where there is no place for it (and then nothing was changed)."""
    also: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Besides what the anomaly implies: what this way of making it brings along, and why."""
    final: bool = True
    """Wants a history with a complete final read; else one without any."""
    transactions: bool = False
    """Wants a history of transactions; else one without any."""

    def suited(self, knobs: Knobs) -> Knobs:
        """For histories that may have a place for it."""
        knobs = replace(knobs, final=Final.COMPLETE if self.final else Final.NONE)
        if not self.transactions:
            return knobs
        return replace(knobs, transactional=knobs.producers, latency_ms=8.0, think_ms=1.0, aborted=0.05)

    @property
    def findings(self) -> frozenset[str]:
        """Every anomaly that must be found, and nothing else may be."""
        return closure({self.anomaly, *self.also})


def closure(anomalies: set[str]) -> frozenset[str]:
    """With all that is implied."""
    found, fresh = set(anomalies), set(anomalies)
    while fresh:
        fresh = {one for anomaly in fresh for one in IMPLIED.get(anomaly, ())} - found
        found |= fresh
    return frozenset(found)


_MUTATIONS: dict[str, Mutation] = {}


def mutation(
    anomaly: str,
    what: str,
    *,
    also: Mapping[str, str] | None = None,
    final: bool = True,
    transactions: bool = False,
) -> Callable[[Callable[[Edit], bool]], Callable[[Edit], bool]]:
    def register(apply: Callable[[Edit], bool]) -> Callable[[Edit], bool]:
        name = apply.__name__.replace("_", "-")
        if name in _MUTATIONS:
            raise ValueError(f"two mutations are called {name}")
        _MUTATIONS[name] = Mutation(name, anomaly, what, apply, also or {}, final, transactions)
        return apply

    return register


def mutations() -> Iterator[Mutation]:
    """All of them, in the order of the anomalies' families."""
    from wrackline.checkers.proving import (
        mutate_cycles,
        mutate_groups,
        mutate_integrity,
        mutate_loss,
        mutate_order,
        mutate_visibility,
    )

    modules = (mutate_loss, mutate_integrity, mutate_order, mutate_visibility, mutate_cycles, mutate_groups)
    for module in modules:
        yield from (one for one in _MUTATIONS.values() if one.apply.__module__ == module.__name__)


def mutate(one: Mutation, made: Made) -> list[Event] | None:
    """The history with the anomaly in it, numbered anew; None where it has no place for it."""
    edit = Edit(made)
    return edit.numbered() if one.apply(edit) else None
