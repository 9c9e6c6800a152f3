"""Guided schedules that stop something for longer than it should be stopped, or stop everything
(docs/protocol.md 1.2, 4.3). L leads, F1 is the follower that comes first in replica order, F2 the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.disks.disk_errors import Intercepted
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.processes.processes import Kill, Pause, Restart
from wrackline.nemesis.guided.steps import (
    Aim,
    ElectUncleanly,
    Flush,
    GuidedStep,
    Heal,
    Inject,
    Needs,
    Sleep,
)
from wrackline.nemesis.guided.trio import ALONE, APART, NOBODY, Trio

FAILING_WRITE = Intercepted("disk-errors", ("pwritev", "pwritev2"), "error=EIO", every=65_535)
"""The next write to a file fails; strace counts no further than to that number."""
SESSION_S = 3.5
"""Longer than the session of a broker in the suites that use it, which is 2 s."""


def dead_leader(aim: Aim) -> tuple[GuidedStep, ...]:
    """B33 (``lke_no_liveness``): who led last is not elected while it is down.

    As ``last-leader``, but F1 is back while L has no power yet. With the defect the controller elects L all
    the same, and L, when it is back without what it had not synced, stays the leader. Balanced recovery waits
    for both and compares.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(1.0, "L and F1 acknowledge without F2"),
        t.inject("g2", Kill(), t.first, role="first follower"),
        t.isr_is(t.leader),
        t.inject("g3", PowerCut(), t.leader, role="leader"),
        t.led_by(NOBODY),
        Heal(("g2",)),
        t.alive(t.first),
        Sleep(2.0, "F1 is there, and L is not"),
        Heal(("g3",)),
        t.led_by(t.leader, t.first),
        Sleep(0.5, "the other one follows"),
        *t.healed(("g1",)),
    )


def fenced_together(aim: Aim) -> tuple[GuidedStep, ...]:
    """B24 (``batch_fence``): sessions that end together are fenced one after the other.

    L and F1 are killed, and the only controller is paused while both sessions end, and F2's does not. With
    the defect the second fencing undoes the first, and L leads on paper; a right controller elects F2, which
    goes on alone. Needs MinISR 1 and a session timeout of 4 s.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", Kill(), t.leader, t.first, role="leader and first follower"),
        Sleep(1.6, "the session of F2 goes on"),
        Inject("g2", Pause(), (t.controller,), "controller"),
        Sleep(2.6, "the sessions of L and F1 end"),
        Heal(("g2",)),
        Sleep(8.0, "F2 leads, if it is elected"),
        *t.healed(("g1",)),
    )


def shrunk_in_silence(aim: Aim) -> tuple[GuidedStep, ...]:
    """B43 (``no_adv_on_isr``): what waited for F2 is committed when F2 is out of the ISR.

    F2 is cut off, and all clients wait for it. When it has left the ISR, L and F1 have everything, and no
    further fetch comes: with the defect nothing is acknowledged until one does. Needs few clients, and a
    replica.fetch.wait.max of many seconds.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(9.0, "clients are answered, or wait for a fetch"),
        *t.healed(("g1",)),
    )


def fenced_follower(aim: Aim) -> tuple[GuidedStep, ...]:
    """B43 (``hw_waits_ineligible``): nobody waits for a replica that is fenced.

    F2 is cut off from everybody, loses its session and leaves the ISR. It was caught up a moment ago: with
    the defect L waits for it until replica.lag.time.max is over, which must be much longer than the session.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", ALONE, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(9.0, "L and F1 go on, or wait for F2"),
        *t.healed(("g1",)),
    )


def failing_write(aim: Aim) -> tuple[GuidedStep, ...]:
    """B57 (``continue_after_io_error``): a broker whose log could not be written stops.

    One write to L's disk fails. A right broker ends, and F1 leads. With the defect it goes on with a log that
    is not what it tells of it.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", FAILING_WRITE, t.leader, role="leader"),
        Sleep(4.0, "L is gone, or goes on"),
        *t.healed(("g1",)),
    )


def slow_goodbye(aim: Aim) -> tuple[GuidedStep, ...]:
    """B51 (``stop_md_on_shutdown``): a leader that shuts down steps down at once.

    F2 is paused, so L, which is told to stop, may not go before F2's session is over. F1 leads meanwhile.
    With the defect L does not learn of that and sends no client there. Needs MinISR 1, a short
    replica.lag.time.max and a session of several seconds.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", Pause(), t.last, role="last replica"),
        t.inject("g2", Restart(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(1.0, "clients have found F1"),
        *t.healed(("g1", "g2")),
    )


def _all_powered_off(t: Trio) -> tuple[GuidedStep, ...]:
    """The example R35, 5.3.3 of the description: L, F1 and F2 lose their power one after
    another, each when the one before was fenced, so that LastKnownELR is [F1, F2].

    F2, alone in the ISR, acknowledges nothing. All that was acknowledged before reaches its disk, and no
    other.
    """
    return (
        t.inject("g1", PowerCut(), t.leader, role="leader"),
        t.isr_is(t.first, t.last),
        Sleep(1.0, "clients find F1"),
        t.inject("g2", PowerCut(), t.first, role="first follower"),
        t.isr_is(t.last),
        Flush((t.aim.host(t.last),)),
        Sleep(1.5, "what proves a power cut is written, too, and nothing is acknowledged"),
        t.inject("g3", PowerCut(), t.last, role="last replica"),
        Sleep(SESSION_S, "the last session ends"),
    )


def outage(aim: Aim) -> tuple[GuidedStep, ...]:
    """R35, B11, B35: every replica loses its power, and the one that comes back first has lost its records.

    Balanced recovery waits for F2, whose log is the best. Proactive recovery, and unclean election, take F1.
    """
    t = Trio.of(aim)
    return (
        *_all_powered_off(t),
        Heal(("g2",)),
        t.alive(t.first),
        Sleep(4.0, "F1 leads, if anybody may elect it"),
        *t.healed(("g1", "g3")),
    )


def clean_example(aim: Aim) -> tuple[GuidedStep, ...]:
    """R24, 5.2.2 of the description: the ISR goes from [L, F1, F2] to [L, F2] and to [L], with F2 in the ELR.
    L loses its power, and what it had not synced.

    With an ELR F2 leads, and L joins it when it is back. Without one the partition waits for L, and F2 cuts
    its log. F1 is away all the time.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.first, role="first follower"),
        t.isr_is(t.leader, t.last),
        Sleep(1.0, "L and F2 acknowledge without F1"),
        t.inject("g2", APART, t.last, role="last replica"),
        t.isr_is(t.leader),
        t.inject("g3", PowerCut(), t.leader, role="leader"),
        t.led_by(t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        Heal(("g2", "g3")),
        t.isr_is(t.leader, t.last),
        Sleep(1.0, "clients go on with L and F2"),
        *t.healed(("g1",)),
    )


def outage_of_a_person(aim: Aim) -> tuple[GuidedStep, ...]:
    """R29: the same, and under strategy manual nobody leads, though all are back, until a person says so."""
    t = Trio.of(aim)
    return (
        *_all_powered_off(t),
        Heal(("g1", "g2", "g3")),
        t.alive(t.leader),
        t.alive(t.first),
        t.alive(t.last),
        Sleep(4.0, "nobody is elected"),
        t.led_by(NOBODY),
        ElectUncleanly(aim.topic, t.partitions),
        t.led_by(t.leader, t.first, t.last),
        t.until("the full ISR", lambda state: state.full_isr),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "dead-leader": dead_leader,
    "fenced-together": fenced_together,
    "shrunk-in-silence": shrunk_in_silence,
    "fenced-follower": fenced_follower,
    "failing-write": failing_write,
    "slow-goodbye": slow_goodbye,
    "outage": outage,
    "outage-manual": outage_of_a_person,
    "clean-example": clean_example,
}
NEEDS: Mapping[str, Needs] = {
    name: Needs(
        replicas=3,
        apart=True,
        one_controller=name == "fenced-together",
    )
    for name in SCHEDULES
}
