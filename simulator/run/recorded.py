"""A run that is recorded whole and judged by others, with faults that others aim: that of a specification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from wrackline.simulator.clients.client import Client, Surroundings
from wrackline.simulator.faults.driver import FaultRows
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.output.traces import Traces
from wrackline.simulator.run.session import Run

MakeClient = Callable[[int, Surroundings], Client]
"""Makes a client of its number."""


class Faults(FaultRows, Protocol):
    """The faults of a run: they are begun by ``begin``, and say themselves what is recorded of them."""

    def begin(self, run: RecordedRun) -> None:
        """Sees to it that each fault begins at its time. Called when the main phase begins."""

    def guide(self) -> None:
        """Does what follows the cluster's state, if there is such a schedule: lets time pass (``go``), and
        returns when that is over, which may be after the main phase's own end."""


class RecordedRun(Run):
    """``setup`` says nothing of faults; invariants and liveness are off. What is found ends nothing."""

    def __init__(
        self,
        setup: Setup,
        faults: Faults,
        *,
        clients: Sequence[MakeClient],
        topic_configs: Mapping[str, str],
        interrupted: Callable[[], bool],
    ) -> None:
        super().__init__(setup)
        self.traces = Traces(self.world)
        self.world.observers.append(self.traces)
        self.driver.rows = faults
        self._faults = faults
        self._makers = clients
        self._topic_configs = dict(topic_configs)
        self._interrupted = interrupted
        self.ends_ms = 0.0
        """When the main phase is over."""

    def topic_configs(self) -> dict[str, str]:
        return self._topic_configs

    def make_clients(self) -> Iterator[Client]:
        for number, make in enumerate(self._makers, 1):
            yield make(number, self.surroundings)

    def main(self) -> None:
        self.ends_ms = self.world.now_ms + self.setup.seconds * 1000
        self._faults.begin(self)
        self._faults.guide()
        self.go(lambda: False, self.ends_ms)

    def go(self, enough: Callable[[], bool], end_ms: float) -> None:
        super().go(lambda: enough() or (not self.driver.stopped and self._interrupted()), end_ms)

    def _look(self) -> None:
        """The judge reads the history when it is whole."""
        self._rows = len(self.history.events)

    @property
    def is_read_back(self) -> bool:
        """Tells whether the final read has come to its end."""
        return self.final is not None
