"""A guided schedule for the first replication design, profile zk08: replicas race for the leader's node in
ZooKeeper, and who runs later loses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.network import Partition
from wrackline.nemesis.faults.processes import Kill, Restart
from wrackline.nemesis.faults.shapes import Direction, Link, Shape
from wrackline.nemesis.guided.steps import Aim, Await, GuidedStep, Heal, Inject, Needs, Sleep
from wrackline.systems.base import PartitionState


def b01_race(aim: Aim) -> tuple[GuidedStep, ...]:
    """docs/protocol.md B01 where a race decides: as ``b01-truncate-to-hw``, but F1 must win it.

    With leader L and followers F1, F2; nobody loses its power:

    1. F2 goes deaf to L and F1: its last fetch makes records committed without its knowing.
    2. F2 is cut off from ZooKeeper, so that it hears late that nobody leads, and does not run.
    3. L is stopped cleanly, which ends its session at once. F1 wins, and waits for F2 before it opens.
    4. F2 hears from ZooKeeper again, follows F1, and truncates to its own high watermark.
    5. F1 is killed before it has opened. F2 is in the ISR as ZooKeeper has it, and leads.

    Needs a session that outlives steps 2 to 4, and a leader_election_wait_ms that outlasts them.
    """
    chosen = aim.healthy(replicas=3)
    leader = chosen.leader
    first, second = [node for node in chosen.replicas if node != leader][:2]
    name = f"{aim.topic}-{aim.partition}"
    deaf = Partition(Shape.ISOLATE, controllers=False, direction=Direction.IN)
    unaware = Partition(Shape.ISOLATE, links=(Link.BROKER_ZOOKEEPER,))

    def led_by(node: int) -> Callable[[PartitionState], bool]:
        return lambda state: state.leader == node

    return (
        Inject("g1", deaf, (aim.host(second),), f"last replica of {name}"),
        Sleep(0.3, "the records that the deaf follower's last fetch committed are acknowledged"),
        Inject("g2", unaware, (aim.host(second),), f"last replica of {name}"),
        Inject("g3", Restart(), (aim.host(leader),), f"leader({name})"),
        Await(f"node {first} leads {name}", aim.topic, (aim.partition,), led_by(first)),
        Heal(("g2",)),
        Sleep(3.0, "the deaf follower learns of its new leader and truncates"),
        Inject("g4", Kill(), (aim.host(first),), f"leader({name})"),
        Await(f"node {second} leads {name}", aim.topic, (aim.partition,), led_by(second)),
        Heal(("g1", "g3", "g4")),
        Await(f"the full ISR of {name}", aim.topic, (aim.partition,), lambda state: state.full_isr),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {"b01-race": b01_race}
NEEDS: Mapping[str, Needs] = {"b01-race": Needs(replicas=3, zookeeper=True)}
