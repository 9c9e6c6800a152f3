"""Guided schedules: short sequences of steps that follow the cluster's state instead of the clock.

For histories that random schedules hit too rarely (docs/protocol.md 4.4). A schedule is a pure function from
the state of the cluster to steps; `wrackline.nemesis.runner` carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.faults.shapes import Direction, Shape
from wrackline.nemesis.guided import (
    defects,
    eras,
    logs,
    operators,
    outages,
    races,
    swaps,
    transactions,
    zookeeper_era,
)
from wrackline.nemesis.guided.steps import Aim, Await, GuidedStep, Heal, Inject, Needs, Sleep
from wrackline.systems.base import PartitionState


def b01_truncate_to_hw(aim: Aim) -> tuple[GuidedStep, ...]:
    """docs/protocol.md B01, the loss that KIP-101 ended: a new follower truncates to its high watermark and
    is elected before it could fetch again.

    With leader L and followers F1, F2 (F1 comes first in replica order, so it is elected first):

    1. F2 goes deaf to L and F1: what they send to it is dropped, what it sends arrives. A follower learns the
       high watermark one fetch response late, so the fetch it has under way makes records committed, and
       acknowledged, without its ever knowing that they are. L cannot move on without F2: those stay the last.
    2. L is killed before it can drop F2 from the ISR. F1 is elected, ISR [F1, F2]; F2 becomes follower in the
       new epoch. With the defect it truncates to its high watermark, and being deaf it cannot fetch again.
    3. F1 is killed. F2 is elected, from the ISR, or from the ELR when F1 had time to drop it.
    4. Everything is healed. The acknowledged records are on F1 and L only, which now follow F2.

    Where L is one of the controllers too, it is started again between 2 and 3, cut off from the brokers
    alone: without it F1's death would leave no majority of three controllers, and nobody could be elected. It
    cannot fetch, so it stays out of the ISR.

    Without the defect F2 still holds them when it is elected. Needs load, three replicas, and a
    replica.lag.time.max of a second or more (step 2).
    """
    chosen = aim.healthy(replicas=3)
    leader = chosen.leader
    first, second = [node for node in chosen.replicas if node != leader][:2]
    name = f"{aim.topic}-{aim.partition}"
    partitions = aim.like(chosen)

    def led_by(node: int) -> Callable[[PartitionState], bool]:
        return lambda state: state.leader == node

    deaf = Partition(Shape.ISOLATE, controllers=False, direction=Direction.IN)
    back: tuple[GuidedStep, ...] = ()
    last = ("g1", "g2", "g3")
    if aim.nodes[leader].is_controller:
        apart = Partition(Shape.ISOLATE, controllers=False)
        back = (Inject("g4", apart, (aim.host(leader),), f"former leader({name})"), Heal(("g2",)))
        last = ("g1", "g3", "g4")
    return (
        Inject("g1", deaf, (aim.host(second),), f"last replica of {name}"),
        Sleep(0.3, "the records that the deaf follower's last fetch committed are acknowledged"),
        Inject("g2", Kill(), (aim.host(leader),), f"leader({name})"),
        Await(f"node {first} leads {name}", aim.topic, partitions, led_by(first)),
        Sleep(0.5, "the deaf follower learns of its new leader and truncates"),
        *back,
        Inject("g3", Kill(), (aim.host(first),), f"leader({name})"),
        Await(f"node {second} leads {name}", aim.topic, partitions, led_by(second)),
        Heal(last),
        Await(f"the full ISR of {name}", aim.topic, partitions, lambda state: state.full_isr),
    )


def acks1_leader_power_cut(aim: Aim) -> tuple[GuidedStep, ...]:
    """With acks=1: what only the leader has is acknowledged, then the leader loses its power.

    The leader is cut off from every other host for a moment, so its followers (and the ISR) stay behind while
    clients go on writing to it.
    """
    chosen = aim.healthy(replicas=2)
    leader = aim.host(chosen.leader)
    name = f"{aim.topic}-{aim.partition}"
    old = chosen.leader
    partitions = aim.like(chosen)
    return (
        Inject("g1", Partition(Shape.ISOLATE), (leader,), f"leader({name})"),
        Sleep(0.7, "the leader acknowledges what no follower can fetch"),
        Inject("g2", PowerCut(), (leader,), f"leader({name})"),
        Await(
            f"another leader of {name} than node {old}",
            aim.topic,
            partitions,
            lambda state: state.leader not in (-1, old),
        ),
        Sleep(1.0, "clients write to the new leader"),
        Heal(("g1", "g2")),
        Await(f"the full ISR of {name}", aim.topic, partitions, lambda state: state.full_isr),
    )


def power_cut_lossy(aim: Aim) -> tuple[GuidedStep, ...]:
    """One broker's power is cut under load: its unsynced bytes are gone. With acks=all nothing acknowledged
    is.

    A follower is hit: nobody waits for an election, so it is behind, and lossy, for certain.
    """
    chosen = aim.healthy(replicas=2)
    name = f"{aim.topic}-{aim.partition}"
    follower = next(node for node in reversed(chosen.replicas) if node != chosen.leader)
    partitions = (aim.partition,)
    return (
        Inject("g1", PowerCut(), (aim.host(follower),), f"follower({name})"),
        Sleep(3.0, "the cluster goes on without it"),
        Heal(("g1",)),
        Await(f"the full ISR of {name}", aim.topic, partitions, lambda state: state.full_isr),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "b01-truncate-to-hw": b01_truncate_to_hw,
    "acks1-leader-power-cut": acks1_leader_power_cut,
    "power-cut-lossy": power_cut_lossy,
    "late-end-txn": transactions.late_end_txn,
    **defects.SCHEDULES,
    **races.SCHEDULES,
    **logs.SCHEDULES,
    **operators.SCHEDULES,
    **outages.SCHEDULES,
    **swaps.SCHEDULES,
    **zookeeper_era.SCHEDULES,
    **eras.SCHEDULES,
}
NEEDS: Mapping[str, Needs] = {
    "b01-truncate-to-hw": Needs(replicas=3),
    "acks1-leader-power-cut": Needs(replicas=2),
    "power-cut-lossy": Needs(replicas=2),
    "late-end-txn": Needs(replicas=1),
    **defects.NEEDS,
    **races.NEEDS,
    **logs.NEEDS,
    **operators.NEEDS,
    **outages.NEEDS,
    **swaps.NEEDS,
    **zookeeper_era.NEEDS,
    **eras.NEEDS,
}
"""What each schedule refuses when its time has come, so that it can be refused before."""
