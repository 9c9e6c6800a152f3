"""Draws what follows: a state to wait for, the fault at that moment, the faults that lead there, and further
ones, each timed by the effect of the one before. Pure: the same seed and the same coverage draw the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
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
    """One round: bring the state about, wait for it, inject at once; perhaps further faults by what the one
    before does. All of them are over when it ends."""

    state: str
    fault: FaultSpec
    openers: tuple[FaultSpec, ...]
    """The faults that lead to the state, in the order in which they are tried; none: nothing is known to."""
    apart: bool
    """Whether each of the bystanders is hit by an opener of its own, where all of them are to be hit."""
    pick: int
    """Settles free choices, as that of the partition."""
    opens_s: float
    """How long the opener stays after the state has come, or, of a state that comes afterwards, after its
    first effect."""
    duration_s: float
    then: int
    """How many more faults follow, each one the effect of the one before."""
    then_s: float
    """How long each of these is in force."""
    ends: str
    """What is over first: the ``openers``, so that further faults follow what comes back, the ``faults``, or
    what has the shorter ``time``."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "fault": FAULT.dump_python(self.fault, mode="json"),
            "openers": [FAULT.dump_python(one, mode="json") for one in self.openers],
            "apart": self.apart,
            "pick": self.pick,
            "opens_s": self.opens_s,
            "duration_s": self.duration_s,
            "then": self.then,
            "then_s": self.then_s,
            "ends": self.ends,
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
        pairs = (name_of(state, one) for state in self._spec.states for one in self._faults(state))
        of = {"states": list(self._spec.states), "pairs": list(dict.fromkeys(pairs))}
        return {**self.coverage.to_dict(), "of": of}

    def came(self, state: str, *, came: bool) -> None:
        """Takes down whether a state that was waited for came."""
        self._waited[state] = 0 if came else self._waited[state] + 1

    def episode(self) -> Episode:
        """A state by its weight, then of its faults one that was tried least."""
        names = list(self._spec.states)
        # What does not come, as an ISR of one where only majorities can be taken, is drawn ever less.
        weights = [STATES[one].weight / (1 + self._waited[one]) for one in names]
        state = self._chance.choices(names, weights)[0]
        openers = list(self._spec.openers.get(state, ()))
        self._chance.shuffle(openers)
        return Episode(
            state=state,
            fault=self.faults(state)[0],
            openers=tuple(openers),
            apart=self._chance.random() < _APART,
            pick=self._chance.getrandbits(32),
            opens_s=self._lasts(),
            duration_s=self._lasts(),
            then=next((n for n in range(_THEN) if self._chance.random() >= self._spec.then), _THEN),
            then_s=self._lasts(),
            ends=self._chance.choice(_ENDS),
        )

    def second(self, there: Sequence[Occurrence]) -> Iterator[tuple[Occurrence, FaultSpec]]:
        """Yields what is true, or has just become true, with a fault for it, as they are to be tried."""
        for one in self._chance.sample(there, len(there)):
            for fault in self.faults(one.state):
                yield one, fault

    def faults(self, state: str) -> list[FaultSpec]:
        """Returns the faults that may follow the state, those that were tried least first: one that is there
        twice may have been tried twice as often."""
        faults = self._faults(state)
        times = Counter(faults)
        self._chance.shuffle(faults)
        return sorted(dict.fromkeys(faults), key=lambda one: self._tried(name_of(state, one)) // times[one])

    def rests(self) -> bool:
        """Tells whether the cluster is given time to be well before the next episode."""
        return self._chance.random() < _RESTS

    def _lasts(self) -> float:
        return round(self._chance.uniform(*self._spec.duration_s), 3)

    def _faults(self, state: str) -> list[FaultSpec]:
        return [*self._spec.faults, *self._spec.also.get(state, ())]

    def _tried(self, pair: str) -> int:
        return self.coverage.pairs[pair] + self.coverage.missed[pair] + self._spec.reached.get(pair, 0)


_APART = 0.5
_ENDS = ("openers", "faults", "time")
_THEN = 3
"""No more faults follow one another."""
_RESTS = 0.8
"""The share of episodes after which the cluster may become well again first."""
