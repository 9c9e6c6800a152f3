"""B04, B23, B40, B49 and docs/protocol.md 2.13: late responses, retries, and which record an acknowledgement
is for."""

from __future__ import annotations

from dataclasses import replace

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import FetchPartition, FetchRequest
from wrackline.simulator.guided.schedule import guided
from wrackline.simulator.guided.setting import Setting, T, diverges, has_high_watermark
from wrackline.simulator.guided.stage import Stage


@guided("apply_stale_off", "B23", "I02", "lost-write", setting=Setting(replicas=(3, 2, 1)))
def stale_answer(s: Stage) -> None:
    """B23. Broker 3 leads at first and has x, which no other has. It is answered twice that its log diverges
    from that of broker 2; the first answer is delayed and arrives when 3 has long been in sync again."""
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


apply_stale_resp = replace(stale_answer, name="apply_stale_resp", defects=("apply_stale_resp",))


@guided("keep_told_session", "2.13", "stall")
def high_watermark_not_taken(s: Stage) -> None:
    """docs/protocol.md 2.13: broker 1 answers broker 3 that b is committed, but the answer arrives when 3
    already follows 2, which it cannot reach, and is dropped. Then broker 1 leads again, broker 3 goes on in
    the fetch session it has there, and no further record is written: 3 must still learn the high
    watermark."""
    s.commit(b"a")
    s.cut(2, 3)
    late = s.hold("FetchResponse", source=1, to=3, limit=1, when=has_high_watermark(2))
    s.acked(1, b"b")
    s.until(lambda: bool(late.held), "3 told that b is committed")
    s.fence(1)
    s.until(lambda: s.leader == 2, "2 leads")
    s.run(100)
    s.release(late)
    s.run(100)
    s.unfence(1)
    s.until(lambda: 1 in s.isr, "1 back in the ISR")
    s.fence(2)
    s.until(lambda: s.leader == 1, "1 leads again")
    s.must(lambda: s.high_watermark(3) == 2, "3 knows that b is committed", 20_000, "stall")


@guided(
    "no_client_epoch",
    "B04",
    "poll-skip",
    setting=Setting(topic={"unclean.leader.election.enable": "true"}, losing=True),
)
def cut_under_a_consumer(s: Stage) -> None:
    """B04. A consumer has read a and m1. Broker 3, which lacks m1, is elected uncleanly and writes x and y.
    The consumer fetches on from its position, and sends the leader epoch it knows."""
    s.commit(b"a")
    s.isolate(3)
    s.commit(b"m1")
    known = s.world.image.partition(T)
    assert known is not None
    s.kill(2)
    s.until(lambda: s.isr == {1}, "2 out of the ISR")
    s.kill(1)
    s.rejoin(3)
    s.until(lambda: s.leader == 3, "3 leads, uncleanly")
    s.write(3, b"x")
    s.write(3, b"y")
    s.rejoin(1)
    s.rejoin(2)
    s.until(lambda: s.high_watermark(3) == 3, "x and y committed")
    expected = FetchPartition(T, 2, 10_000, current_leader_epoch=known.leader_epoch)
    answer = s.world.asked(3, FetchRequest(500, 1, 10_000, (expected,)))
    result = answer.partitions[0]
    if result.error is ErrorCode.none and result.records:
        s.find("poll-skip", "the consumer reads on at 2, x at 1 is new and it will never be told")
