"""Guided schedules that let one historic defect each do its harm on a real cluster
(docs/protocol.md section 4).

They are the real-world form of `wrackline.simulator.guided`: where the simulator holds back one message, a
link is cut. Every one is harmless to a right broker. L leads, F1 is the follower that comes first in replica
order (so it is elected first), F2 the last. Cuts are between brokers: the controllers and the clients are
reached all the time, unless a schedule says otherwise. `docs/known-bugs.md` has the table, `suites/defects/`
a specification for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.guided.steps import Aim, GuidedStep, Heal, Needs, Sleep
from wrackline.nemesis.guided.swaps import candidate_with
from wrackline.nemesis.guided.trio import ALONE, APART, NO_CONTROLLER, NOBODY, ONE_WAY_IN, Trio


def elr_outsider(aim: Aim) -> tuple[GuidedStep, ...]:
    """B30 and B31 (``elr_not_cleared``): who left an ISR that stayed large enough must not be elected.

    F2 is cut off and leaves the ISR; L and F1 go on acknowledging. Both are killed. With the defect F2 is in
    the ELR and leads, without what was acknowledged meanwhile. A right controller lets the partition wait for
    L or F1.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(1.5, "L and F1 acknowledge without F2"),
        t.inject("g2", Kill(), t.leader, t.first, role="ISR"),
        t.led_by(t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g1", "g2")),
    )


def unclean_candidate(aim: Aim) -> tuple[GuidedStep, ...]:
    """B28 (``ignore_unclean``): a broker that lost its log in a power cut must not stay eligible.

    F1 is killed; F2 is cut off and loses its power, so that L is alone in the ISR and F2 in the ELR. F2 comes
    back with what its disk has kept, and cannot fetch. L is killed. With the defect F2 is elected.
    """
    return candidate_with(Trio.of(aim), PowerCut(), "F2 has not synced")


def below_min_isr(aim: Aim) -> tuple[GuidedStep, ...]:
    """B12 (``hw_no_minisr``): below MinISR nothing may become visible.

    F1 is killed, then F2 cut off while it is in the ISR, so that records wait at L. When the ISR is down to L
    the defect makes them visible: consumers are given records that F2, in the ELR, does not have. L is
    killed, F2 leads.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", Kill(), t.first, role="first follower"),
        t.isr_is(t.leader, t.last),
        Sleep(0.5, "clients get over it"),
        t.inject("g2", APART, t.last, role="last replica"),
        t.isr_is(t.leader),
        Sleep(1.5, "consumers read what L shows"),
        t.inject("g3", Kill(), t.leader, role="leader"),
        t.led_by(t.last),
        Sleep(0.5, "consumers find F2"),
        *t.healed(("g1", "g2", "g3")),
    )


def shrink_without_controller(aim: Aim) -> tuple[GuidedStep, ...]:
    """B18, B05 (``shrink_before_commit``): who is dropped from the ISR counts until the controller has
    agreed.

    L is cut from the controller, then F2 from the brokers. L's proposal to drop F2 never arrives; with the
    defect L acknowledges with F1 alone all the same. L and F1 are killed, F2, in the ISR as before, is
    elected. Needs a session timeout some seconds longer than replica.lag.time.max.
    """
    t = Trio.of(aim)
    return (
        t.cut_link("g1", NO_CONTROLLER),
        t.inject("g2", APART, t.last, role="last replica"),
        Sleep(3.0, "L gives F2 up, and the controller does not learn it"),
        t.inject("g3", Kill(), t.leader, t.first, role="leader and first follower"),
        t.led_by(t.last),
        Sleep(0.5, "clients find F2"),
        *t.healed(("g1", "g2", "g3")),
    )


def joined_unknown_to_leader(aim: Aim) -> tuple[GuidedStep, ...]:
    """B17 (``no_maximal_isr``): a proposed member counts before the answer is back.

    F2 is out of the ISR. The controller's words reach L no more, and F2 is let in again: L proposes it, the
    controller agrees, but L does not learn it. F2 is cut off once more; with the defect L acknowledges with
    F1 alone. L and F1 are killed, F2 is elected from the ISR. Needs a session timeout of some seconds: the
    controller's answers to L's heartbeats are lost as well.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(0.5, "clients go on with L and F1"),
        t.cut_link("g2", ONE_WAY_IN),
        Heal(("g1",)),
        t.isr_is(t.leader, t.first, t.last),
        t.inject("g3", APART, t.last, role="last replica"),
        Sleep(1.0, "L acknowledges with F1 alone"),
        t.inject("g4", Kill(), t.leader, t.first, role="leader and first follower"),
        t.led_by(t.last),
        Sleep(0.5, "clients find F2"),
        *t.healed(("g2", "g3", "g4")),
    )


def unknown_follower(aim: Aim) -> tuple[GuidedStep, ...]:
    """``hw_ignores_unknown`` (docs/protocol.md 4.5): a new leader waits for members of the ISR it has not
    heard of yet.

    F2 is cut off and L killed before it drops F2. F1 leads, and F2 cannot fetch from it even once; with the
    defect F1 acknowledges alone. F1 is killed, F2 is elected. Needs a replica.lag.time.max well beyond the
    session timeout.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.inject("g2", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(1.5, "clients write to F1"),
        t.inject("g3", Kill(), t.first, role="first follower"),
        t.led_by(t.last),
        Sleep(0.5, "clients find F2"),
        *t.healed(("g1", "g2", "g3")),
    )


def registered_at_once(aim: Aim) -> tuple[GuidedStep, ...]:
    """B34, KAFKA-18106 (``register_no_isr_change``): a broker that restarts faster than its session ends
    leaves the ISR.

    F1 is cut off, loses its power and comes back at once, without what it had not synced. L is killed. With
    the defect F1's new life is taken for the old one, it is still in the ISR, and elected; a right controller
    elects F2. Needs a session timeout longer than a restart takes, and a longer replica.lag.time.max, or L
    drops F1 itself.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.first, role="first follower"),
        t.inject("g2", PowerCut(), t.first, role="first follower"),
        Heal(("g2",)),
        t.inject("g3", Kill(), t.leader, role="leader"),
        t.led_by(t.first, t.last),
        Sleep(1.0, "clients find the new leader"),
        *t.healed(("g1", "g3")),
    )


def last_standing(aim: Aim) -> tuple[GuidedStep, ...]:
    """B10 (Kafka without an ELR: 3.x, and 4.0 as it is formatted by default): who is alone in the ISR need
    not have kept what was acknowledged.

    L is cut off from the other brokers until it is alone in the ISR, and loses its power with what it had not
    synced, which F1 and F2 still hold. Without an ELR the partition waits for L, which leads again with the
    log that its disk has kept; F1 and F2 cut theirs. With an ELR one of them is in it and leads.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.leader, role="leader"),
        t.isr_is(t.leader),
        t.inject("g2", PowerCut(), t.leader, role="leader"),
        t.until(f"node {t.leader} leads no more", lambda state: state.leader != t.leader),
        Sleep(0.5, "clients find whoever leads"),
        *t.healed(("g1", "g2")),
    )


def last_leader(aim: Aim) -> tuple[GuidedStep, ...]:
    """B59 (``last_known_leader``; Kafka 4.0 as shipped): who led last need not have the best log.

    F2 is cut off and leaves the ISR; F1 is killed, then L's power is cut. Both come back unclean, L without
    what it had not synced, F1 with everything. With the defect L leads because it led last; balanced recovery
    compares.
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
        Heal(("g2", "g3")),
        t.led_by(t.leader, t.first),
        Sleep(0.5, "the other one follows"),
        *t.healed(("g1",)),
    )


def unchecked_tail(aim: Aim) -> tuple[GuidedStep, ...]:
    """B55 (``no_divergence_check``): a follower whose log is another's must find out before it fetches on.

    F1 is cut off, so what comes next is on L and F2 only; L is killed before it drops F1. F1 leads and takes
    other records at the same offsets; then F2 may fetch from it. With the defect it goes on behind its own
    records. Needs a replica.lag.time.max well beyond the session timeout.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.first, role="first follower"),
        Sleep(0.5, "L and F2 hold what F1 does not"),
        t.inject("g2", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(2.0, "clients write to F1"),
        Heal(("g1",)),
        Sleep(1.0, "F2 follows F1"),
        *t.healed(("g2",)),
    )


def anothers_record(aim: Aim) -> tuple[GuidedStep, ...]:
    """B49, KAFKA-20634 (``ack_by_hwm_only``): a request does not outlive the term of its leader.

    L is cut off from everybody but its clients, whose records wait there. F1 is elected and commits other
    records at the same offsets. L comes back, follows, cuts its own records; with the defect it acknowledges
    them when the high watermark passes. Needs clients that wait long enough, and more of them than L can hold
    up.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", ALONE, t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(3.0, "clients that are free write to F1"),
        *t.healed(("g1",)),
        Sleep(1.0, "L answers what still waits"),
    )


def forgotten_producer(aim: Aim) -> tuple[GuidedStep, ...]:
    """B40 (``forget_producer_state``): a new leader knows who wrote what.

    F2 is cut off, so what (idempotent) producers send waits at L, and F1 has it. L is killed, nobody was
    answered; the producers try again at F1, which with the defect appends the same batches once more. Needs a
    replica.lag.time.max well beyond the session timeout.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        Sleep(0.5, "records are on L and F1, and no response leaves"),
        t.inject("g2", Kill(), t.leader, role="leader"),
        Heal(("g1",)),
        t.led_by(t.first),
        Sleep(2.0, "producers try again at F1"),
        *t.healed(("g2",)),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "elr-outsider": elr_outsider,
    "unclean-candidate": unclean_candidate,
    "below-min-isr": below_min_isr,
    "shrink-unheard": shrink_without_controller,
    "joined-unheard": joined_unknown_to_leader,
    "unknown-follower": unknown_follower,
    "registered-at-once": registered_at_once,
    "last-standing": last_standing,
    "last-leader": last_leader,
    "unchecked-tail": unchecked_tail,
    "anothers-record": anothers_record,
    "forgotten-producer": forgotten_producer,
}
_CUT_FROM_CONTROLLER = ("shrink-unheard", "joined-unheard")
NEEDS: Mapping[str, Needs] = {
    name: Needs(replicas=3, apart=True, one_controller=name in _CUT_FROM_CONTROLLER) for name in SCHEDULES
}
