"""Guided schedules that move the coordinator of groups.

Whoever leads a partition of ``__consumer_offsets`` coordinates the groups of it. The topic must have one
partition (``offsets.topic.num.partitions: 1``), so that it is known which.
"""

from __future__ import annotations

from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.shapes import Shape
from wrackline.nemesis.guided.scene import refuse_shared
from wrackline.nemesis.guided.steps import Aim, Await, GuidedError, GuidedStep, Heal, Inject, Sleep
from wrackline.systems.base import PartitionState

OFFSETS = "__consumer_offsets"
WITHOUT_HEARING_S = 3.0
"""How long the old coordinator, or the watermark of the new one, stays where it is."""


def deposed_coordinator(aim: Aim) -> tuple[GuidedStep, ...]:
    """The coordinator of a group is cut off from brokers and controllers, and not from clients.

    Another broker is elected, and takes commits. The old one does not hear of it until it is healed. Asked
    what the group has committed, it answers; nobody in Kafka holds a lease for reads.
    """
    coordinator = _coordinator(aim)
    return (
        Inject("g1", Partition(Shape.ISOLATE), (aim.host(coordinator.leader),), "coordinator(group)"),
        _elected_after(coordinator, coordinator.leader),
        Sleep(WITHOUT_HEARING_S, "the new coordinator takes commits, and the old one is asked"),
        Heal(("g1",)),
        _full_isr(),
    )


def new_coordinator(aim: Aim) -> tuple[GuidedStep, ...]:
    """A new coordinator has all of its log, and its high watermark does not move.

    A follower learns the watermark with its next fetch, so of the last commits that the old coordinator
    reported as successful the new one knows the records, and not that they are committed. The coordinator is
    cut off from all. Before another one is elected, the two brokers that are left are cut off from each
    other, and both hear the controller: the watermark of the new coordinator cannot move. It moves when the
    two see each other again.

    Needs commits that are a quarter of a second apart. Where the next one is under way, its record brings the
    watermark along; a follower that has waited half a second for records (``replica.fetch.wait.max.ms``) has
    learned it without any.
    """
    refuse_shared(aim)
    coordinator = _coordinator(aim)
    followers = tuple(node for node in coordinator.replicas if node != coordinator.leader)
    hosts = tuple(map(aim.host, followers))
    return (
        Inject("g1", Partition(Shape.ISOLATE), (aim.host(coordinator.leader),), "coordinator(group)"),
        Inject("g2", Partition(Shape.LINK), hosts, f"followers of {OFFSETS}-0"),
        _elected_after(coordinator, coordinator.leader),
        Sleep(WITHOUT_HEARING_S, "the new coordinator is asked while its watermark stands still"),
        Heal(("g2",)),
        Sleep(WITHOUT_HEARING_S, "it is asked when its watermark has moved"),
        Heal(("g1",)),
        _full_isr(),
    )


def _coordinator(aim: Aim) -> PartitionState:
    """Raises GuidedError unless there is one coordinator, with three replicas in its ISR."""
    aim.healthy(replicas=3)
    partitions = [one for one in aim.state.partitions if one.topic == OFFSETS]
    if len(partitions) != 1:
        raise GuidedError(
            f"{OFFSETS} has {len(partitions)} partitions: system.config needs offsets.topic.num.partitions: 1"
        )
    return Aim(aim.state, aim.nodes, OFFSETS, 0).healthy(replicas=3)


def _elected_after(before: PartitionState, node: int) -> Await:
    def met(now: PartitionState) -> bool:
        return now.leader not in (-1, node) and now.leader_epoch > before.leader_epoch

    return Await("another coordinator", OFFSETS, (0,), met)


def _full_isr() -> Await:
    return Await(f"the full ISR of {OFFSETS}-0", OFFSETS, (0,), lambda state: state.full_isr)
