"""B12, B13, B14, B27, B43, B60 and a check of docs/protocol.md 4.5: when the high watermark moves, and what a
broker reports of it."""

from __future__ import annotations

from wrackline.simulator.guided.messages import has_high_watermark
from wrackline.simulator.guided.schedule import Guided
from wrackline.simulator.guided.setting import Setting
from wrackline.simulator.guided.stage import Stage


def below_min_isr(s: Stage) -> None:
    """B12. Broker 1 is alone in the ISR and broker 2 in the ELR. m2 is written to broker 1 alone; then broker
    1 is killed and broker 2 leads."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    s.write(1, b"m2")
    s.run(1_000)
    s.kill(1)
    s.rejoin(2)
    s.until(lambda: s.leader == 2, "2 of the ELR leads")


def gate_on_maximal(s: Stage) -> None:
    """B13. Broker 1 is alone in the ISR and broker 2 in the ELR. Broker 3 has m2 and is proposed for the ISR,
    but the proposal does not arrive; broker 1 is killed and broker 2, which lacks m2, leads."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    s.hold("AlterPartitionRequest", source=1)
    s.mend(3, 1)
    s.unfence(3)
    s.run(1_000)
    s.write(1, b"m2")
    s.until(lambda: s.leo(3) == 2, "m2 on 3")
    s.run(1_000)
    s.kill(1)
    s.cut(2, 3)
    s.unfence(2)
    s.until(lambda: s.leader == 2, "2 of the ELR leads")


def stale_end(s: Stage) -> None:
    """B14. The old leader reports the end offset 1; the new leader has the record too, but reports 0."""
    held = s.hold("FetchResponse", source=1, when=has_high_watermark(1))
    s.acked(1, b"m1")
    before = s.end_offset(1)
    s.kill(1)
    s.drop(held)
    deaf = s.hold("FetchRequest", source=3, to=2)
    s.until(lambda: s.leader == 2, "2 leads")
    after = s.end_offset(2)
    if before is not None and after is not None and after < before:
        s.find("end-offset", f"the end was {before}, now it is {after}")
    s.drop(deaf)


def moved_before_cut(s: Stage) -> None:
    """B27. Brokers 2 and 3 take turns in leading alone and write different records. What 2 wrote is
    committed, and 3 learns the new high watermark while its log still needs two truncations to agree with
    2."""
    s.commit(b"a")
    s.split()
    s.fence(1)
    s.until(lambda: s.leader == 2, "2 leads")
    s.fence(2)
    s.until(lambda: s.leader == 3, "3 leads")
    s.write(3, b"x")
    s.unfence(2)
    s.fence(3)
    s.until(lambda: s.leader == 2, "2 leads, from the ELR")
    s.write(2, b"y")
    s.unfence(3)
    s.fence(2)
    s.until(lambda: s.leader == 3, "3 leads, from the ELR")
    s.write(3, b"x2")
    s.unfence(2)
    s.fence(3)
    s.until(lambda: s.leader == 2, "2 leads once more")
    s.write(2, b"z")
    s.mend(1, 2)
    s.unfence(1)
    s.until(lambda: s.isr == {1, 2} and s.high_watermark(2) == 3, "y and z committed by 1 and 2")
    s.mend(2, 3)
    s.unfence(3)
    s.run(2_000)


def new_leader_alone(s: Stage) -> None:
    """docs/protocol.md 4.5: a new leader could acknowledge a record before its followers have fetched from it
    even once."""
    s.commit(b"m1")
    deaf = s.hold("FetchRequest", to=2)
    s.kill(1)
    s.until(lambda: s.leader == 2, "2 leads")
    call = s.produce(2, b"m2")
    s.run(1_000)
    s.kill(2)
    s.drop(deaf)
    s.until(lambda: s.leader == 3, "3 leads")
    s.say(f"m2 acknowledged: {s.is_acked(call)}")


def no_move_on_shrink(s: Stage) -> None:
    """B43, first half. Broker 3 is dropped from the ISR. With that, what brokers 1 and 2 have is committed,
    without another fetch."""
    s.commit(b"m1")
    s.cut(1, 3)
    call = s.produce(1, b"m2")
    s.until(lambda: s.isr == {1, 2}, "3 dropped")
    s.must(lambda: call.done, "m2 acknowledged with the smaller ISR", 1_000, "stall")


def wait_for_ineligible(s: Stage) -> None:
    """B43, second half. Broker 3 was caught up a moment ago, and is now fenced and out of the ISR; the leader
    must not wait for it."""
    s.commit(b"m1")
    s.isolate(3)
    s.run(1_000)
    call = s.produce(1, b"m2")
    s.must(lambda: call.done, "m2 acknowledged by 1 and 2", 5_000, "stall")


def runs_ahead(s: Stage) -> None:
    """B60. Broker 1 is alone in the ISR, and MinISR is 1. Broker 2 is back and always has all but the records
    of the last moment, which are on their way."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    s.world.lag[1, 2] = 20.0
    s.rejoin(2)
    for n in range(400):
        s.produce(1, b"x%d" % n)
        s.run(5)
        if 2 in s.isr:
            return
    behind = s.high_watermark(1) - s.leo(2)
    s.find("liveness", f"2 has not joined in 2 s of load; it is {behind} records behind the high watermark")


SCHEDULES = (
    Guided("hw_no_minisr", "B12", ("hw_no_minisr",), below_min_isr, frozenset({"I18", "I04", "I01"})),
    Guided("hw_gate_maximal", "B13", ("hw_gate_maximal",), gate_on_maximal, frozenset({"I18", "I04", "I01"})),
    Guided(
        "no_offset_not_available", "B14", ("no_offset_not_available",), stale_end, frozenset({"end-offset"})
    ),
    Guided("hw_before_trunc", "B27", ("hw_before_trunc",), moved_before_cut, frozenset({"I03"})),
    Guided(
        "hw_ignores_unknown",
        "4.5",
        ("hw_ignores_unknown",),
        new_leader_alone,
        frozenset({"I02", "I17", "lost-write"}),
    ),
    Guided(
        "no_adv_on_isr",
        "B43",
        ("no_adv_on_isr",),
        no_move_on_shrink,
        frozenset({"stall"}),
        Setting(lag_ms=4_000),  # what only a look by the clock finds, half a lag time later, has waited
    ),
    Guided("hw_waits_ineligible", "B43", ("hw_waits_ineligible",), wait_for_ineligible, frozenset({"stall"})),
    Guided(
        "hw_passes_joining",
        "B60",
        ("hw_passes_joining",),
        runs_ahead,
        frozenset({"liveness"}),
        Setting(min_isr=1),
    ),
)
