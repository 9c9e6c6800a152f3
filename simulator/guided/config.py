"""B05, B06, B08 to B11, B35, B39, B52: schedules without a defect, but with settings that allow loss; the
clean arm has other settings."""

from __future__ import annotations

from wrackline.broker.model.types import RecoveryStrategy
from wrackline.simulator.guided.schedule import Guided
from wrackline.simulator.guided.setting import CONTROLLER, Setting
from wrackline.simulator.guided.stage import Stage


def zombie_leader(s: Stage) -> None:
    """B05. Broker 1 is cut off from everyone but its clients, and still takes itself for the leader."""
    s.commit(b"m1")
    s.cut(1, 2, 3, CONTROLLER)
    call = s.produce(1, b"m2")
    s.until(lambda: s.leader == 2, "2 leads")
    s.commit(b"m3")
    s.run(3_000)
    s.say(f"m2 acknowledged by the zombie: {s.is_acked(call)}")


def leader_only(s: Stage) -> None:
    """B06. m1 is written to the leader alone, which dies."""
    s.commit(b"m0")
    s.cut(1, 2, 3)
    call = s.produce(1, b"m1", acks=s.setting.acks)
    s.run(500)
    s.say(f"m1 acknowledged: {s.is_acked(call)}")
    s.kill(1)
    s.until(lambda: s.leader == 2, "2 leads")


def alone_in_isr(s: Stage) -> None:
    """B08. The leader is alone in the ISR; it acknowledges m1 if MinISR is 1, and loses its power."""
    s.commit(b"m0")
    s.isolate(3)
    s.isolate(2)
    call = s.produce(1, b"m1")
    s.until(lambda: call.done, "an answer")
    s.power(1, keep=1)
    s.run(4_000)


def unclean_election(s: Stage) -> None:
    """B09. m1 is on brokers 1 and 2, which are both killed; broker 3, out of sync, is there to be elected."""
    s.commit(b"m0")
    s.isolate(3)
    s.commit(b"m1")
    s.kill(2)
    s.until(lambda: s.isr == {1}, "2 out of the ISR")
    s.kill(1)
    s.rejoin(3)
    s.run(5_000)


def last_replica_standing(s: Stage) -> None:
    """B10. m1 is on all replicas. The only member of the ISR loses its power and its log, and comes back."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    s.power(1, keep=0)
    s.until(lambda: s.fenced(1), "1 fenced")
    s.unfence(1)
    s.rejoin(2)
    s.rejoin(3)
    s.run(2_000)


def _all_but_the_best_log(s: Stage) -> None:
    """All brokers lose power. Broker 1, which lost its whole log, is back; 2, which lost nothing, and 3 are
    still down."""
    s.commit(b"m1")
    s.commit(b"m2")
    s.cut(1, CONTROLLER)
    s.run(700)
    s.power(1, keep=0)
    s.power(2, keep=2)
    s.power(3, keep=1)
    s.run(5_000)
    s.unfence(1)


def whole_isr_loses_power(s: Stage) -> None:
    """B11. All brokers lose power at once. Broker 1, which lost its whole log, is back before broker 2, which
    lost nothing."""
    _all_but_the_best_log(s)
    s.run(1_000)
    s.unfence(2)
    s.unfence(3)
    s.run(3_000)


def best_log_is_away(s: Stage) -> None:
    """B35. All brokers lose power at once. Broker 1, which lost its whole log, is back; broker 2, which lost
    nothing, comes back only when the unclean recovery no longer waits for it."""
    _all_but_the_best_log(s)
    s.run(4_000)
    s.unfence(2)
    s.unfence(3)
    s.run(3_000)


def retry_twice(s: Stage) -> None:
    """B39. The response to a produce request is lost, and the client sends the record again, with or without
    a sequence number."""
    value = (7).to_bytes(8, "big")
    held = s.hold("ProduceResponse", source=1)
    number = 0 if s.setting.acks == -1 else None
    s.produce(1, value, sequence=number)
    s.until(lambda: s.high_watermark(1) == 1, "committed")
    s.drop(held)
    retry = s.produce(1, value, sequence=number)
    s.until(lambda: retry.done, "the retry answered")


def jepsen_2013(s: Stage) -> None:
    """B52. The ISR shrinks to the isolated leader, which goes on alone; then it dies, and one of the others
    is elected."""
    s.commit(b"m0")
    s.cut(1, 2, 3)
    call = s.produce(1, b"m1")
    s.until(lambda: call.done or s.isr == {1}, "1 alone")
    s.run(3_000)
    s.kill(1)
    s.run(6_000)


_UNCLEAN = {"unclean.leader.election.enable": "true"}

SCHEDULES = (
    Guided(
        "zombie_leader",
        "B05",
        ("shrink_before_commit",),
        zombie_leader,
        frozenset({"I05", "I17", "I01", "lost-write"}),
        Setting(lag_ms=2_000, min_isr=1),
    ),
    Guided("acks=1", "B06", (), leader_only, frozenset({"lost-write"}), exposing={"acks": 1}),
    Guided("min_isr=1", "B08", (), alone_in_isr, frozenset({"lost-write"}), exposing={"min_isr": 1}),
    Guided(
        "unclean_election",
        "B09",
        (),
        unclean_election,
        frozenset({"lost-write"}),
        exposing={"topic": _UNCLEAN},
    ),
    Guided(
        "last_replica_standing",
        "B10",
        (),
        last_replica_standing,
        frozenset({"I01", "I07", "lost-write"}),
        exposing={"profile": "kraft35"},
    ),
    Guided(
        "whole_isr_loses_power",
        "B11",
        (),
        whole_isr_loses_power,
        frozenset({"lost-write"}),
        exposing={"topic": _UNCLEAN},
    ),
    Guided(
        "proactive_recovery",
        "B35",
        (),
        best_log_is_away,
        frozenset({"lost-write"}),
        exposing={"controller": {"unclean_recovery_strategy": RecoveryStrategy.PROACTIVE}},
    ),
    Guided("no_idempotence", "B39", (), retry_twice, frozenset({"duplicate"}), exposing={"acks": 1}),
    Guided(
        "jepsen_2013",
        "B52",
        (),
        jepsen_2013,
        frozenset({"lost-write"}),
        Setting(lag_ms=2_000),
        exposing={"min_isr": 1, "topic": _UNCLEAN},
    ),
)
