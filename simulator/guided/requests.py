"""B23, B40, B49: answers that come late, retries, and whose record it is that was acknowledged."""

from __future__ import annotations

from simulator.guided.schedule import Guided
from simulator.guided.stage import Setting, Stage, diverges


def stale_answer(s: Stage) -> None:
    """B23. 3 is told twice that its log diverges; the first answer comes when 3 has long been in sync again."""
    s.commit(b"a")
    s.split()
    s.write(3, b"x")
    s.fence(3)
    s.until(lambda: s.leader == 2, "2 leads")
    s.mend(1, 2)
    s.commit(b"y")
    late = s.hold("FetchResponse", source=2, to=3, limit=1, when=diverges)
    s.rejoin(3)
    s.until(lambda: bool(late.held), "3 told that it diverges")
    s.world.create_topic("u", 1, (2, 3))
    s.until(lambda: s.isr == {1, 2, 3}, "3 back in the ISR")
    s.commit(b"z")
    s.release(late)
    s.run(100)


def forgotten_producer(s: Stage) -> None:
    """B40. An idempotent producer's batch is appended, the leader dies before it answers, the retry goes to the
    next one."""
    value = (7).to_bytes(8, "big")
    held = s.hold("ProduceResponse", source=1)
    s.produce(1, value, sequence=0)
    s.until(lambda: s.leo(2) == 1 and s.leo(3) == 1, "the batch on 2 and 3")
    s.kill(1)
    s.drop(held)
    s.until(lambda: s.leader == 2, "2 leads")
    retry = s.produce(2, value, sequence=0)
    s.until(lambda: retry.done, "the retry answered")


def anothers_record(s: Stage) -> None:
    """B49. x waits at 1 for its high watermark; 2 leads and commits y at the same offset; 1 follows."""
    s.commit(b"a")
    s.cut(1, 2, 3)
    s.produce(1, b"x")
    s.run(100)
    s.fence(1)
    s.until(lambda: s.leader == 2, "2 leads")
    s.commit(b"y")
    s.rejoin(1)
    s.until(lambda: s.isr == {1, 2, 3}, "1 back in the ISR")
    s.run(1_000)


SCHEDULES = (
    Guided(
        "apply_stale_off",
        "B23",
        ("apply_stale_off",),
        stale_answer,
        frozenset({"I02", "lost-write"}),
        Setting(replicas=(3, 2, 1)),
    ),
    Guided(
        "apply_stale_resp",
        "B23",
        ("apply_stale_resp",),
        stale_answer,
        frozenset({"I02", "lost-write"}),
        Setting(replicas=(3, 2, 1)),
    ),
    Guided(
        "forget_producer_state",
        "B40",
        ("forget_producer_state",),
        forgotten_producer,
        frozenset({"duplicate"}),
    ),
    Guided(
        "ack_by_hwm_only",
        "B49",
        ("ack_by_hwm_only",),
        anothers_record,
        frozenset({"I17", "I01", "lost-write"}),
    ),
)
