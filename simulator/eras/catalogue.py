"""The stories. Brokers are 1, 2 and 3; 1 leads at first; records are named by their values.

A story says what happens to processes, messages and sessions, never which rule is to answer it; so the same
words are played under every profile. To fence a broker is to cut it off from whoever ends its session: from
ZooKeeper in zk08, from the controller later.
"""

from __future__ import annotations

from wrackline.broker.model.effects import Checkpoint
from wrackline.broker.model.messages.requests import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from wrackline.simulator.eras.story import story
from wrackline.simulator.guided.setting import Setting, T, has_high_watermark
from wrackline.simulator.guided.stage import Stage

_TWO = Setting(replicas=(1, 2), brokers=2, min_isr=1, idempotent=False)
_SESSION_MS = 3_000
_LOST = ("lost-write", "I01", "I07")


def _checkpointed(s: Stage, node: int, offset: int) -> bool:
    result = s.world.brokers[node].disk.checkpoints.get(Checkpoint.HIGH_WATERMARK, {})
    return result.get(T, 0) >= offset


def _follows(s: Stage, node: int, leader: int) -> bool:
    replica = s.replica(node)
    return replica is not None and replica.leader_id == leader


@story(
    "restart-then-failover",
    "KIP-101 scenario 1, H16, B01",
    "A follower restarts, and the leader dies before it has fetched again.",
    *_LOST,
    setting=_TWO,
)
def high_watermark_truncation(s: Stage) -> None:
    """KIP-101's first scenario. 2 has m2, which is committed and acknowledged, and does not know so. It
    restarts; the leader dies before 2 has fetched again."""
    s.commit(b"m1")
    s.until(lambda: _checkpointed(s, 2, 1), "the high watermark on 2's disk")
    late = s.hold("FetchResponse", source=1, to=2, when=has_high_watermark(2))
    s.acked(1, b"m2")
    deaf = s.hold("FetchRequest", source=2, to=1)
    s.kill(2)
    s.drop(late)
    s.start(2)
    s.run(_SESSION_MS + 1_500)
    s.kill(1)
    s.run(_SESSION_MS + 3_000)
    s.drop(deaf)
    s.say(f"2 has {s.values(2)!r}")


@story(
    "double-power-loss",
    "KIP-101 scenario 2, H17, B02",
    "Both replicas lose power; the one that lost more is back first.",
    "divergence",
    "I03",
    setting=_TWO.but(losing=True),
)
def both_lose_power(s: Stage) -> None:
    """KIP-101's second scenario. Power fails at both. 2, which had not flushed m2, is back first and leads;
    it writes m3 in its place. 1 has m2, and a checkpoint that calls it committed."""
    s.commit(b"m1")
    s.kill(2)
    s.run(_SESSION_MS + 600)
    s.start(2)
    s.until(lambda: s.isr == {1, 2}, "2 back in the ISR", 30_000)
    s.until(lambda: _checkpointed(s, 2, 1), "the high watermark on 2's disk")
    s.commit(b"m2")
    s.until(lambda: _checkpointed(s, 1, 2), "the high watermark on 1's disk")
    s.cut(1, s.coordinator)
    s.power(1, keep=2)
    s.power(2, keep=1)
    s.fence(1)
    s.fence(2)
    s.start(2)
    s.until(lambda: s.leader == 2, "2 leads")
    s.write(2, b"m3")
    s.mend(1, s.coordinator)


@story(
    "failover-twice",
    "KAFKA-1211, B01",
    "A new leader dies while its follower has cut its log and not fetched yet.",
    *_LOST,
    setting=Setting(idempotent=False),
)
def dies_while_its_follower_has_cut(s: Stage) -> None:
    """KAFKA-1211. m2 is committed and acknowledged; 2 and 3 have it and do not know so. The leader is cut
    off; one of them begins to follow the other, which dies at once."""
    s.commit(b"m1")
    late = s.hold("FetchResponse", source=1, when=has_high_watermark(2))
    s.acked(1, b"m2")
    s.cut(1, 2, 3)
    s.drop(late)
    deaf = [s.hold("FetchRequest", source=a, to=b) for a, b in ((2, 3), (3, 2))]
    s.fence(1)
    s.until(lambda: s.elected in (2, 3), "2 or 3 is elected")
    leader = s.elected
    other = 5 - leader
    s.until(lambda: _follows(s, other, leader), "the other follows")
    s.kill(leader)
    for hold in deaf:
        s.drop(hold)
    s.until(lambda: s.leader == other, "the other leads", 30_000)


@story(
    "isolated-then-unclean",
    "H19, B52",
    "A leader alone in its ISR goes on and is lost; another leads uncleanly.",
    *_LOST,
    setting=Setting(
        lag_ms=2_000,
        idempotent=False,
        topic={"unclean.leader.election.enable": "true"},
    ),
)
def isolated_then_unclean(s: Stage) -> None:
    """B52. The leader is cut from its followers and reaches whoever keeps the ISR. It goes on alone, and is
    lost; the topic allows others to lead."""
    s.commit(b"m1")
    s.cut(1, 2, 3)
    s.produce(1, b"m2")
    s.until(lambda: s.isr == {1}, "an ISR of 1 alone")
    s.run(500)
    s.kill(1)
    s.until(lambda: s.leader in (2, 3), "another leads, uncleanly")
    s.write(s.ready(), b"m3")


@story(
    "split",
    "Z12, K28",
    "One replica alone with ZooKeeper, or the controller, leads, acknowledges and loses power.",
    *_LOST,
    setting=Setting(idempotent=False),
)
def alone_on_one_side(s: Stage) -> None:
    """The network splits: 1 and 3 on one side, 2 and whoever ends sessions on the other. 2 leads, takes m2
    and loses power."""
    s.commit(b"m1")
    s.cut(2, 1, 3)
    s.cut(1, s.coordinator)
    s.cut(3, s.coordinator)
    s.until(lambda: s.leader == 2, "2 leads", 30_000)
    s.run(1_100 - s.world.now_ms % 1_000)  # just after what is flushed by the clock
    s.produce(2, b"m2", timeout_ms=2_000)
    s.run(100)
    s.power(2, keep=1)


@story(
    "power-back-early",
    "R11, B34",
    "The leader loses power and is back, with less, before its session has ended.",
    *_LOST,
    setting=Setting(idempotent=False),
)
def power_back_before_the_session_ends(s: Stage) -> None:
    """The leader loses power and what it had not flushed, and is back before its session has ended."""
    s.commit(b"m1")
    s.until(lambda: all(_checkpointed(s, node, 1) for node in (1, 2, 3)), "everybody's checkpoint")
    s.commit(b"m2")
    s.power(1, keep=1)
    s.start(1)
    s.run(_SESSION_MS + 3_000)


@story(
    "zombie-leader",
    "B05",
    "A leader is paused past its session, and answers a client before it hears of its successor.",
    "stale-read",
    setting=Setting(idempotent=False),
)
def zombie_leader(s: Stage) -> None:
    """The leader is paused, as by a long collection of garbage, until its session is over and 2 has committed
    m2. A client that knows of 2's term asks 1 for the log's end just before 1 goes on."""
    s.commit(b"m1")
    s.world.pause(1)
    s.say("pause 1")
    s.until(lambda: s.leader in (2, 3), "another leads", 30_000)
    leader = s.ready()
    s.acked(leader, b"m2")
    image = s.world.image.partition(T)
    assert image is not None
    asked = ListOffsetsPartition(T, LATEST, current_leader_epoch=image.leader_epoch)
    call = s.world.ask(1, ListOffsetsRequest((asked,), knows_offset_not_available=True), 5_000)
    s.say("a client asks 1 where the log ends, and names the leader epoch that it knows")
    s.run(50)
    s.world.resume(1)
    s.say("1 goes on")
    s.until(lambda: call.done, "1's answer")
    if isinstance(call.response, ListOffsetsResponse):
        [answer] = call.response.partitions
        s.say(f"1 answers: {answer.error.name if answer.error.value else answer.offset}")
        if answer.error.value == 0 and answer.offset < 2:
            s.find("stale-read", f"1 says that the log ends at {answer.offset}; m2 was acknowledged at 1")


STORIES = (
    high_watermark_truncation,
    both_lose_power,
    dies_while_its_follower_has_cut,
    isolated_then_unclean,
    alone_on_one_side,
    power_back_before_the_session_ends,
    zombie_leader,
)
