"""B21, B27, B30: who is in the ISR or eligible, and what the leader believes of others."""

from __future__ import annotations

from wrackline.broker.model.messages.admin import ElectionType
from wrackline.simulator.guided.schedule import guided
from wrackline.simulator.guided.stage import Stage


@guided("hw_before_trunc", "B27", "I03")
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


@guided("elr_not_cleared", "B30", "I14", "I02", "lost-write")
def stays_eligible(s: Stage) -> None:
    """B30, case G. Broker 1 is alone in the ISR and broker 2 in the ELR. Broker 3 joins the ISR, both members
    commit m2 and are killed; then broker 2, which lacks m2, comes back."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    s.mend(3, 1)
    s.unfence(3)
    s.until(lambda: s.isr == {1, 3}, "3 back in the ISR")
    s.commit(b"m2")
    s.kill(1, 3)
    s.unfence(2)
    s.run(6_000)


@guided("keep_stale_peers", "B21", "I02", "lost-write")
def others_led(s: Stage) -> None:
    """B21. Broker 3 has replicated m1 from broker 1, broker 2 has not. Metadata does not reach broker 1 while
    broker 2 leads, broker 3 follows it and truncates m1, and broker 2 is fenced. Then broker 1 learns at once
    that it leads again with 3 in the ISR, and still remembers how far 3 had come before."""
    s.commit(b"m0")
    s.cut(2, 1)
    s.write(1, b"m1")
    s.until(lambda: s.leo(3) == 2, "m1 on 3")
    s.hold("BrokerHeartbeatRequest", source=2)
    s.run(2_000)
    deaf = s.hold("MetadataFetchResponse", to=1)
    s.reassign(2, 1, 3)
    s.run(50)  # this change is on its way to 1, and nothing behind it
    s.elect(ElectionType.PREFERRED)
    s.until(lambda: s.leo(3) == 1, "3 level with 2, its new leader")
    s.until(lambda: s.fenced(2), "2 fenced", 1_500)
    s.must(lambda: s.elected == 1 and s.isr == {1, 3}, "1 elected, with 3")
    s.release(deaf)
    s.run(1_000)
