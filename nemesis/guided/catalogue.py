"""Guided schedules: short sequences of steps that follow the cluster's state instead of the clock.

For histories that random schedules hit too rarely (docs/protocol.md 4.4). A schedule is a pure function from
the state of the cluster to steps; `wrackline.nemesis.runner` carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pkgutil import resolve_name

from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.guided import coordinators, eras, transactions
from wrackline.nemesis.guided.scene import needs, on_hosts
from wrackline.nemesis.guided.steps import Aim, Await, GuidedStep, Heal, Inject, Needs, Sleep
from wrackline.scenarios import SCENES

_OF_ZOOKEEPER = "wrackline.zookeeper.nemesis.schedules"
"""Schedules for Apache Kafka of that era are found by name: nothing here imports what stands on it."""


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
    **{name: partial(on_hosts, scene) for name, scene in SCENES.items()},
    "power-cut-lossy": power_cut_lossy,
    "late-end-txn": transactions.late_end_txn,
    "deposed-coordinator": coordinators.deposed_coordinator,
    "new-coordinator": coordinators.new_coordinator,
    **resolve_name(f"{_OF_ZOOKEEPER}:SCHEDULES"),
    **eras.SCHEDULES,
}
NEEDS: Mapping[str, Needs] = {
    **{name: needs(scene) for name, scene in SCENES.items()},
    "power-cut-lossy": Needs(replicas=2),
    "late-end-txn": Needs(replicas=1),
    "deposed-coordinator": Needs(replicas=3),
    "new-coordinator": Needs(replicas=3, apart=True),
    **resolve_name(f"{_OF_ZOOKEEPER}:NEEDS"),
    **eras.NEEDS,
}
"""What each schedule refuses when its time has come, so that it can be refused before."""
