"""Guided schedules in which a broker comes back with another disk than it had (docs/protocol.md B48).

L leads, F1 is the follower that comes first in replica order, F2 the last; every schedule is harmless to a
right broker, which takes whoever comes back like that for one that has lost its log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.fleets.base import Disk
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.processes.processes import Kill, Restart
from wrackline.nemesis.guided.steps import Aim, GuidedStep, Heal, KeepDisk, Needs, Sleep
from wrackline.nemesis.guided.trio import APART, NOBODY, Trio


def candidate_with(
    t: Trio, disk: PowerCut, lacks: str = "the other disk does not have"
) -> tuple[GuidedStep, ...]:
    """F1 is killed; F2 is cut off and loses its power, so that L is alone in the ISR and F2 in the ELR. F2
    comes back with that disk, which ``lacks`` tells of, and cannot fetch. L is killed."""
    return (
        t.inject("g1", Kill(), t.first, role="first follower"),
        t.isr_is(t.leader, t.last),
        Sleep(1.0, f"L and F2 acknowledge what {lacks}"),
        t.inject("g2", APART, t.last, role="last replica"),
        t.inject("g3", disk, t.last, role="last replica"),
        t.isr_is(t.leader),
        t.fenced(t.last),
        Heal(("g3",)),
        t.alive(t.last),
        t.inject("g4", Kill(), t.leader, role="leader"),
        t.led_by(t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g1", "g2", "g4")),
    )


def wiped_disk(aim: Aim) -> tuple[GuidedStep, ...]:
    """B48 (``ignore_unclean``): who comes back with an empty disk is not eligible.

    As ``unclean-candidate``, but what F2 had synced is gone, too. With the defect F2 leads with an empty log.
    """
    return candidate_with(Trio.of(aim), PowerCut(Disk.WIPED))


def restored_disk(aim: Aim) -> tuple[GuidedStep, ...]:
    """B48 (``clean_by_presence``): the disk of a clean shutdown that is long past proves nothing.

    F2 is stopped cleanly, its disk is copied, and it comes back. Later, when F2 is in the ELR, the copy comes
    back in its disk's place, with the clean-shutdown file of that time. With the defect F2 leads.
    """
    t = Trio.of(aim)
    return (
        t.inject("g0", Restart(), t.last, role="last replica"),
        KeepDisk((aim.host(t.last),)),
        Heal(("g0",)),
        t.until("the full ISR", lambda state: state.full_isr),
        *candidate_with(t, PowerCut(Disk.STALE, age_s=None)),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "wiped-disk": wiped_disk,
    "restored-disk": restored_disk,
}
NEEDS: Mapping[str, Needs] = {name: Needs(replicas=3, apart=True) for name in SCHEDULES}
