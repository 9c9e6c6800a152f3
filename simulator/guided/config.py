"""B05, B39, B52: schedules without a defect, but with settings that allow loss; the clean arm has other
settings."""

from __future__ import annotations

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
