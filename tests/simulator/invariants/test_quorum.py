"""Each invariant of the controller quorum accepts a good state and rejects one that was spoilt for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from tests.simulator.invariants.runs import Run
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.batches import batch
from wrackline.broker.model.effects import (
    DeleteSnapshot,
    Effect,
    Reply,
    ResetLog,
    Trace,
    Truncate,
    WriteSnapshot,
)
from wrackline.broker.model.events import Event, RequestReceived
from wrackline.broker.model.messages.quorum import VoteRequest, VoteResponse
from wrackline.broker.model.metadata.snapshot_format import write
from wrackline.broker.model.types import METADATA, SnapshotId
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.catalogue import INVARIANTS
from wrackline.simulator.invariants.checker import Checker
from wrackline.simulator.world.disk_log import SimLog, Stored
from wrackline.simulator.world.world import StepKind, StepRecord, World, WorldOptions

NODES = (101, 102, 103)


class Quorum:
    """Three controllers, one of which leads; everything is committed and known to be."""

    def __init__(self) -> None:
        self.world = World(3, WorldOptions(controllers=3))
        self.checker = Checker(self.world)
        self.world.observers.append(self.checker)
        self.world.create_topic("t", 1)
        self.world.run(3_000)
        active = self.world.active_controller()
        assert active is not None
        self.leader = active.id
        self.follower = next(node for node in NODES if node != self.leader)
        for node in NODES:
            self.step(node)
        self.expect()

    def core(self, node: int) -> Controller:
        core = self.world.controllers[node].core
        assert core is not None
        return core

    def log(self, node: int) -> SimLog:
        return self.world.controllers[node].disk.logs[METADATA]

    def step(
        self, node: int, effects: Sequence[Effect] = (), event: Event | None = None, kind: StepKind = "handle"
    ) -> None:
        more = [Trace("looked at", {}), *effects]
        self.checker(self.world, StepRecord(99, self.world.now_ms, kind, node, event, more))

    def spoil(self, node: int) -> None:
        """Another record where the first one of the quorum's leader was."""
        log = self.log(node)
        header = log.batches[1].header
        data = batch.build([b"other"] * header.count, header.base_offset, header.leader_epoch, 0)
        log.batches[1] = Stored(batch.parse_header(data), data)
        self.checker.observer.metadata.match[node] = 0

    def expect(self, *ids: str) -> None:
        assert [violation.id for violation in self.checker.violations] == list(ids), self.checker.violations


def q01_two_leaders_of_one_epoch(s: Quorum) -> None:
    raft = s.core(s.follower).raft
    raft.role, raft.leadership = RaftRole.LEADER, s.core(s.leader).raft.leadership
    raft.state = replace(raft.state, leader_id=s.follower)
    s.step(s.follower)


def q02_a_follower_has_another_record(s: Quorum) -> None:
    s.spoil(s.follower)
    s.step(s.follower)


def q02_a_follower_cuts_what_is_committed(s: Quorum) -> None:
    s.step(s.follower, [Truncate(METADATA, 1)])


def q03_the_leader_lacks_what_is_committed(s: Quorum) -> None:
    s.core(s.leader).raft.log.high_watermark = 0
    s.checker.leave_out("Q06")
    s.spoil(s.leader)
    s.step(s.leader)


def q04_one_disk_only(s: Quorum) -> None:
    for node in NODES:
        if node != s.leader:
            s.log(node).synced = 1
    s.step(s.leader, kind="down")


def q05_an_epoch_is_forgotten(s: Quorum) -> None:
    raft = s.core(s.follower).raft
    raft.state = replace(raft.state, epoch=raft.epoch - 1)
    s.step(s.follower)


def q06_a_high_watermark_goes_back(s: Quorum) -> None:
    s.core(s.follower).raft.log.high_watermark -= 1
    s.step(s.follower)


def q07_two_votes(s: Quorum) -> None:
    epoch = s.core(s.follower).raft.epoch
    for number, candidate in ((-1, 101), (-2, 102)):
        asked = VoteRequest(
            "c", s.follower, epoch, candidate, s.world.controllers[candidate].disk.directory_id, 0, 0
        )
        s.step(s.follower, event=RequestReceived(number, asked))
        s.step(s.follower, [Reply(number, VoteResponse(ErrorCode.none, epoch, -1, granted=True))])


def q08_a_follower_of_nobody(s: Quorum) -> None:
    raft = s.core(s.follower).raft
    raft.state = replace(raft.state, leader_id=-1)
    s.step(s.follower)


def q09_no_snapshot_leads_up_to_the_log(s: Quorum) -> None:
    s.log(s.follower).start_at(3)
    s.world.controllers[s.follower].disk.snapshots.clear()
    s.step(s.follower, [DeleteSnapshot(SnapshotId(3, 0))])


def q10_a_leader_begins_anew(s: Quorum) -> None:
    s.step(s.leader, [ResetLog(METADATA, 3)])


def q11_a_snapshot_lacks_something(s: Quorum) -> None:
    image = s.core(s.follower).committed.copy()
    image.next_producer_id += 1
    snapshot = SnapshotId(image.metadata_offset + 1, 0)
    s.step(s.follower, [WriteSnapshot(snapshot, write(image, snapshot, 0))])


def q11_a_state_is_in_another_order(s: Quorum) -> None:
    image = s.core(s.follower).committed
    image.brokers = dict(sorted(image.brokers.items(), reverse=True))
    s.step(s.follower, [ResetLog(METADATA, 3)])


SPOILERS: dict[str, Callable[[Quorum], None]] = {
    name: what for name, what in sorted(globals().items()) if name[0] == "q" and name[1:3].isdigit()
}


@pytest.mark.parametrize("name", SPOILERS)
def test_a_spoilt_quorum_is_caught_by_its_invariant_alone(name: str) -> None:
    quorum = Quorum()
    SPOILERS[name](quorum)
    quorum.expect(name[:3].upper())


def test_every_quorum_invariant_has_a_spoilt_state() -> None:
    kinds = {kind.id for kind in INVARIANTS if kind.id.startswith("Q")}
    assert kinds == {name[:3].upper() for name in SPOILERS}


def test_clean_runs_of_a_quorum_violate_nothing() -> None:
    epochs = 0
    for seed in range(6):
        run = Run(seed, controllers=3)
        assert run.go(20_000) == [], (seed, run.done)
        run.recover()
        run.world.run(3_000)
        epochs += max(c.core.raft.epoch for c in run.world.controllers.values() if c.core is not None)
    assert epochs > 6, f"leaders changed: {epochs}"
