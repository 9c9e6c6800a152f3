"""New brokers take over their share (docs/protocol.md Z09, 2.16): a plan, made without any I/O.

Minimal movement: a replica moves only from an old broker to a new one, one at a time from the most loaded to
the least loaded, until their loads differ by at most one. Then some of the moved partitions get their new
replica as the preferred leader, which costs no data, so that the new brokers take their share of leading too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.model.values import dataclass

Replicas = tuple[NodeId, ...]
Racks = Mapping[NodeId, str | None]


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's reassignment."""

    tp: TopicPartition
    before: Replicas
    after: Replicas

    @property
    def copied(self) -> int:
        """Returns how many replicas must be copied."""
        return len(set(self.after) - set(self.before))


def plan_growth(
    assignments: Mapping[TopicPartition, Replicas],
    new: Iterable[NodeId],
    old: Iterable[NodeId] = (),
    racks: Racks | None = None,
) -> tuple[Move, ...]:
    """The moves that give ``new`` brokers their share. ``old``: brokers that stay, beside all that have
    replicas.

    Racks are kept: no partition comes to fewer different racks than it has.
    """
    added = sorted(set(new))
    current = dict(assignments)
    load = Counter(dict.fromkeys((*old, *added), 0))
    load.update(broker for replicas in current.values() for broker in replicas)
    existing = sorted(set(load) - set(added))
    while (step := _next_step(current, load, existing, added, racks or {})) is not None:
        tp, source, destination = step
        current[tp] = tuple(destination if b == source else b for b in current[tp])
        load[source] -= 1
        load[destination] += 1
    _share_leading(assignments, current, existing, added)
    return tuple(Move(tp, before, current[tp]) for tp, before in assignments.items() if current[tp] != before)


def _next_step(
    current: Mapping[TopicPartition, Replicas],
    load: Counter[NodeId],
    existing: list[NodeId],
    added: list[NodeId],
    racks: Racks,
) -> tuple[TopicPartition, NodeId, NodeId] | None:
    """(partition, from, to): the widest gap that a move can narrow, None when there is none wider than
    one."""
    pairs = sorted(
        ((load[target] - load[source], source, target) for source in existing for target in added),
    )
    for gap, source, target in pairs:
        if gap >= -1:
            return None
        movable = [
            (replicas[0] == source, tp)
            for tp, replicas in current.items()
            if source in replicas and target not in replicas and _keeps_racks(replicas, source, target, racks)
        ]
        if movable:
            return min(movable)[1], source, target
    return None


def _keeps_racks(replicas: Replicas, source: NodeId, target: NodeId, racks: Racks) -> bool:
    if racks.get(target) is None:
        return True
    after = {racks.get(target if b == source else b) for b in replicas}
    return len(after) >= len({racks.get(b) for b in replicas})


def _share_leading(
    before: Mapping[TopicPartition, Replicas],
    current: dict[TopicPartition, Replicas],
    existing: list[NodeId],
    added: list[NodeId],
) -> None:
    """Among moved partitions only: another order of the others would be one more reassignment."""
    leading = Counter(dict.fromkeys((*existing, *added), 0))
    leading.update(replicas[0] for replicas in current.values() if replicas)
    floor = len(current) // max(len(leading), 1)
    for broker in added:
        while leading[broker] < floor:
            mine = [
                (-leading[replicas[0]], tp)
                for tp, replicas in current.items()
                if replicas != before[tp]
                and broker in replicas
                and replicas[0] not in added
                and leading[replicas[0]] > floor
            ]
            if not mine:
                break
            tp = min(mine)[1]
            first = current[tp][0]
            current[tp] = (broker, *(b for b in current[tp] if b != broker))
            leading[first] -= 1
            leading[broker] += 1
