"""B02, B03, B25, B37, H18: where a follower truncates its log, and which leader epochs it
keeps."""

from __future__ import annotations

from wrackline.simulator.guided.schedule import guided
from wrackline.simulator.guided.setting import CONTROLLER, Setting
from wrackline.simulator.guided.stage import Stage

_UNCLEAN = {"unclean.leader.election.enable": "true"}


@guided(
    "trunc_hw+no_divergence_check",
    "B02",
    "I03",
    "divergence",
    defects=("trunc_hw", "no_divergence_check"),
    setting=Setting(replicas=(1, 2), brokers=2, min_isr=1, losing=True),
)
def both_lose_power(s: Stage) -> None:
    """B02. Broker 2 has lost m2 and leads alone; broker 1 comes back with m2 and a high watermark above
    it."""
    s.commit(b"m1")
    s.commit(b"m2")
    s.run(1_500)
    s.cut(1, CONTROLLER)
    s.run(700)
    s.power(1, keep=2)
    s.power(2, keep=1)
    s.fence(1)
    s.fence(2)
    s.start(2)
    s.until(lambda: s.leader == 2, "2 leads")
    s.write(2, b"m3")
    s.mend(1, CONTROLLER)


@guided(
    "kip101_v0",
    "B03",
    "I03",
    "I15",
    "divergence",
    setting=Setting(profile="kip101", topic=_UNCLEAN, losing=True, min_isr=1),
)
def fast_leader_failover(s: Stage) -> None:
    """B03. Brokers 1, 2 and again 1 lead, each writing one record that no other fetches."""
    s.commit(b"a")
    s.split()
    s.write(1, b"x1")
    s.fence(1)
    s.until(lambda: s.leader == 2, "2 leads")
    s.write(2, b"y1")
    s.fence(3)
    s.unfence(1)
    s.fence(2)
    s.until(lambda: s.leader == 1, "1 leads again, uncleanly")
    s.write(1, b"x2")
    s.mend(1, 2)
    s.unfence(2)
    s.run(2_000)


@guided("no_epoch_assign", "B25", "liveness", "I15")
def epoch_not_assigned(s: Stage) -> None:
    """B25, first half. Broker 3 leads in a third epoch and writes nothing; broker 2 asks it where the second
    epoch ends, of which broker 3 knows nothing."""
    s.commit(b"a")
    s.cut(1, 2)
    s.cut(2, 3)
    s.write(1, b"b")
    s.until(lambda: s.leo(3) == 2, "b on 3")
    s.cut(1, 3)
    s.fence(1)
    s.until(lambda: s.leader == 2, "2 leads")
    s.write(2, b"y1")
    s.fence(2)
    s.until(lambda: s.leader == 3, "3 leads")
    s.mend(2, 3)
    s.unfence(2)
    s.must(lambda: 2 in s.isr, "2 back in the ISR")


@guided(
    "trunc_hw+hw_ckpt_skip",
    "B37",
    "I01",
    "I02",
    "I04",
    "lost-write",
    defects=("trunc_hw", "hw_ckpt_skip", "register_no_isr_change"),
    setting=Setting(profile="kip101"),
    harmless=("trunc_hw", "register_no_isr_change"),
    tolerated=("I14",),
)
def checkpoint_lost(s: Stage) -> None:
    """B37. Brokers start while there is no controller, so they learn of no leader and have no high watermark
    to checkpoint; then everything is killed and starts again."""
    s.commit(b"m1")
    s.run(1_500)
    s.world.kill(CONTROLLER)
    s.kill(1, 2, 3)
    for node in (1, 2, 3):
        s.start(node)
    s.run(2_500)
    s.kill(1, 2, 3)
    s.world.start(CONTROLLER)
    deaf = s.hold("FetchRequest", to=1)
    also = s.hold("OffsetForLeaderEpochRequest", to=1)
    for node in (1, 2, 3):
        s.start(node)
    s.until(lambda: s.leader is not None, "a leader")
    s.run(2_000)
    leader = s.ready()
    s.kill(leader)
    s.drop(deaf)
    s.drop(also)
    s.run(5_000)


@guided(
    "drop_begun_batch",
    "H18",
    "liveness",
    defects=("no_divergence_check", "drop_begun_batch"),
    harmless=("no_divergence_check",),
)
def begun_batch(s: Stage) -> None:
    """H18. x is on broker 1 only; broker 2 leads and writes two records in one batch, which begins in x's
    place. Nothing tells 1 that their logs differ, so it fetches from its end, which is inside that batch."""
    s.commit(b"m1")
    s.isolate(3)
    s.cut(1, 2)
    s.write(1, b"x")
    s.fence(1)
    s.rejoin(3)
    s.until(lambda: s.leader == 2, "2 leads")
    s.until(lambda: 3 in s.isr, "3 in the ISR")
    s.run(100)
    s.commit(b"y1", b"y2")
    s.rejoin(1)
    s.must(lambda: s.isr == {1, 2, 3}, "1 in the ISR, with the batch whole")
