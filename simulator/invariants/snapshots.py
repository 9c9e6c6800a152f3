"""Invariants of snapshots of the metadata log (docs/protocol.md 2.12.7; docs/invariants.md; KIP-630), at
controllers and brokers.

Nothing is said of a quorum one of whose voters has lost its disk or got an old one back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from wrackline.broker.model.batches.batch import values_of
from wrackline.broker.model.effects import ResetLog, WriteSnapshot
from wrackline.broker.model.events import Boot
from wrackline.broker.model.metadata.image import ClusterImage, ImageError
from wrackline.broker.model.metadata.records import decode
from wrackline.broker.model.metadata.snapshot_format import read
from wrackline.broker.model.types import METADATA
from wrackline.simulator.invariants.invariant import Invariant, Wrong, invariant
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import COMMITTED, DISKS, SNAPSHOTS, ObservedStep
from wrackline.simulator.world.disk_log import Stored

_REMEMBERED = 512
"""Images of the last so many commits are at hand; an older one is made anew from the log."""


def _resets(seen: ObservedStep) -> bool:
    return any(isinstance(effect, ResetLog) and effect.tp == METADATA for effect in seen.step.effects)


@invariant("Q09", "snapshot at log start", "SnapshotAtLogStart, KAFKA-14238", SNAPSHOTS | DISKS)
def snapshot_at_log_start(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    log = cluster.log(seen.node, METADATA)
    if log is None or log.start == 0:
        return
    ends = [snapshot.end_offset for snapshot in cluster.world.server(seen.node).disk.snapshots]
    if max(ends, default=0) < log.start:
        yield METADATA, f"the log begins at {log.start}, snapshots end at {sorted(ends)}"


@invariant("Q10", "a leader never loads a snapshot", "LeaderNeverLoadSnapshot", SNAPSHOTS)
def leader_never_loads_snapshot(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    controller = cluster.controller(seen.node)
    if controller is not None and controller.raft.leads and _resets(seen):
        yield METADATA, f"the leader of epoch {controller.raft.epoch} began its log anew"


class _SnapshotSaysCommitted:
    """The state in a snapshot, and the one a node has after it loaded one, are those of a replay of the
    log."""

    def __init__(self) -> None:
        self._batches: list[Stored] = []
        self._ends: list[int] = []
        self._image = ClusterImage()
        """A replay of ``_batches``."""
        self._recent: dict[int, ClusterImage] = {}
        """By end offset."""
        self._lost = False
        """What was committed is not one history, as another invariant says: there is nothing to compare
        with."""

    def __call__(self, cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
        if cluster.replaced.intersection(cluster.world.controllers):
            self._lost = True
        if seen.committed:
            self._follow(cluster, seen)
        if self._lost or not seen.snapshots:
            return
        for effect in seen.step.effects:
            if isinstance(effect, WriteSnapshot):
                try:
                    image = read(effect.data, effect.id)
                except ValueError as error:
                    yield METADATA, f"{effect.id} cannot be read: {error}"
                    return
                yield from self._differs(image, f"the snapshot {effect.id}")
        if isinstance(seen.step.event, Boot) or _resets(seen):
            controller, broker = cluster.controller(seen.node), cluster.broker(seen.node)
            held = None if controller is None else controller.committed
            held = held if broker is None else broker.image
            if held is not None:
                yield from self._differs(held, "the state after loading a snapshot")

    def _follow(self, cluster: ObservedCluster, seen: ObservedStep) -> None:
        log, end = cluster.log(seen.node, METADATA), cluster.metadata.committed_end
        if log is None or self._lost:
            return
        for at in range(bisect_right(log.ends, self._ends[-1] if self._ends else 0), len(log.batches)):
            stored = log.batches[at]
            if stored.end > end:
                break
            try:
                _apply(self._image, stored)
            except ImageError:
                self._lost = True
                return
            self._batches.append(stored)
            self._ends.append(stored.end)
            self._recent[stored.end] = self._image.copy()
            if len(self._recent) > _REMEMBERED:
                del self._recent[next(iter(self._recent))]

    def _differs(self, image: ClusterImage, what: str) -> Wrong:
        end = image.metadata_offset + 1
        expected = self._replayed(end)
        if expected is None:
            yield METADATA, f"{what} ends at {end}, inside a batch or past what is committed"
        elif image != expected or _orders(image) != _orders(expected):
            differs = _first(image, expected)
            yield METADATA, f"{what} is not the state that the log up to {end} gives: {differs}"

    def _replayed(self, end: int) -> ClusterImage | None:
        if end in self._recent:
            return self._recent[end]
        if end and end not in self._ends:
            return None
        image = ClusterImage()
        for stored in self._batches[: bisect_right(self._ends, end)]:
            _apply(image, stored)
        return image


SNAPSHOT_SAYS_COMMITTED = Invariant(
    "Q11",
    "snapshots say what was committed",
    "ConsistentCommittedData, docs/protocol.md 2.12.7",
    COMMITTED | SNAPSHOTS,
    _SnapshotSaysCommitted,
)


def _apply(image: ClusterImage, stored: Stored) -> None:
    image.apply_all((offset, decode(value)) for offset, value in values_of(stored.header, stored.data))


def _orders(image: ClusterImage) -> list[Sequence[object]]:
    """Decisions go through these in order, so the order is part of the state."""
    return [
        list(image.brokers),
        list(image.topics_by_name),
        list(image.topics_by_id),
        *(list(topic.partitions) for topic in image.topics_by_name.values()),
    ]


def _first(image: ClusterImage, wanted: ClusterImage) -> str:
    for name in ClusterImage.__slots__:
        here, there = getattr(image, name), getattr(wanted, name)
        if here != there:
            return f"{name} is {here}, not {there}"
    return "the order of its parts is another"
