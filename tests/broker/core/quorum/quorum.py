"""Controllers alone in virtual time, watched: after every step the Raft invariants
(docs/invariants.md) are looked at.

election safety     one node, and one life of it, leads an epoch
log matching        two logs that have a record of the same epoch at an offset are the same up to there
leader completeness a new leader has everything that was ever committed
durability          what is committed never changes: every high watermark says the same records
monotonic epoch     no controller's epoch goes down, whatever restarts
"""

from __future__ import annotations

from bisect import bisect_right

from kio.schema.errors import ErrorCode

from wrackline.broker.model.effects import Trace
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from wrackline.broker.model.types import METADATA
from wrackline.simulator.world.disk_log import SimLog
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


class Broken(AssertionError):
    """An invariant does not hold."""


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
        self.leaders: dict[int, tuple[int, int]] = {}
        """By epoch: node and incarnation."""
        self.ghost: list[tuple[int, bytes]] = []
        """(epoch in which it was committed, batch) of everything ever committed, one entry per batch."""
        self.ghost_ends: list[int] = []
        self.epochs: dict[int, int] = {}
        self.checks = 0
        super().__init__(seed, options)
        self.observers.append(self._look)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(self.controllers)

    # --- what is checked -----------------------------------------------------------------------------------

    def _look(self, _: World, step: StepRecord) -> None:
        server = self.controllers.get(step.node)
        if server is None or server.core is None:
            return
        self.checks += 1
        raft = server.core.raft
        if raft.epoch < self.epochs.get(step.node, -1):
            raise Broken(f"node {step.node} went back from epoch {self.epochs[step.node]} to {raft.epoch}")
        self.epochs[step.node] = raft.epoch
        log = server.disk.logs.get(METADATA)
        if any(isinstance(e, Trace) and e.kind == "raft_conflict" for e in step.effects):
            raise Broken(f"node {step.node} has heard of two leaders of epoch {raft.epoch}")
        if log is None:
            return
        if raft.leads:
            me = (step.node, server.incarnation)
            known = self.leaders.setdefault(raft.epoch, me)
            if known != me:
                raise Broken(f"epoch {raft.epoch} is led by {known} and by {me} (node, life)")
        self._commit(step.node, log, raft.log.high_watermark, raft.epoch)
        if raft.leads and step.effects:
            self._complete(step.node, log, raft.epoch)

    def _commit(self, node: int, log: SimLog, high_watermark: int, epoch: int) -> None:
        """Each batch below a high watermark is the one that was committed there first."""
        for stored in log.batches[bisect_right(log.ends, self.ghost_ends[-1] if self.ghost_ends else 0) :]:
            if stored.end > high_watermark:
                break
            self.ghost.append((epoch, stored.data))
            self.ghost_ends.append(stored.end)
        if log.start < high_watermark <= log.leo and not self._same(log, high_watermark):
            raise Broken(
                f"node {node}: the committed batch that ends at {high_watermark} is not the one that was "
                "committed there before"
            )

    def _same(self, log: SimLog, end: int) -> bool:
        """Has ``log`` the committed batch that ends there?"""
        here, there = bisect_right(log.ends, end) - 1, bisect_right(self.ghost_ends, end) - 1
        return here >= 0 and log.ends[here] == end and log.batches[here].data == self.ghost[there][1]

    def _complete(self, node: int, log: SimLog, epoch: int) -> None:
        """A leader that was deposed and does not know it need not have what was committed after."""
        last = len(self.ghost) - 1
        while last >= 0 and self.ghost[last][0] > epoch:
            last -= 1
        if last < 0 or self.ghost_ends[last] <= log.start:
            return
        if not self._same(log, self.ghost_ends[last]):
            raise Broken(
                f"node {node} leads without what was committed: batch {last}, up to {self.ghost_ends[last]}"
            )

    def check_matching(self) -> None:
        """Log matching over all disks; at the end of a schedule."""
        logs = [
            server.disk.logs[METADATA] for server in self.controllers.values() if METADATA in server.disk.logs
        ]
        for one in logs:
            for other in logs:
                start = max(one.start, other.start)
                both = list(
                    zip(
                        one.batches[bisect_right(one.ends, start) :],
                        other.batches[bisect_right(other.ends, start) :],
                        strict=False,
                    )
                )
                same = [a.data == b.data for a, b in both]
                agree = [a.header.leader_epoch == b.header.leader_epoch and a.end == b.end for a, b in both]
                if True in agree:
                    last = len(agree) - 1 - agree[::-1].index(True)
                    if not all(same[: last + 1]):
                        raise Broken("two logs agree at an offset and differ below it")

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
