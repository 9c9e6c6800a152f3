"""Controllers alone in virtual time, under the simulator's invariants (docs/invariants.md, Q01 to Q11)."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.metadata import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from wrackline.broker.model.types import METADATA
from wrackline.simulator.invariants.checker import Checker
from wrackline.simulator.world.world import StepRecord, World, WorldOptions

FAST = {
    "quorum_election_timeout_ms": 200,
    "quorum_fetch_timeout_ms": 400,
    "quorum_election_backoff_max_ms": 200,
    "quorum_request_timeout_ms": 300,
    "quorum_fetch_wait_max_ms": 100,
    "session_timeout_ms": 3_000,
    "noop_interval_ms": 100,
}


class InvariantViolated(AssertionError):
    """A step of the quorum broke an invariant."""


class StrictChecker(Checker):
    """Ends the run at the first violation."""

    def __call__(self, world: World, step: StepRecord) -> None:
        super().__call__(world, step)
        if self.found:
            raise InvariantViolated(str(self.violations[0]))


class Quorum(World):
    def __init__(
        self,
        seed: int = 0,
        voters: int = 3,
        *,
        brokers: int = 0,
        defects: tuple[str, ...] = (),
        flush_ms: tuple[float, float] = (0.5, 6.0),
        **more: object,
    ) -> None:
        options = WorldOptions(
            brokers=brokers,
            controllers=voters,
            defects=defects,
            controller={**FAST, **more},
            flush_min_ms=flush_ms[0],
            flush_max_ms=flush_ms[1],
        )
        self.leaders: dict[int, int] = {}
        """By epoch."""
        self.epochs: dict[int, int] = {}
        """By controller."""
        super().__init__(seed, options)
        self.checker = StrictChecker(self)
        self.observers += [self.checker, self._note]

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.controllers)

    def _note(self, _: World, step: StepRecord) -> None:
        server = self.controllers.get(step.node)
        if server is not None and server.core is not None:
            raft = server.core.raft
            self.epochs[step.node] = raft.epoch
            if raft.leads:
                self.leaders[raft.epoch] = step.node

    # --- what is done --------------------------------------------------------------------------------------

    @property
    def active(self) -> int:
        """Node id of the active controller, 0 while there is none."""
        found = self.active_controller()
        return 0 if found is None else found.id

    def wait_active(self, *, other_than: int = 0, within_ms: float = 10_000) -> int:
        self.until(lambda: self.active not in (0, other_than), within_ms, "an active controller")
        return self.active

    def create(self, name: str, node: int | None = None) -> bool:
        """Ask the active controller for a topic without partitions' brokers; was it said to be done?"""
        asked = self.ask(node or self.active, CreateTopicsRequest((NewTopic(name, 1, 1),), 2_000), 3_000)
        self.until(lambda: asked.done, 5_000, "an answer")
        response = asked.response
        if not isinstance(response, CreateTopicsResponse):
            return False
        return response.topics[0].error is ErrorCode.none

    def settled(self) -> bool:
        """Everyone that is up has the same log and knows it committed."""
        up = [server for server in self.controllers.values() if server.core is not None]
        ends = {(s.core.raft.log.leo, s.core.raft.epoch) for s in up if s.core}
        return len(ends) == 1 and all(s.core.raft.log.high_watermark >= s.core.raft.log.leo - 1 for s in up)

    def end_of(self, node: int) -> int:
        log = self.controllers[node].disk.logs.get(METADATA)
        return 0 if log is None else log.leo
