"""Guidance of a search: plans that have led somewhere new are changed and tried again.

A run is kept if a rule decided in a way, or a partition came to a state, that few runs before it had seen.
Some runs change the plan of one that was kept, those with what is rarest first; the others are new seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random

from wrackline.history.model import Event
from wrackline.simulator.coverage.probes import Way, recorder
from wrackline.simulator.coverage.states import changes_of_state
from wrackline.simulator.faults.setup import Setup

_RARE = 3
"""Runs that have seen a way; from then on it is nothing that a run is kept for."""
_SHARE = 0.2
"""Of runs that change a plan."""
_DEEPEST = 8
"""Changes of one plan after another."""


@dataclass(slots=True)
class _Kept:
    setup: Setup
    ways: frozenset[Way]
    tries: int = 0


class Guide:
    """Chooses the runs of a search. ``fresh`` gives the set-up of a new seed."""

    def __init__(self, fresh: Callable[[int], Setup], first_seed: int) -> None:
        self._fresh, self._next_seed = fresh, first_seed
        recorder()  # before the first run
        self._draw = Random(f"{first_seed}/guide")
        self._kept: list[_Kept] = []
        self.counts: Counter[Way] = Counter()

    def choose(self) -> Setup:
        recorder().take()  # of runs that are none of its own
        if self._kept and self._draw.random() < _SHARE:
            return self._changed()
        self._next_seed += 1
        return self._fresh(self._next_seed - 1)

    def _changed(self) -> Setup:
        some = self._draw.sample(self._kept, min(4, len(self._kept)))
        best = max(some, key=lambda one: sum(1 / self.counts[way] for way in one.ways) / (1 + one.tries))
        best.tries += 1
        return replace(best.setup, graft=(*best.setup.graft, self._draw.randrange(1 << 20)))

    def note(self, setup: Setup, met: frozenset[Way], events: Iterable[Event]) -> None:
        """Takes up what the run of the set-up has shown: the ways in which rules decided, and its history."""
        ways = met | frozenset(changes_of_state(events))
        rare = frozenset(way for way in ways if self.counts[way] < _RARE)
        self.counts.update(ways)
        if rare and len(setup.graft) < _DEEPEST:
            self._kept.append(_Kept(setup, rare))
