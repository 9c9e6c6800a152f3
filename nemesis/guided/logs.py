"""Guided schedules about what a follower does with its log when it follows somebody else (docs/protocol.md
2.11, section 4). L leads, F1 is the follower that comes first in replica order, F2 the last; every schedule
is harmless to a right broker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.network.mtu_black_hole import BlackHole
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.faults.shapes import Direction, Shape
from wrackline.nemesis.guided.steps import Aim, GuidedStep, Heal, Needs, Sleep
from wrackline.nemesis.guided.trio import ALONE, APART, Trio

NO_CLIENTS = Partition(Shape.CLIENTS)
NO_RECORDS = BlackHole(Shape.LINK, Direction.IN, 600)
"""What the second host sends the first arrives as long as it is short: answers without records."""


def empty_answer(aim: Aim) -> tuple[GuidedStep, ...]:
    """B26 (``drop_lfe_on_empty`` with ``lfe_sticky``): an answer without records says nothing of epochs.

    As ``unchecked-tail``, but L's clients are cut off before it is killed, until F2 has been answered that
    there is nothing new. With the defects F2's next fetch, from F1, names no epoch, and it goes on behind its
    own records. Needs answers that name partitions without news: no fetch sessions.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.first, role="first follower"),
        Sleep(0.5, "L and F2 hold what F1 does not"),
        t.inject("g2", NO_CLIENTS, t.leader, role="leader"),
        Sleep(2.0, "F2 is answered that there is nothing new"),
        t.inject("g3", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(2.0, "clients write to F1"),
        Heal(("g1",)),
        Sleep(1.0, "F2 follows F1"),
        *t.healed(("g2", "g3")),
    )


def longer_than_leader(aim: Aim) -> tuple[GuidedStep, ...]:
    """B38 (``oor_to_start``): a follower that is ahead of its leader does not begin anew.

    F1 is cut off from clients and brokers, so L and F2 hold what it does not; L is killed before it drops F1.
    F1 leads, F2 asks it for what lies behind F1's end, and only short answers arrive. With the defect F2
    empties its log. F1 is killed, and F2, in the ISR, leads. Without it F2 cuts what F1 does not have. Needs
    a replica.lag.time.max well beyond the session timeout.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", NO_RECORDS, t.last, t.first, role="followers"),
        t.inject("g2", NO_CLIENTS, t.first, role="first follower"),
        t.inject("g3", APART, t.first, role="first follower"),
        Sleep(0.5, "L and F2 hold what F1 does not"),
        t.inject("g4", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Heal(("g3",)),
        Sleep(1.5, "F2 asks F1 for what is behind F1's end"),
        t.inject("g5", Kill(), t.first, role="leader"),
        t.led_by(t.last),
        Sleep(1.0, "clients find F2"),
        *t.healed(("g1", "g2", "g4", "g5")),
    )


def led_in_silence(aim: Aim) -> tuple[GuidedStep, ...]:
    """B25 (``keep_epoch_on_noop_trunc``): an epoch without a record is no part of a log.

    F1 is cut off from clients. L is killed, so F1 leads and writes nothing; then F1 loses its session, F2
    leads and clients write to it. F1 follows, and must forget its own epoch, though it has nothing to cut.
    With the defect it asks for that epoch for ever and never gets back into the ISR. Needs MinISR 1.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", NO_CLIENTS, t.first, role="first follower"),
        t.inject("g2", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(0.5, "F1 leads, and nobody writes to it"),
        t.inject("g3", ALONE, t.first, role="leader"),
        t.led_by(t.last),
        Sleep(1.5, "clients write to F2"),
        Heal(("g1", "g3")),
        t.until("node F1 in the ISR", lambda state: t.first in state.isr, 8.0),
        Heal(("g2",)),
        t.isr_is(t.leader, t.first, t.last, patience_s=8.0),
    )


def begun_batch(aim: Aim) -> tuple[GuidedStep, ...]:
    """H18 (``drop_begun_batch``): a log that ends in the middle of a batch of its leader's takes that batch
    whole.

    L is cut off, so what comes next is on L alone; L is killed before it drops the others. F1 leads and takes
    other batches at the same offsets. L comes back, and where nothing tells it that the logs differ it
    fetches from its end. With the defect it asks for the same batch for ever and never gets back into the
    ISR. Needs clients whose batches are long and of several lengths, and a replica.lag.time.max well beyond
    the session timeout.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.leader, role="leader"),
        Sleep(0.7, "L holds what nobody else does"),
        t.inject("g2", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(3.0, "F1's log grows past the end of L's"),
        Heal(("g1", "g2")),
        t.isr_is(t.leader, t.first, t.last, patience_s=8.0),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "empty-answer": empty_answer,
    "longer-than-leader": longer_than_leader,
    "led-in-silence": led_in_silence,
    "begun-batch": begun_batch,
}
NEEDS: Mapping[str, Needs] = {name: Needs(replicas=3, apart=True) for name in SCHEDULES}
