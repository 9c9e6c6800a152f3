"""Make a failing run smaller while it still fails the same oracle: fewer faults, fewer clients, less time.

Each fault and client draws from a generator of its own, so what is left does as before, as far as the cluster
lets it. Delta debugging on the faults (halves, then single ones), then clients one by one, then the length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.run import Result, run

MOST_RUNS = 150


@dataclass(slots=True)
class Shrunk:
    """The smallest run found that fails in the same way, and what it took to find it."""

    result: Result
    runs: int
    faults_before: int
    faults_after: int


def shrink(failing: Result) -> Shrunk:
    """``failing`` must have a violation. Raises ValueError otherwise."""
    if failing.violation is None:
        raise ValueError("this run did not fail")
    return _Shrinker(failing).shrink()


class _Shrinker:
    def __init__(self, failing: Result) -> None:
        assert failing.violation is not None
        self._oracle = failing.violation.oracle
        self._best = failing
        self._runs = 0

    def shrink(self) -> Shrunk:
        before = len(self._best.setup.plan())
        self._end_at_once()
        self._faults()
        self._shorten()
        self._clients()
        self._faults()
        self._shorten()
        return Shrunk(self._best, self._runs, before, len(self._best.setup.plan()))

    def _try(self, setup: Setup) -> bool:
        """Does it fail the same oracle? Then it is the best so far."""
        if self._runs >= MOST_RUNS or setup == self._best.setup:
            return False
        self._runs += 1
        result = run(setup)
        if result.violation is None or result.violation.oracle != self._oracle:
            return False
        self._best = result
        return True

    def _end_at_once(self) -> None:
        """Ends the run at once: what comes after the violation is not needed."""
        assert self._best.violation is not None
        setup, at_s = self._best.setup, self._best.violation.at_ms / 1000
        if 0 < at_s < setup.seconds:
            self._try(replace(setup, seconds=round(at_s, 1), keep_faults=_ids(setup)))

    def _faults(self) -> None:
        kept = [fault.id for fault in self._best.setup.plan()]
        size = max(len(kept) // 2, 1)
        while kept and self._runs < MOST_RUNS:
            for without in _without(kept, size):
                if self._try(replace(self._best.setup, keep_faults=tuple(without))):
                    kept = list(without)
                    break
            else:
                if size == 1:
                    return
                size = max(size // 2, 1)

    def _clients(self) -> None:
        setup = self._best.setup
        kept = _numbers(setup)
        for number in reversed(kept):
            fewer = tuple(other for other in _numbers(self._best.setup) if other != number)
            self._try(replace(self._best.setup, keep_clients=fewer))

    def _shorten(self) -> None:
        """The end of the main phase, closer and closer to the last fault that is left."""
        for share in (0.4, 0.6, 0.75, 0.9):
            while self._try(self._cut_to(share)):
                pass

    def _cut_to(self, share: float) -> Setup:
        setup = self._best.setup
        return replace(setup, seconds=round(setup.seconds * share, 1), keep_faults=_ids(setup))


def _ids(setup: Setup) -> tuple[int, ...]:
    return tuple(fault.id for fault in setup.plan())


def _without(items: Sequence[int], size: int) -> Iterator[list[int]]:
    """The list without each run of ``size`` of its items."""
    for at in range(0, len(items), size):
        yield [*items[:at], *items[at + size :]]


def _numbers(setup: Setup) -> list[int]:
    if setup.keep_clients is not None:
        return list(setup.keep_clients)
    return list(range(1, setup.producers + setup.consumers + setup.askers + 1))
