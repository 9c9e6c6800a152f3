"""Guided schedules in which one message arrives too late: a proxy on the host that answers holds it back
(docs/protocol.md section 4).

What the simulator does with single messages, done to real brokers. L leads, F1 is the follower that comes
first in replica order (so it is elected first), F2 the last. A right broker refuses what is late, so every
schedule is harmless to it. `suites/defects/` has a specification for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.cluster.admin import TransferLeadership
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.network.kafka_apis import Api
from wrackline.nemesis.faults.network.messages import What
from wrackline.nemesis.faults.network.packets import Packets
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.network.shaping import Shaping
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.faults.shapes import Direction, Link, Shape
from wrackline.nemesis.guided.steps import Aim, GuidedStep, Heal, Inject, Needs, Sleep
from wrackline.nemesis.guided.trio import APART, NOBODY, Trio

LATE_S = 4.0
"""So long something is waited for that must not come."""
EACH_OTHER = Partition(Shape.LINK)
SLOW_IN = Packets(Shaping(rate_kbit=160), direction=Direction.IN, links=(Link.BROKER_BROKER,))
"""Brokers send the host 20 kB a second."""
ANSWER_S = 0.4
"""Many records of clients are written meanwhile, also while the other follower is late by chance."""
DEAF_TO_IT = Partition(Shape.LINK, direction=Direction.IN)
"""The first host hears nothing of the second."""
DEAF = Partition(Shape.ISOLATE, controllers=False, direction=Direction.IN)


def _held_proposals(t: Trio, fault_id: str) -> Inject:
    """L's AlterPartition requests do not reach the controller."""
    return t.holding(fault_id, Api.ALTER_PARTITION, What.REQUEST, at=t.controller, of=t.leader)


def proposed_member(aim: Aim) -> tuple[GuidedStep, ...]:
    """B13 (``hw_gate_maximal``): a member that is only proposed does not make the ISR large enough.

    F2 leaves the ISR, then F1 is cut off while it is in it, so that records wait at L; F1 is in the ELR then.
    F2 may fetch again and L proposes it, and the proposal is held. With the defect L counts it at once and
    shows the records to consumers. L is killed, F1 leads and does not have them.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(0.5, "clients go on with L and F1"),
        t.inject("g2", APART, t.first, role="first follower"),
        t.isr_is(t.leader),
        _held_proposals(t, "g3"),
        Heal(("g1",)),
        Sleep(2.0, "F2 has fetched everything, and consumers read what L shows"),
        t.inject("g4", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(0.5, "consumers find F1"),
        *t.healed(("g2", "g3", "g4")),
    )


def stale_end(aim: Aim) -> tuple[GuidedStep, ...]:
    """B14 (``no_offset_not_available``): a new leader does not yet know where the committed records end.

    F1 and F2 do not reach each other, and then go deaf to L: with their last fetches records become
    committed, and clients see the end move, and neither of them learns it. L is killed. F1 leads, and F2 does
    not fetch from it, so with the defect clients are told an earlier end than before.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", EACH_OTHER, t.first, t.last, role="followers"),
        t.inject("g2", DEAF, t.first, t.last, role="followers"),
        Sleep(0.3, "clients ask for the end that the last fetches have moved"),
        t.inject("g3", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        Sleep(6.0, "clients ask F1 for the end"),
        *t.healed(("g1", "g2", "g3")),
    )


def behind_in_isr(aim: Aim) -> tuple[GuidedStep, ...]:
    """B16 (``isr_no_hw``): whoever lacks committed records stays out of the ISR.

    F2 leaves the ISR, L and F1 go on. F2 may fetch again, and the answers are held: it asks from where it
    stopped. With the defect that is enough to be in the ISR. L and F1 are killed, and F2 leads.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(1.5, "L and F1 acknowledge without F2"),
        t.holding("g2", Api.FETCH, What.ANSWER, at=aim.host(t.leader), of=t.last),
        Heal(("g1",)),
        t.isr_is(t.leader, t.first, t.last, patience_s=LATE_S),
        t.inject("g3", Kill(), t.leader, t.first, role="leader and first follower"),
        t.led_by(t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g2", "g3")),
    )


def former_life(aim: Aim) -> tuple[GuidedStep, ...]:
    """B19 (``no_isr_broker_epoch``): a proposal means one life of a broker.

    F2 was killed, is back and has caught up; L's proposal to let it in is held. F2 loses its power, and is
    back without what it had not synced, cut off from the others. Then the proposal arrives. With the defect
    F2 is in the ISR. L and F1 are killed, and F2 leads. Needs a replica.lag.time.max of many seconds, or L
    drops F2 again.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", Kill(), t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        _held_proposals(t, "g2"),
        Heal(("g1",)),
        t.alive(t.last),
        Sleep(2.5, "F2 has caught up and is proposed"),
        t.inject("g3", APART, t.last, role="last replica"),
        t.inject("g4", PowerCut(), t.last, role="last replica"),
        t.fenced(t.last),
        Heal(("g4",)),
        t.alive(t.last),
        Heal(("g2",)),
        t.isr_is(t.leader, t.first, t.last, patience_s=2.0),
        t.inject("g5", Kill(), t.leader, t.first, role="leader and first follower"),
        t.led_by(t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g3", "g5")),
    )


def fenced_member(aim: Aim) -> tuple[GuidedStep, ...]:
    """B20 (``allow_fenced_isr``): a fenced broker does not get into the ISR.

    F2 was killed, is back and has caught up; L's proposal to let it in is held until F2 is killed once more,
    and fenced. With the defect F2 is in the ISR then, and L waits for it as long as replica.lag.time.max
    says, which must be several times the session timeout. A right controller refuses the proposal.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", Kill(), t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        _held_proposals(t, "g2"),
        Heal(("g1",)),
        t.alive(t.last),
        Sleep(2.5, "F2 has caught up and is proposed"),
        t.inject("g3", Kill(), t.last, role="last replica"),
        t.fenced(t.last),
        Heal(("g2",)),
        Sleep(10.0, "L acknowledges, or waits for F2"),
        *t.healed(("g3",)),
    )


def outdated_proposal(aim: Aim) -> tuple[GuidedStep, ...]:
    """B22 (``no_partition_epoch``): a proposal made for an older state of the partition is refused.

    F1 is cut off from L, whose proposal of the ISR [L, F2] is held. F2 loses its power, leaves the ISR, and
    is back without what it had not synced, cut off from the others. The ISR is [L, F1]; then the proposal
    arrives. With the defect the ISR is [L, F2]. L is killed, and F2 leads.
    """
    t = Trio.of(aim)
    return (
        _held_proposals(t, "g1"),
        t.inject("g2", EACH_OTHER, t.leader, t.first, role="leader and first follower"),
        Sleep(3.5, "L gives F1 up, and the controller does not learn it"),
        t.inject("g3", APART, t.last, role="last replica"),
        t.inject("g4", PowerCut(), t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Heal(("g4",)),
        t.alive(t.last),
        Heal(("g1",)),
        t.isr_is(t.leader, t.last, patience_s=1.0),
        t.inject("g5", Kill(), t.leader, role="leader"),
        t.led_by(t.first, t.last),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g2", "g3", "g5")),
    )


def overtaken_answer(aim: Aim) -> tuple[GuidedStep, ...]:
    """B41 (``inflight_leak``): an answer that metadata has overtaken ends the proposal too.

    F2 is cut off, and L proposes to drop it. The controller agrees, its answer is held, and L learns of the
    smaller ISR from metadata. The answer arrives, F2 may fetch again, and must get back into the ISR. With
    the defect L proposes nothing any more.
    """
    t = Trio.of(aim)
    return (
        t.holding("g1", Api.ALTER_PARTITION, What.ANSWER, at=t.controller, of=t.leader),
        t.inject("g2", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(0.3, "L learns of it from metadata"),
        Heal(("g1",)),
        Sleep(0.5, "the answer arrives"),
        Heal(("g2",)),
        t.isr_is(t.leader, t.first, t.last, patience_s=8.0),
    )


def led_meanwhile(aim: Aim) -> tuple[GuidedStep, ...]:
    """B21 (``keep_stale_peers``): who leads again in a new epoch believes nothing that it knew of others.

    F1 gets nothing from L, so records wait there, on L and F2. Metadata to L is held while F1 is made leader
    and F2 cuts those records; F1 is killed, L is elected again and learns of all that at once. F2's fetches
    to L are held. With the defect L takes F2 to have the records still, and shows them to consumers. L is
    killed, and F2 leads.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", EACH_OTHER, t.leader, t.first, role="leader and first follower"),
        Sleep(0.7, "records wait on L and F2"),
        t.holding("g2", Api.FETCH, What.ANSWER, at=t.controller, of=t.leader),
        Sleep(1.0, "a first answer to L is held, and what comes later arrives with one answer"),
        t.inject("g3", TransferLeadership(), t.leader, role="leader"),
        Sleep(1.0, "F2 follows F1 and cuts what F1 does not have"),
        t.holding("g4", Api.FETCH, What.REQUEST, at=aim.host(t.leader), of=t.last),
        t.inject("g5", Kill(), t.first, role="first follower"),
        t.led_by(t.leader),
        Heal(("g2",)),
        Sleep(3.0, "L learns that it leads, and consumers read what it shows"),
        t.inject("g6", Kill(), t.leader, role="leader"),
        t.led_by(t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g1", "g3", "g4", "g5", "g6")),
    )


def slow_to_join(aim: Aim) -> tuple[GuidedStep, ...]:
    """B60 (``hw_passes_joining``): records are not committed past a follower that is about to join.

    F2 was killed, and is back, and each answer to its fetches takes its time. With the defect the high
    watermark is always further on than F2's log when F2 asks again, and F2 never joins while clients write.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", Kill(), t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        t.holding("g2", Api.FETCH, What.ANSWER, at=t.aim.host(t.leader), of=t.last, delay_s=ANSWER_S),
        Heal(("g1",)),
        t.alive(t.last),
        t.isr_is(t.leader, t.first, t.last),
        Heal(("g2",)),
    )


def before_leso(aim: Aim) -> tuple[GuidedStep, ...]:
    """B15 (``isr_no_leso``): a new leader's high watermark is behind what is committed, and a follower that
    has reached it must not join the ISR.

    1. F2 is cut off, and clients wait for it: L and F1 have what they sent. Then F1 goes deaf to L.
    2. F2 leaves the ISR, so all of that is committed and acknowledged, and F1 does not learn it. L is killed.
    3. F1 leads, alone in the ISR. F2 fetches from it, and the answers are held: F2 has reached F1's high
       watermark, and lacks what was acknowledged. With the defect it is in the ISR.
    4. F1 is killed, and F2 leads.

    Needs a replica.lag.time.max of some seconds, and clients that wait longer than that.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        Sleep(1.5, "L and F1 have what clients send, which waits for F2"),
        t.inject("g2", DEAF_TO_IT, t.first, t.leader, role="first follower and leader"),
        t.isr_is(t.leader, t.first),
        Sleep(0.3, "clients are answered"),
        t.inject("g3", Kill(), t.leader, role="leader"),
        t.led_by(t.first),
        t.holding("g4", Api.FETCH, What.ANSWER, at=aim.host(t.first), of=t.last),
        Heal(("g1",)),
        t.isr_is(t.first, t.last, patience_s=LATE_S),
        t.inject("g5", Kill(), t.first, role="leader"),
        t.led_by(t.last, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        *t.healed(("g2", "g3", "g4", "g5")),
    )


def far_behind(aim: Aim) -> tuple[GuidedStep, ...]:
    """B45 (``isr_no_recency``): whoever cannot keep up stays out of the ISR, though it has all that is
    committed.

    F2 leaves the ISR, then F1: L is alone in it, nothing is committed any more, and clients with acks=1 go
    on. F2 may fetch again, slower than L is written to. With the defect it joins, and empties the ELR; it
    lags, is dropped, and joins again, as long as this lasts. Needs fetches of few bytes.
    """
    t = Trio.of(aim)
    return (
        t.inject("g1", APART, t.last, role="last replica"),
        t.isr_is(t.leader, t.first),
        Sleep(0.5, "clients go on with L and F1"),
        t.inject("g2", APART, t.first, role="first follower"),
        t.isr_is(t.leader),
        t.inject("g3", SLOW_IN, t.last, role="last replica"),
        Heal(("g1",)),
        Sleep(12.0, "F2 fetches, and does not keep up"),
        *t.healed(("g2", "g3")),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "proposed-member": proposed_member,
    "stale-end": stale_end,
    "behind-in-isr": behind_in_isr,
    "former-life": former_life,
    "fenced-member": fenced_member,
    "outdated-proposal": outdated_proposal,
    "overtaken-answer": overtaken_answer,
    "led-meanwhile": led_meanwhile,
    "far-behind": far_behind,
    "before-leso": before_leso,
    "slow-to-join": slow_to_join,
}
_AT_ANY_HOST = ("stale-end", "behind-in-isr", "far-behind", "before-leso", "slow-to-join")
NEEDS: Mapping[str, Needs] = {
    name: Needs(replicas=3, apart=True, one_controller=name not in _AT_ANY_HOST) for name in SCHEDULES
}
