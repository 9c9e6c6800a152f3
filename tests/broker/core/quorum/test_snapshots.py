"""Snapshots of the metadata log (docs/protocol.md 2.12.7, KIP-630): made, cut to, fetched, damaged,
interrupted.

Every schedule runs under the invariants of the simulator: each snapshot and each state that was loaded from
one is compared with a replay of the committed log (Q11).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.broker.core.quorum.quorum import InvariantViolated, Quorum
from tests.broker.core.quorum.test_random import torment
from wrackline.broker.model.effects import Append, Effect, ResetLog, Send, Trace, WriteSnapshot
from wrackline.broker.model.events import Event
from wrackline.broker.model.messages.requests import FetchRequest
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metadata.snapshot_format import read, write
from wrackline.broker.model.types import METADATA, SnapshotId
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.world import StepRecord, World

SOON = {"metadata_log_max_records_between_snapshots": 12, "quorum_fetch_snapshot_max_bytes": 300}


class Watched(Quorum):
    """A quorum that makes a snapshot every twelve records, and what its nodes did with them."""

    def __init__(self, seed: int, voters: int = 3, **more: object) -> None:
        self.traces: list[tuple[int, str]] = []
        super().__init__(seed, voters, **{**SOON, **more})  # type: ignore[arg-type]
        self.observers.append(self._note_trace)

    def _note_trace(self, _: World, step: StepRecord) -> None:
        self.traces += [(step.node, effect.kind) for effect in step.effects if isinstance(effect, Trace)]

    def log(self, node: int) -> SimLog:
        return self.server(node).disk.logs[METADATA]

    def snapshots(self, node: int) -> list[SnapshotId]:
        return sorted(self.server(node).disk.snapshots)

    def image_of(self, node: int) -> ClusterImage:
        core = self.server(node).core  # type: ignore[attr-defined]
        return core.committed if node in self.controllers else core.image

    def went(self, node: int, kind: str) -> bool:
        return (node, kind) in self.traces

    def grow(self, node: int) -> None:
        """Until the node's log no longer begins where it does now."""
        start = self.log(node).start
        self.until(lambda: self.log(node).start > start, 20_000, f"a later start of the log of {node}")

    def level(self, *nodes: int) -> None:
        """They know everything that the active controller has committed; and the same."""
        end = self.image.metadata_offset
        for node in nodes:
            self.until(lambda node=node: self.image_of(node).metadata_offset >= end, 10_000, f"{node} level")  # type: ignore[misc]


def followers(world: Quorum) -> list[int]:
    return [node for node in world.ids if node != world.active]


def test_the_log_goes_where_two_snapshots_hold_it_and_a_restart_needs_no_refetch() -> None:
    world = Watched(1, brokers=2)
    world.until(world.all_unfenced, 10_000)
    assert world.create("a")
    nodes = [*world.ids, *world.brokers]
    for node in nodes:
        world.grow(node)
        kept = world.snapshots(node)
        assert len(kept) == 2, "the newest and the one before it"
        assert world.log(node).start == kept[0].end_offset
    for node in [*followers(world), *world.brokers]:
        end = world.log(node).leo
        before = world.image_of(node).copy()
        world.kill(node)
        asked: list[int] = []

        def listen(_: World, step: StepRecord, node: int = node, asked: list[int] = asked) -> None:
            for effect in step.effects if step.node == node else ():
                if isinstance(effect, Send) and isinstance(effect.request, FetchRequest):
                    asked += [p.fetch_offset for p in effect.request.partitions if p.tp == METADATA]

        world.observers.append(listen)
        record = world.start(node)
        assert not any(isinstance(effect, ResetLog | Append) for effect in record.effects)
        world.level(node)
        world.observers.remove(listen)
        assert asked[0] == end, "it goes on where it was"
        assert before.topics_by_name.keys() <= world.image_of(node).topics_by_name.keys()


@pytest.mark.parametrize("away", ["controller", "broker"])
def test_who_was_away_for_longer_than_the_log_fetches_a_snapshot(away: str) -> None:
    world = Watched(2, brokers=2)
    world.until(world.all_unfenced, 10_000)
    assert world.create("before")
    node = followers(world)[0] if away == "controller" else 2
    world.power(node)
    end = world.log(node).leo
    assert world.create("while")
    leader = world.active
    world.until(lambda: world.log(leader).start > end, 30_000, "a log that begins later than that one ends")
    assert world.create("last")
    world.start(node)
    world.level(node)
    assert world.went(node, "snapshot_load")
    assert not world.went(leader, "snapshot_load")
    assert world.log(node).start > end
    assert set(world.image_of(node).topics_by_name) == {"before", "while", "last"}
    if away == "broker":
        world.until(world.all_unfenced, 10_000)
        return
    # It can lead with what it has: the others are gone, but for one that is as far.
    world.kill(leader)
    world.wait_active(other_than=leader)
    assert world.create("after")


def test_a_follower_that_loads_counts_as_there_and_a_new_leader_serves_the_rest() -> None:
    """Pieces of 60 bytes: the leader is killed in the middle of them."""
    world = Watched(3, 5, brokers=1, quorum_fetch_snapshot_max_bytes=60)
    world.until(world.all_unfenced, 10_000)
    leader = world.wait_active()
    node = followers(world)[0]
    world.kill(node)
    end = world.end_of(node)
    for number in range(5):
        assert world.create(f"t{number}")
    for each in [other for other in world.ids if other != node]:
        world.until(lambda each=each: world.log(each).start > end, 30_000, "everyone's log to begin later")  # type: ignore[misc]
    world.start(node)
    pieces: list[int] = []

    def count(_: World, step: StepRecord) -> None:
        pieces.extend(
            effect.request.position
            for effect in step.effects
            if isinstance(effect, Send) and isinstance(effect.request, FetchSnapshotRequest)
        )

    world.observers.append(count)
    world.until(lambda: len(pieces) > 4, 10_000, "some pieces")
    world.kill(leader)
    world.wait_active(other_than=leader)
    world.level(node)
    assert world.went(node, "snapshot_load")
    assert 0 in pieces[4:], "the next leader was asked from the beginning"
    world.start(leader)
    world.until(world.settled, 10_000)


@pytest.mark.parametrize("how", ["kill", "power"])
def test_a_crash_while_a_snapshot_is_written_leaves_the_older_one(how: str) -> None:
    world = Watched(4)
    world.wait_active()
    node = followers(world)[0]
    world.grow(node)
    old = world.snapshots(node)
    for _ in range(6):
        disk = world.server(node).disk
        world.until(lambda disk=disk: bool(disk.unfinished), 20_000, "a snapshot in the making")  # type: ignore[misc]
        (world.kill if how == "kill" else world.power)(node)
        assert old[-1] in world.snapshots(node)
        world.start(node)
        world.level(node)
        old = world.snapshots(node)
    assert world.log(node).start <= old[-1].end_offset


def test_a_crash_between_a_fetched_snapshot_and_the_log_it_replaces() -> None:
    world = Watched(5)
    leader = world.wait_active()
    node = followers(world)[0]
    world.kill(node)
    end = world.end_of(node)
    world.until(lambda: world.log(leader).start > end, 30_000, "a later start")
    world.start(node)

    def before_the_log_goes(_: Event, effects: Sequence[Effect]) -> int | None:
        found = [at for at, effect in enumerate(effects) if isinstance(effect, ResetLog)]
        return found[0] if found else None

    world.cut_process(node, before_the_log_goes, "power")
    world.until(lambda: not world.server(node).up, 10_000, "the cut")
    assert world.log(node).leo == end < world.snapshots(node)[-1].end_offset
    record = world.start(node)
    assert any(isinstance(effect, ResetLog) for effect in record.effects), "the start finishes it"
    world.level(node)
    world.until(world.settled, 10_000)


def test_a_damaged_snapshot_gives_way_to_the_one_before_it() -> None:
    world = Watched(6)
    world.wait_active()
    node = followers(world)[0]
    world.grow(node)
    world.run(300)
    world.kill(node)
    disk = world.server(node).disk
    disk.abandon_snapshots(world._snapshot_random)
    older, newest = world.snapshots(node)[-2:]
    data = bytearray(disk.snapshots[newest])
    data[-3] ^= 1
    disk.snapshots[newest] = bytes(data)
    world.start(node)
    assert world.went(node, "snapshot_damaged")
    assert newest not in disk.snapshots
    world.level(node)
    assert older.end_offset == world.log(node).start
    world.until(world.settled, 10_000)


def test_a_log_that_no_snapshot_leads_up_to_is_refused() -> None:
    world = Watched(7)
    world.wait_active()
    node = followers(world)[0]
    world.grow(node)
    world.kill(node)
    world.server(node).disk.snapshots.clear()
    world.observers.remove(world.checker)
    world.start(node)
    said = world.server(node).exits[-1]
    assert said.code == 1
    assert "no snapshot of what was before it can be read" in said.reason


@pytest.mark.parametrize("damage", ["no snapshot", "changed snapshots", "another history"])
def test_a_broker_whose_copy_cannot_be_read_fetches_it_anew(damage: str) -> None:
    """The controllers have what it lacks; a controller would have lost what it acknowledged."""
    world = Watched(11, brokers=2)
    world.until(world.all_unfenced, 10_000)
    assert world.create("a")
    world.grow(2)
    world.kill(2)
    snapshots = world.server(2).disk.snapshots
    if damage == "no snapshot":
        snapshots.clear()
    elif damage == "changed snapshots":
        for snapshot, data in snapshots.items():
            snapshots[snapshot] = data[:-1]
    else:
        for snapshot in sorted(snapshots):
            image = read(snapshots.pop(snapshot), snapshot)
            other = SnapshotId(snapshot.end_offset, snapshot.epoch - 1)
            snapshots[other] = write(image, other, 0)
    world.start(2)
    assert world.went(2, "metadata_anew")
    world.level(2)
    assert "a" in world.image_of(2).topics_by_name
    assert not world.server(2).exits
    world.until(world.all_unfenced, 10_000)
    assert world.create("b"), "and it goes on"
    world.grow(2)
    world.kill(2)
    world.start(2)
    world.level(2)


@pytest.mark.parametrize("seed", range(6))
def test_snapshots_under_every_fault(seed: int) -> None:
    world = Watched(seed, 3, metadata_log_max_records_between_snapshots=8)
    torment(world, seed, rounds=60)
    made = {node for node, kind in world.traces if kind == "snapshot_write"}
    assert made == set(world.ids)
    assert min(world.log(node).start for node in world.ids) > 0


def test_snap_gap_drops_what_no_snapshot_holds() -> None:
    """B48, KAFKA-14238."""
    world = Watched(8, brokers=1, defects=("snap_gap",))
    world.until(world.all_unfenced, 10_000)

    def busy() -> None:
        for number in range(100):
            world.create(f"t{number}")

    with pytest.raises(InvariantViolated, match="Q09"):
        busy()


def test_only_the_whole_file_is_a_snapshot() -> None:
    world = Watched(9, brokers=3)
    world.until(world.all_unfenced, 10_000)
    world.create_topic("t", 4)
    image = world.image
    snapshot = SnapshotId(image.metadata_offset + 1, 3)
    data = write(image, snapshot, 0)
    assert read(data, snapshot) == image
    for size in range(0, len(data), 7):
        with pytest.raises(ValueError):
            read(data[:size], snapshot)
    for at in range(12, len(data), 11):
        bent = bytearray(data)
        bent[at] ^= 4
        try:
            assert read(bytes(bent), snapshot) == image, "bytes 12 to 16 of a batch are outside its checksum"
        except ValueError:
            continue
        assert at < 21
    for other in (SnapshotId(snapshot.end_offset, 4), SnapshotId(snapshot.end_offset - 1, 3)):
        with pytest.raises(ValueError):
            read(data, other)


def test_effects_come_in_an_order_that_a_power_cut_may_break_anywhere() -> None:
    """No event both writes a snapshot and drops what it is to hold."""
    world = Watched(10, brokers=1)

    def look(_: World, step: StepRecord) -> None:
        kinds = {type(effect) for effect in step.effects}
        assert not (WriteSnapshot in kinds and ResetLog in kinds and step.kind != "boot")

    world.observers.append(look)
    world.run(15_000)
    assert world.snapshots(world.active)
