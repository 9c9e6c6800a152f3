"""Guided schedules in which an administrator changes the configuration or the replicas while a fault is in
force (docs/protocol.md 4.2). L leads, F1 is the follower that comes first in replica order, F2 the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.admin_steps import Entity
from wrackline.nemesis.faults.cluster.admin import ChangeConfig
from wrackline.nemesis.faults.cluster.growth import Reassign
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.guided.steps import Aim, GuidedError, GuidedStep, Heal, Needs, Sleep
from wrackline.nemesis.guided.trio import APART, NOBODY, Trio

TAKEN_BACK_S = 12.0
"""So long a reassignment is given that should take a second."""


def _free_broker(t: Trio) -> int:
    """A broker without a replica. Raises GuidedError where there is none."""
    mine = (t.leader, t.first, t.last)
    free = [id_ for id_, node in t.aim.nodes.items() if node.is_broker and not node.spare and id_ not in mine]
    if not free:
        raise GuidedError(f"this schedule moves a replica of {t.name} to a fourth broker: fleet.brokers is 3")
    return free[0]


def smaller_min_isr(aim: Aim) -> tuple[GuidedStep, ...]:
    """B32 (``elr_kept_on_config``): with a smaller MinISR nobody stays eligible who is out of the ISR.

    F1 leaves the ISR, then F2, which is in the ELR. An administrator makes MinISR 1, and L acknowledges
    alone. L is killed. With the defect F2 is elected; a right controller lets the partition wait for L.
    """
    t = Trio.of(aim)
    one = ChangeConfig(Entity.TOPIC, (("min.insync.replicas", "1"),))
    return (
        t.inject("g1", APART, t.first, role="first follower"),
        t.isr_is(t.leader, t.last),
        Sleep(0.5, "clients go on with L and F2"),
        t.inject("g2", APART, t.last, role="last replica"),
        t.isr_is(t.leader),
        t.inject("g3", one, t.leader, role="topic"),
        Sleep(2.0, "L acknowledges alone"),
        t.inject("g4", Kill(), t.leader, role="leader"),
        t.led_by(t.first, t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g1", "g2", "g4")),
        Heal(("g3",)),
    )


def moved_alone(aim: Aim) -> tuple[GuidedStep, ...]:
    """B36 (``reassign_no_minisr``): a reassignment does not end with fewer than MinISR replicas in the ISR.

    F1 and F2 are cut off from L and leave the ISR. L's replica moves to a fourth broker, which catches up and
    joins. With the defect the move is complete: the fourth is alone in the ISR and L deletes its log. The
    fourth loses its power. Needs four brokers and a profile without ELR.
    """
    t = Trio.of(aim)
    fourth = _free_broker(t)
    return (
        t.inject("g1", APART, t.first, t.last, role="followers"),
        t.isr_is(t.leader),
        t.inject("g2", Reassign(), t.leader, role="leader"),
        t.until(f"node {fourth} in the ISR", lambda state: fourth in state.isr),
        Sleep(1.5, "L gives its replica up, if it does"),
        t.inject("g3", PowerCut(), fourth, role="added replica"),
        t.until(f"node {fourth} leads no more", lambda state: state.leader != fourth),
        Heal(("g3",)),
        t.led_by(t.leader, fourth),
        Sleep(1.0, "F1 and F2 may follow"),
        Heal(("g1",)),
        t.until("the full ISR", lambda state: len(state.isr) >= len(state.replicas)),
        Heal(("g2",)),
    )


def touched(aim: Aim) -> tuple[GuidedStep, ...]:
    """B58 (``touch_wipes_elr``): a change that does not concern the ISR leaves the ELR as it is.

    F1 leaves the ISR, then F2, which is in the ELR: it has all that is committed. A move of F1's replica to a
    fourth broker begins; the fourth is cut off, so that nothing else changes. L loses its power. F2 is
    elected at once; with the defect nobody is. Needs four brokers.
    """
    t = Trio.of(aim)
    fourth = _free_broker(t)
    return (
        t.inject("g1", APART, t.first, fourth, role="first follower, fourth broker"),
        t.isr_is(t.leader, t.last),
        Sleep(0.5, "clients go on with L and F2"),
        t.inject("g2", APART, t.last, role="last replica"),
        t.isr_is(t.leader),
        t.inject("g3", Reassign(), t.first, role="first follower"),
        Sleep(0.5, "the move has begun"),
        t.inject("g4", PowerCut(), t.leader, role="leader"),
        t.led_by(t.last),
        Sleep(1.0, "F2 leads"),
        Heal(("g1", "g2", "g4")),
        t.until("L and F2 in the ISR", lambda state: {t.leader, t.last} <= set(state.isr)),
        Heal(("g3",)),
    )


def moved(aim: Aim) -> tuple[GuidedStep, ...]:
    """B44 (``added_needs_epoch``): F2's replica moves to a fourth broker while nothing is wrong.

    With the defect the fourth begins to follow only with a new leader epoch, which no move brings: the move
    is not complete in time. Needs four brokers.
    """
    t = Trio.of(aim)
    _free_broker(t)
    return (
        t.inject("g1", Reassign(settle_s=TAKEN_BACK_S), t.last, role="last replica"),
        Sleep(1.0, "the added replica catches up"),
        Heal(("g1",)),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "smaller-min-isr": smaller_min_isr,
    "moved-alone": moved_alone,
    "moved": moved,
    "touched": touched,
}
NEEDS: Mapping[str, Needs] = {
    name: Needs(replicas=3, apart=True, brokers=0 if name == "smaller-min-isr" else 4) for name in SCHEDULES
}
