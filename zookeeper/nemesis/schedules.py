"""Guided schedules for the historic defects of Apache Kafka's own replication, of the time of ZooKeeper
(docs/protocol.md section 4). Every one is harmless to a version that is right.

They need the controller on a host of its own (``fleet.controllers: 1``), which no fault here hits. P is the
preferred leader, the first of the replicas. Where another must lead at first and P does, P is killed and
started again: leadership then stays where it went until a preferred leader is elected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.cluster.admin import ElectPreferred
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.network.mtu_black_hole import BlackHole
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.faults.shapes import Direction, Shape
from wrackline.nemesis.guided.steps import (
    Aim,
    AwaitCheckpoint,
    AwaitGrowth,
    Flush,
    GuidedStep,
    Heal,
    Needs,
    Sleep,
)
from wrackline.nemesis.guided.story import CUT_FROM_BROKERS, DEAF, NO_CLIENTS, NOBODY, TO_BE_FOUND_S, Story

EACH_OTHER = Partition(Shape.LINK)
NOT_MUCH = BlackHole(Shape.LINK, Direction.IN, 600)
"""What the second host sends the first arrives as long as it is short."""
TOO_EARLY_S = 8.0
"""So long a follower is given to join an ISR that it may not join."""
CHECKPOINTED_S = 12.0
"""So long a leader is given to write its high watermark to its disk, which may not rise at all."""


class _WithSecond(Story):
    """A story in which the first of the replicas that are left leads while the preferred leader does not."""

    @property
    def second(self) -> int:
        return self.chosen.replicas[1] if self.leader == self.preferred else self.leader

    def led_by_second(self, fault_id: str) -> tuple[GuidedStep, ...]:
        """P is killed, and started again when the second replica leads; nothing where that leads already."""
        if self.leader == self.second:
            return ()
        return (
            self.inject(fault_id, Kill(), self.preferred, role="preferred leader"),
            self.led_by(self.second),
            Heal((fault_id,)),
            self.full_isr(),
        )

    def preferred_again(self, fault_id: str, *ids: str) -> tuple[GuidedStep, ...]:
        """All is healed; then P leads, so that what it holds is read, too."""
        return (
            Heal(ids),
            self.full_isr(),
            Sleep(1.0, "consumers read what the leader has"),
            self.inject(fault_id, ElectPreferred(), self.preferred, role="preferred leader"),
            Sleep(2.0, "consumers read the same offsets from another leader"),
            Heal((fault_id,)),
        )


def fast_fail_over(aim: Aim) -> tuple[GuidedStep, ...]:
    """B03 (KIP-279): leadership goes from Q to P and back to Q faster than P and Q can ask each other where
    an epoch ends.

    With two replicas, P and Q, and Q in the lead:

    1. P and Q are cut off from each other; the ISR stays (replica.lag.time.max must be long). Q goes on with
       what P does not have.
    2. P is elected as the preferred leader, and takes other records at the same offsets. Q cannot ask P where
       P's epoch begins, so it truncates nothing.
    3. P is killed. Q is in the ISR and leads again.
    4. Everything is healed. P follows, and asks Q for the end of its own epoch, which Q has never heard of.
    With the defect Q answers with the begin of the next one, which lies behind P's end: P keeps its records.
    """
    story = _WithSecond(aim, replicas=2)
    preferred, other = story.preferred, story.second
    return (
        *story.led_by_second("g1"),
        story.inject("g2", EACH_OTHER, preferred, other, role="replicas"),
        Sleep(1.5, "the leader alone has what clients write"),
        story.inject("g3", ElectPreferred(), preferred, role="preferred leader"),
        Sleep(1.0, "the other one has other records at the same offsets"),
        story.inject("g4", Kill(), preferred, role="leader"),
        story.led_by(other),
        Sleep(2.5, "clients go on"),
        *story.preferred_again("g5", "g2", "g3", "g4"),
    )


def short_log_leads(aim: Aim) -> tuple[GuidedStep, ...]:
    """B02 (KIP-101): the leader is killed, and its follower loses its power and what it had not synced. The
    follower, in the ISR, leads with its shorter log and grows past its old end. The old leader follows,
    truncates to its own high watermark alone, and keeps other records below it.

    Needs a session timeout that is long enough for the second fault to come a second after the first.
    """
    story = _WithSecond(aim, replicas=2)
    leader, follower = story.leader, story.followers[-1]
    return (
        Flush((aim.host(leader), aim.host(follower))),
        Sleep(2.5, "clients write what the follower has not synced"),
        story.inject("g1", Kill(), leader, role="leader"),
        Sleep(1.2, "the leader's session ends first"),
        story.inject("g2", PowerCut(), follower, role="follower"),
        story.until(
            "nobody leads, and the leader is not in the ISR",
            lambda state: state.leader == NOBODY and leader not in state.isr,
        ),
        Heal(("g2",)),
        story.led_by(follower),
        Sleep(8.0, "the follower's log grows past its old end"),
        *story.preferred_again("g3", "g1"),
    )


def joined_too_early(aim: Aim) -> tuple[GuidedStep, ...]:
    """B15 (KAFKA-7128): a new leader's high watermark is behind what is committed, and a follower that has
    reached it joins the ISR.

    With replicas P, L and T, and L in the lead; nobody loses its power:

    1. Clients are cut off until every replica has everything. T is cut off from L, and gets short packets
    only from P. The ISR becomes P and L.
    2. Clients come back; P has fetched what they write, and so it is acknowledged. At once P goes deaf to L:
    it has the records, and does not learn that they are committed.
    3. P is elected as the preferred leader. T asks it for what comes next; the answer is too long and never
       arrives. With the defect T has reached P's high watermark, and is in the ISR.
    4. P and L are killed. T leads, without the records.

    Needs few operations, one sender, records that do not fit into a short packet, and a
    replica.fetch.wait.max of some seconds.
    """
    story = _WithSecond(aim, replicas=3)
    preferred, leader = story.preferred, story.second
    third = next(one for one in story.chosen.replicas if one not in (preferred, leader))
    return (
        *story.led_by_second("g1"),
        story.inject("g2", NO_CLIENTS, leader, role="leader"),
        Sleep(6.0, "every replica has everything, and knows that it is committed"),
        story.inject("g3", DEAF, third, leader, role="last replica and leader"),
        story.inject("g4", NOT_MUCH, third, preferred, role="last replica and preferred leader"),
        story.isr_is(preferred, leader),
        Heal(("g2",)),
        AwaitGrowth(f"records on {aim.host(preferred)}", aim.host(preferred), aim.topic, aim.partition),
        story.inject("g5", DEAF, preferred, leader, role="preferred leader and leader"),
        Sleep(0.3, "what was fetched is acknowledged"),
        story.inject("g6", ElectPreferred(), preferred, role="preferred leader"),
        story.until(
            f"node {third} in the ISR, where it must not be", lambda state: third in state.isr, TOO_EARLY_S
        ),
        story.inject("g7", Kill(), preferred, leader, role="preferred leader and leader"),
        story.led_by(third, NOBODY),
        Sleep(1.0, "clients find whoever leads"),
        Heal(("g3", "g4", "g5", "g6", "g7")),
        story.full_isr(),
    )


def alone_and_killed(aim: Aim) -> tuple[GuidedStep, ...]:
    """B52 (what Jepsen showed in 2013): the leader is cut off from its followers until it is alone in the
    ISR, goes on acknowledging, and is killed. A follower that lacks all of it is elected, where unclean
    election is on.

    By design with the defaults of that time; min.insync.replicas=2 of the topic ends it.

    Where followers truncate to their own high watermark, the old leader then keeps records that its leader
    does not have: those below the high watermark that was on its disk when it was killed. So it is killed
    when it has written one of its time alone (Kafka does every five seconds), and comes back when the next
    leader has other records.
    """
    story = Story(aim, replicas=3)
    leader, others = story.leader, story.followers
    alone, next_one = aim.host(leader), aim.host(others[0])
    here = aim.topic, aim.partition
    return (
        story.inject("g1", CUT_FROM_BROKERS, leader, role="leader"),
        story.isr_is(leader),
        Sleep(2.0, "the leader acknowledges alone, if it does"),
        AwaitCheckpoint(f"a high watermark of that time on {alone}'s disk", alone, *here, CHECKPOINTED_S),
        story.inject("g2", Kill(), leader, role="leader"),
        story.led_by(*others, NOBODY),
        AwaitGrowth(f"records on {next_one}", next_one, *here, TO_BE_FOUND_S),
        Sleep(2.5, "clients write to whoever leads"),
        Heal(("g1", "g2")),
        story.full_isr(),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "fast-fail-over": fast_fail_over,
    "short-log-leads": short_log_leads,
    "joined-too-early": joined_too_early,
    "alone-and-killed": alone_and_killed,
}
NEEDS: Mapping[str, Needs] = {
    "fast-fail-over": Needs(replicas=2, apart=True, elections=True),
    "short-log-leads": Needs(replicas=2, apart=True, elections=True),
    "joined-too-early": Needs(replicas=3, apart=True, elections=True),
    "alone-and-killed": Needs(replicas=3, apart=True),
}
