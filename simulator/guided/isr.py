"""B15 to B20, B22, B41, B45: which replicas are in the ISR, and which the leader believes to be in it."""

from __future__ import annotations

from wrackline.simulator.guided.messages import carries_records, has_high_watermark
from wrackline.simulator.guided.schedule import Guided
from wrackline.simulator.guided.setting import Setting
from wrackline.simulator.guided.stage import Stage


def joins_before_leso(s: Stage) -> None:
    """B15. Broker 2 leads with a high watermark that is too low; broker 3, which lacks m1, has reached that
    and asks to join."""
    s.commit(b"m0")
    s.isolate(3)
    late = s.hold("FetchResponse", source=1, to=2, when=has_high_watermark(2))
    s.acked(1, b"m1")
    s.kill(1)
    s.drop(late)
    s.until(lambda: s.leader == 2, "2 leads")
    slow = s.hold("FetchResponse", source=2, to=3, when=carries_records)
    s.rejoin(3)
    s.run(1_000)
    s.drop(slow)


def joins_behind(s: Stage) -> None:
    """B16. Broker 3 fetches from offset 0 while m1 is committed. The leader has led from the start, so its
    LESO (the end of its log when its epoch began) is 0 and does not keep 3 out."""
    s.isolate(3)
    s.commit(b"m1")
    slow = s.hold("FetchResponse", source=1, to=3, when=carries_records)
    s.rejoin(3)
    s.run(1_000)
    s.drop(slow)


def joined_unknown_to_leader(s: Stage) -> None:
    """B17. The controller has added broker 3 to the ISR, but the leader has not learned of it; m1 is
    replicated to broker 2 only."""
    s.commit(b"m0")
    s.isolate(3)
    s.unfence(3)
    s.run(200)
    answer = s.hold("AlterPartitionResponse", to=1)
    deaf = s.hold("MetadataFetchResponse", to=1)
    s.mend(3, 1)
    s.until(lambda: s.isr == {1, 2, 3}, "3 in the ISR")
    s.cut(3, 1)
    s.produce(1, b"m1")
    s.until(lambda: s.leo(2) == 2, "m1 on 2")
    s.run(500)
    s.kill(1, 2)
    s.drop(answer)
    s.drop(deaf)
    s.until(lambda: s.leader == 3, "3 leads", 30_000)


def dropped_unasked(s: Stage) -> None:
    """B18. The leader's proposal to drop broker 3 never reaches the controller; m1 is replicated to broker 2
    only."""
    s.commit(b"m0")
    unsent = s.hold("AlterPartitionRequest", source=1)
    s.cut(1, 3)
    s.cut(2, 3)
    s.produce(1, b"m1")
    s.run(5_000)
    s.kill(1, 2)
    s.drop(unsent)
    s.until(lambda: s.leader == 3, "3 leads", 30_000)


def former_life_joins(s: Stage) -> None:
    """B19. Broker 3 has caught up and was proposed for the ISR; before the proposal reaches the controller, 3
    loses its log and registers again."""
    s.commit(b"m1")
    s.isolate(3)
    request = s.hold("AlterPartitionRequest", source=1)
    s.rejoin(3)
    s.until(lambda: bool(request.held), "3 proposed")
    s.power(3, keep=0)
    s.until(lambda: s.fenced(3), "3 fenced")
    slow = s.hold("FetchResponse", source=1, to=3, when=carries_records)
    s.unfence(3)
    s.release(request)
    s.run(1_000)
    s.drop(slow)


def fenced_joins(s: Stage) -> None:
    """B20. Broker 3 has caught up and was proposed for the ISR; before the proposal reaches the controller, 3
    is killed and fenced."""
    s.commit(b"m1")
    s.isolate(3)
    request = s.hold("AlterPartitionRequest", source=1)
    s.rejoin(3)
    s.until(lambda: bool(request.held), "3 proposed")
    s.kill(3)
    s.until(lambda: s.fenced(3), "3 fenced")
    s.release(request)
    s.run(1_000)


def last_writer_wins(s: Stage) -> None:
    """B22. Broker 1 proposes the ISR [1,3]. While the proposal is under way broker 3 loses its log, leaves
    the ISR and comes back."""
    s.commit(b"m1")
    request = s.hold("AlterPartitionRequest", source=1)
    s.cut(1, 2)
    s.cut(2, 3)
    s.write(1, b"x")
    s.until(lambda: bool(request.held), "[1,3] proposed")
    s.power(3, keep=0)
    s.until(lambda: s.isr == {1, 2}, "3 fenced")
    slow = s.hold("FetchResponse", source=1, to=3, when=carries_records)
    s.unfence(3)
    s.release(request)
    s.run(1_000)
    s.drop(slow)


def slot_leaks(s: Stage) -> None:
    """B41. The leader learns from metadata that broker 3 has left the ISR before the response to its own
    proposal arrives; then 3 catches up and must be able to join again."""
    s.commit(b"m1")
    answer = s.hold("AlterPartitionResponse", to=1, limit=1)
    s.cut(1, 3)
    s.write(1, b"x")
    s.until(
        lambda: (r := s.replica(1)) is not None and r.leader is not None and r.leader.isr == {1, 2}, "shrunk"
    )
    s.release(answer)
    s.run(500)
    s.mend(1, 3)
    s.must(lambda: s.isr == {1, 2, 3}, "3 back in the ISR")


def far_behind_below_min_isr(s: Stage) -> None:
    """B45. Broker 1 is alone in the ISR and broker 2 in the ELR. Broker 3 is back and has all that is
    committed, but takes in half as many records a second as the leader is given."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    s.write(1, *(b"before %d" % n for n in range(20)))
    s.world.lag[1, 3] = 100.0
    s.rejoin(3)
    epoch = s.partition_epoch
    for n in range(240):
        s.produce(1, b"x%d" % n, acks=1)
        s.run(50)
    changes = s.partition_epoch - epoch
    s.say(f"ISR {sorted(s.isr)}, ELR {sorted(s.elr)} after {changes} changes in 12 s")
    if changes > 2:
        s.find("flapping", f"{changes} changes of the ISR in 12 s; the ELR is {sorted(s.elr)}")


SCHEDULES = (
    Guided(
        "isr_no_leso",
        "B15",
        ("isr_no_leso", "isr_no_recency"),
        joins_before_leso,
        frozenset({"I02", "lost-write"}),
        harmless=("isr_no_recency",),
    ),
    Guided("isr_no_hw", "B16", ("isr_no_hw",), joins_behind, frozenset({"I02", "lost-write"})),
    Guided(
        "no_maximal_isr",
        "B17",
        ("no_maximal_isr", "hw_passes_joining"),
        joined_unknown_to_leader,
        frozenset({"I05", "I17", "I02", "lost-write"}),
        harmless=("hw_passes_joining",),
    ),
    Guided(
        "shrink_before_commit",
        "B18",
        ("shrink_before_commit",),
        dropped_unasked,
        frozenset({"I05", "I17", "I02", "lost-write"}),
        Setting(lag_ms=2_000),
    ),
    Guided(
        "no_isr_broker_epoch", "B19", ("no_isr_broker_epoch",), former_life_joins, frozenset({"I02", "I08"})
    ),
    Guided("allow_fenced_isr", "B20", ("allow_fenced_isr",), fenced_joins, frozenset({"I14"})),
    Guided(
        "no_partition_epoch",
        "B22",
        ("no_partition_epoch",),
        last_writer_wins,
        frozenset({"I02", "I08", "lost-write"}),
        Setting(lag_ms=2_000),
    ),
    Guided(
        "inflight_leak", "B41", ("inflight_leak",), slot_leaks, frozenset({"liveness"}), Setting(lag_ms=2_000)
    ),
    Guided(
        "isr_no_recency",
        "B45",
        ("isr_no_recency",),
        far_behind_below_min_isr,
        frozenset({"flapping"}),
        Setting(lag_ms=1_000, broker={"replica_fetch_max_bytes": 1}),
    ),
)
