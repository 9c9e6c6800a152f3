"""Guided schedules for the stories of docs/known-bugs.md: one each, whatever elects the leaders, and by
whatever rule followers truncate. Every one is harmless to a version that is right.

L leads, and is the first of the replicas; F is its follower, or F1 and F2 are. The *coordinator* is who ends
sessions: ZooKeeper, or the controller. A controller must have a host of its own, which no fault here hits.
The simulator tells the same stories message by message (`wrackline.simulator.eras.catalogue`); the story
``isolated-then-unclean`` is the schedule ``alone-and-killed``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.processes.processes import Kill, Pause, Restart
from wrackline.nemesis.faults.shapes import Direction, Link, Shape
from wrackline.nemesis.guided.steps import (
    Aim,
    AskEnd,
    AwaitBroker,
    AwaitCheckpoint,
    AwaitGrowth,
    Flush,
    GuidedError,
    GuidedStep,
    Heal,
    Needs,
    Sleep,
)
from wrackline.nemesis.guided.story import DEAF, NO_CLIENTS, NOBODY, TO_BE_FOUND_S, Story

DEAF_TO_ALL = Partition(Shape.ISOLATE, controllers=False, direction=Direction.IN)
"""It hears nothing of the other brokers."""
OTHER_SIDE = Partition(Shape.ISOLATE)
NO_COORDINATOR = Partition(Shape.ISOLATE, links=(Link.BROKER_ZOOKEEPER, Link.BROKER_CONTROLLER))
TO_LEAD_S = 5.0
"""So long a replica is given to lead when its leader's session has ended, where it may not lead at all."""


def _first_leads(story: Story) -> Story:
    """Raises GuidedError where another than the preferred replica leads: it will give that up by itself."""
    if story.leader != story.preferred:
        raise GuidedError(f"{story.name} must be led by its first replica; node {story.leader} leads it")
    return story


def restart_then_failover(aim: Aim) -> tuple[GuidedStep, ...]:
    """KIP-101's first scenario: a follower restarts, and the leader dies before it has fetched again.

    1. F goes deaf to L: its last fetch makes records committed without its knowing.
    2. F is killed and started again, still deaf. With the defect it truncates to the high watermark that was
       on its disk, and does not get back what it cut.
    3. L is killed. F, if it is in the ISR still, leads.

    Needs a replica_lag_time_max that outlasts all this.
    """
    story = _first_leads(Story(aim, replicas=2))
    leader, follower = story.leader, story.followers[0]
    return (
        story.inject("g1", DEAF, follower, leader, role="follower and leader"),
        Sleep(0.3, "the records that the deaf follower's last fetch committed are acknowledged"),
        story.inject("g2", Kill(), follower, role="follower"),
        Heal(("g2",)),
        AwaitBroker(f"node {follower} registered again", follower, alive=True),
        Sleep(1.0, "the follower learns who leads, and truncates"),
        story.inject("g3", Kill(), leader, role="leader"),
        story.led_by(follower, NOBODY),
        story.led_by(follower, patience_s=TO_LEAD_S),
        Sleep(1.0, "clients find whoever leads"),
        Heal(("g1", "g3")),
        story.full_isr(),
    )


def double_power_loss(aim: Aim) -> tuple[GuidedStep, ...]:
    """KIP-101's second scenario: both replicas lose power, and the one that lost more is back first.

    1. F is restarted just after L has written its high watermark to its disk, so that the two write theirs at
       different times from now on.
    2. The next time that L has written it, and synced it, F loses power, and then L. F lacks what L knows to
       be committed.
    3. F is started. If it leads, its log grows past its old end.
    4. L is started, and follows. With the defect it truncates to its own high watermark alone, and keeps
       other records below it than F has.

    Needs high watermarks that are written seconds apart.
    """
    story = _first_leads(Story(aim, replicas=2))
    leader, follower = story.leader, story.followers[0]
    written = AwaitCheckpoint(
        f"a high watermark on {aim.host(leader)}'s disk", aim.host(leader), aim.topic, aim.partition
    )
    return (
        written,
        story.inject("g1", Restart(), follower, role="follower"),
        Heal(("g1",)),
        story.full_isr(),
        written,
        Sleep(0.5, "the leader's log is synced, too, and then the file is written once more"),
        Flush((aim.host(leader),)),
        story.inject("g2", PowerCut(), follower, role="follower"),
        Sleep(1.0, "the leader has something to lose, too, which it cannot commit alone"),
        story.inject("g3", PowerCut(), leader, role="leader"),
        Heal(("g2",)),
        story.led_by(follower, NOBODY),
        story.led_by(follower, patience_s=TO_LEAD_S),
        Sleep(4.0, "the log of the follower, if it leads, grows past its old end"),
        Heal(("g3",)),
        story.full_isr(),
    )


def failover_twice(aim: Aim) -> tuple[GuidedStep, ...]:
    """KAFKA-1211, B01 where a race may decide: as ``b01-truncate-to-hw``, but F1 must win it.

    1. F2 goes deaf to L and F1: its last fetch makes records committed without its knowing.
    2. F2 is cut off from the coordinator, so that it hears late that nobody leads, and does not run.
    3. L is stopped cleanly, which ends its session at once. F1 leads (or wins, and waits for F2 before it
       opens).
    4. F2 hears from the coordinator again, follows F1, and with the defect truncates to its own high
       watermark.
    5. F1 is killed before F2 has fetched from it. F2 is in the ISR, and leads.

    Needs a session that outlives steps 2 to 4, and in profile zk08 a leader_election_wait that outlasts them.
    """
    story = Story(aim, replicas=3)
    leader, (first, second) = story.leader, story.followers[:2]
    return (
        story.inject("g1", DEAF_TO_ALL, second, role="last replica"),
        Sleep(0.3, "the records that the deaf follower's last fetch committed are acknowledged"),
        story.inject("g2", NO_COORDINATOR, second, role="last replica"),
        story.inject("g3", Restart(), leader, role="leader"),
        story.led_by(first),
        Heal(("g2",)),
        Sleep(3.0, "the deaf follower learns of its new leader and truncates"),
        story.inject("g4", Kill(), first, role="leader"),
        story.led_by(second),
        Heal(("g1", "g3", "g4")),
        story.full_isr(),
    )


def split(aim: Aim) -> tuple[GuidedStep, ...]:
    """Z12, K28: the network splits, and one replica is alone on the side of the coordinator and the clients.

    1. L and F1 are cut off from everybody else. F2 leads.
    2. What F2 had not synced so far it syncs. What it acknowledges alone from then on, if it does, is gone
       when its power is cut. L and F1 have been well all the time, and lack it.
    3. Everything is healed, and F2 leads with what its disk has kept, if nobody else may.
    """
    story = Story(aim, replicas=3)
    first, last = story.followers[:2]
    host = aim.host(last)
    return (
        story.inject("g1", OTHER_SIDE, story.leader, first, role="leader and first follower"),
        story.inject("g2", NO_CLIENTS, story.leader, first, role="leader and first follower"),
        story.led_by(last),
        story.isr_is(last),
        Flush((host,)),
        AwaitGrowth(f"records on {host}", host, aim.topic, aim.partition, TO_BE_FOUND_S),
        Sleep(2.0, "the last replica acknowledges alone, if it does"),
        story.inject("g3", PowerCut(), last, role="leader"),
        Heal(("g1", "g2", "g3")),
        story.full_isr(),
    )


def power_back_early(aim: Aim) -> tuple[GuidedStep, ...]:
    """R11, B34: the leader loses power and what it had not synced, and is back before its session has ended.
    With the defect it is in the ISR still and leads again, with less, and the others truncate.

    Needs a session that outlives the start of a host.
    """
    story = _first_leads(Story(aim, replicas=3))
    return (
        story.inject("g1", PowerCut(), story.leader, role="leader"),
        Heal(("g1",)),
        story.led_by(*story.chosen.replicas),
        story.full_isr(),
    )


def zombie_leader(aim: Aim) -> tuple[GuidedStep, ...]:
    """B05: the leader is paused past its session, as by a long collection of garbage.

    1. L is paused until another leads and has acknowledged records.
    2. L is cut off from the coordinator, so that it does not hear of its successor when it goes on. A client
       that knows the successor asks L where the log ends.
    3. L goes on, and answers. With epochs it refuses: the client names one that L has never heard of
       (KIP-320). Without them its answer is past.

    Needs a session of some seconds: by its own clock L gives up leading a third of it after it has gone on.
    """
    story = Story(aim, replicas=3)
    first = aim.host(story.followers[0])
    return (
        story.inject("g1", Pause(), story.leader, role="leader"),
        story.led_by(*story.followers),
        AwaitGrowth(f"records on {first}", first, aim.topic, aim.partition),
        Sleep(1.0, "they are acknowledged"),
        story.inject("g2", NO_COORDINATOR, story.leader, role="former leader"),
        AskEnd(aim.host(story.leader), first, aim.topic, aim.partition),
        Sleep(0.5, "the question lies before the paused leader"),
        Heal(("g1",)),
        Sleep(1.5, "the former leader answers"),
        Heal(("g2",)),
        story.full_isr(),
    )


SCHEDULES: Mapping[str, Callable[[Aim], Sequence[GuidedStep]]] = {
    "restart-then-failover": restart_then_failover,
    "double-power-loss": double_power_loss,
    "failover-twice": failover_twice,
    "split": split,
    "power-back-early": power_back_early,
    "zombie-leader": zombie_leader,
}
_TWO = ("restart-then-failover", "double-power-loss")
NEEDS: Mapping[str, Needs] = {
    name: Needs(replicas=2 if name in _TWO else 3, apart=True) for name in SCHEDULES
}
