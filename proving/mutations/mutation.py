"""A mutation puts one anomaly into a correct history, changing as little as that takes.

What else must then be found is *implied*: by the anomaly itself (``IMPLIED``, with the reason) or by this way
of making it (``also``). Nothing more may be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wrackline.proving.model.knobs import Final, Knobs
from wrackline.proving.mutations.edit import Edit

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
    knobs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What else its histories have: fields of ``Knobs``."""

    def suited(self, knobs: Knobs) -> Knobs:
        """Returns the knobs for histories that may have a place for the mutation."""
        knobs = replace(knobs, final=Final.COMPLETE if self.final else Final.NONE)
        if not self.transactions:
            return replace(knobs, **self.knobs)
        return replace(knobs, transactional=knobs.producers, latency_ms=8.0, think_ms=1.0, aborted=0.05)

    @property
    def findings(self) -> frozenset[str]:
        """Every anomaly that must be found, and nothing else may be."""
        return closure({self.anomaly, *self.also})


def closure(anomalies: set[str]) -> frozenset[str]:
    """Returns the anomalies with all that they imply."""
    result, fresh = set(anomalies), set(anomalies)
    while fresh:
        fresh = {one for anomaly in fresh for one in IMPLIED.get(anomaly, ())} - result
        result |= fresh
    return frozenset(result)


MUTATIONS: dict[str, Mutation] = {}
"""By name; each module of mutations adds its own."""


def mutation(
    anomaly: str,
    what: str,
    *,
    also: Mapping[str, str] | None = None,
    final: bool = True,
    transactions: bool = False,
    knobs: Mapping[str, Any] | None = None,
) -> Callable[[Callable[[Edit], bool]], Callable[[Edit], bool]]:
    """Registers the decorated function as a mutation; its name is the function's."""

    def register(apply: Callable[[Edit], bool]) -> Callable[[Edit], bool]:
        name = apply.__name__.replace("_", "-")
        if name in MUTATIONS:
            raise ValueError(f"two mutations are called {name}")
        MUTATIONS[name] = Mutation(name, anomaly, what, apply, also or {}, final, transactions, knobs or {})
        return apply

    return register
