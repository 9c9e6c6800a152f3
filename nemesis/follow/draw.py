"""Draws what follows: a state to wait for, the fault at that moment, the fault that leads there, and a second
one that the first one's effect times. Pure: the same seed and the same coverage draw the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.follow.coverage import Coverage
from wrackline.nemesis.spec import FAULT, FollowSpec
from wrackline.nemesis.targets.states import STATES, Occurrence


def name_of(state: str, fault: FaultSpec) -> str:
    """Returns a pair's name: ``isr-of-one > power-cut subject``."""
    return f"{state} > {title(fault)}"


def title(fault: FaultSpec) -> str:
    """Returns ``power-cut subject``, or ``messages leader (Fetch)``."""
    apis = getattr(fault, "apis", ())
    narrow = " between brokers" if getattr(fault, "controllers", True) is False else ""
    named = f" ({', '.join(apis)})" if apis else ""
    return f"{fault.fault} {fault.target}{narrow}{named}"


@dataclass(frozen=True, slots=True)
class Episode:
    """One round: bring the state about, wait for it, inject at once; perhaps a second fault by what the first
    one does. All of them are over when it ends."""

    state: str
    fault: FaultSpec
    opener: FaultSpec | None
    """The fault that leads to the state; None: nothing is known to."""
    pick: int
    """Settles free choices, as that of the partition."""
    opens_s: float
    """How long the opener stays after the state has come, or, of a state that comes afterwards, after its
    first effect."""
    duration_s: float
    then: bool
    """Whether a second fault follows the first one's effect."""
    then_s: float
    """How long the second one is in force."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "fault": FAULT.dump_python(self.fault, mode="json"),
            "opener": None if self.opener is None else FAULT.dump_python(self.opener, mode="json"),
            "pick": self.pick,
            "opens_s": self.opens_s,
            "duration_s": self.duration_s,
            "then": self.then,
            "then_s": self.then_s,
        }


class Draw:
    """Prefers pairs that neither this run nor earlier ones (``FollowSpec.reached``) have reached."""

    def __init__(self, spec: FollowSpec, seed: int) -> None:
        self._spec = spec
        self._chance = random.Random(f"follow {seed}")
        self.coverage = Coverage()
        self._waited: Counter[str] = Counter()
        """State -> how often in a row it was waited for in vain."""

    def to_dict(self) -> dict[str, Any]:
        """The coverage, and ``of``: all states and pairs that there are to be reached, by name."""
        pairs = [name_of(state, one) for state in self._spec.states for one in self._faults(state)]
        return {**self.coverage.to_dict(), "of": {"states": list(self._spec.states), "pairs": pairs}}

    def came(self, state: str, *, came: bool) -> None:
        """Takes down whether a state that was waited for came."""
        self._waited[state] = 0 if came else self._waited[state] + 1

    def episode(self) -> Episode:
        """A state by its weight, then of its faults one that was tried least."""
        names = list(self._spec.states)
        # What does not come, as an ISR of one where only majorities can be taken, is drawn ever less.
        weights = [STATES[one].weight / (1 + self._waited[one]) for one in names]
        state = self._chance.choices(names, weights)[0]
        openers = self._spec.openers.get(state, ())
        return Episode(
            state=state,
            fault=self._least_tried(state),
            opener=self._chance.choice(openers) if openers else None,
            pick=self._chance.getrandbits(32),
            opens_s=self._lasts(),
            duration_s=self._lasts(),
            then=self._chance.random() < self._spec.then,
            then_s=self._lasts(),
        )

    def second(self, there: Sequence[Occurrence]) -> tuple[Occurrence, FaultSpec]:
        """Of what is true, or has just become true, with a fault for it."""
        one = self._chance.choice(list(there))
        return one, self._least_tried(one.state)

    def rests(self) -> bool:
        """Tells whether the cluster is given time to be well before the next episode."""
        return self._chance.random() < _RESTS

    def _lasts(self) -> float:
        return round(self._chance.uniform(*self._spec.duration_s), 3)

    def _least_tried(self, state: str) -> FaultSpec:
        faults = self._faults(state)
        tries = [self._tried(name_of(state, one)) for one in faults]
        least = min(tries)
        return self._chance.choice([one for one, count in zip(faults, tries, strict=True) if count == least])

    def _faults(self, state: str) -> list[FaultSpec]:
        return [*self._spec.faults, *self._spec.also.get(state, ())]

    def _tried(self, pair: str) -> int:
        return self.coverage.pairs[pair] + self.coverage.missed[pair] + self._spec.reached.get(pair, 0)


_RESTS = 0.8
"""The share of episodes after which the cluster may become well again first."""
