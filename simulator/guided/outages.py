"""B05, B07, B39, B52, R01 to R04, R26, Z13: outages under settings that allow loss, and disks that are
flushed late or slowly.

But for one these schedules are without a defect: settings do the harm, and the clean arm has others."""

from __future__ import annotations

from wrackline.broker.model.types import FlushMode, NodeId
from wrackline.broker.rules.placement.placement import PlacementRules
from wrackline.simulator.guided.schedule import guided
from wrackline.simulator.guided.setting import CONTROLLER, Setting
from wrackline.simulator.guided.stage import Stage

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
_FLUSH_TAKES_MS = 6_000.0
_UNCLEAN = {"unclean.leader.election.enable": "true"}
_EVERY_WRITE = {"flush_mode": FlushMode.EVERY_WRITE}


def _everybody_loses_power(s: Stage) -> None:
    """Cuts everybody's power: of each log nothing survives but what was flushed."""
    for node in s.world.brokers:
        s.power(node, keep=0)
    s.run(5_000)
    for node in s.world.brokers:
        s.unfence(node)
    s.run(3_000)


def _spread(count: int) -> tuple[NodeId, ...]:
    """Over racks, as topics are placed: the first of these loses power and the second does not."""
    return PlacementRules().place_striped(RACKS, 1, count)[0]


@guided("acks=0", "B07", "lost-write", exposing={"acks": 0})
def nobody_is_asked(s: Stage) -> None:
    """B07. m1 is sent to a leader that nobody follows, with acks=0: the client takes it for written once it
    is sent. The leader dies."""
    s.commit(b"m0")
    s.cut(1, 2, 3)
    s.produce(1, b"m1", acks=s.setting.acks)
    s.run(500)
    s.kill(1)
    s.until(lambda: s.leader == 2, "2 leads")


@guided(
    "flush_every_write",
    "R01",
    "lost-write",
    setting=Setting(broker=_EVERY_WRITE),
    exposing={"broker": {"flush_mode": FlushMode.ON_ROLL}},
)
def flushed_writes(s: Stage) -> None:
    """R01, R04. Every write is flushed before it counts, or a log is flushed when a segment is full; then all
    brokers lose power."""
    for value in (b"m1", b"m2", b"m3"):
        s.commit(value)
    _everybody_loses_power(s)


@guided(
    "flush_every_n",
    "R02",
    "lost-write",
    setting=Setting(broker={"flush_mode": FlushMode.EVERY_N_BATCHES, "flush_messages": 2}),
    exposing={"broker": {"flush_mode": FlushMode.EVERY_N_BATCHES, "flush_messages": 3}},
)
def flushed_batches(s: Stage) -> None:
    """R02. Four batches are acknowledged, and a log is flushed after every second one, or after every third
    one; then all brokers lose power."""
    for value in (b"m1", b"m2", b"m3", b"m4"):
        s.commit(value)
    s.run(100)
    _everybody_loses_power(s)


@guided(
    "flush_every_ms",
    "R03",
    "lost-write",
    setting=Setting(broker={"flush_mode": FlushMode.EVERY_INTERVAL, "flush_ms": 200}),
    exposing={"broker": {"flush_mode": FlushMode.EVERY_INTERVAL, "flush_ms": 60_000}},
)
def flushed_by_the_clock(s: Stage) -> None:
    """R03. A log is flushed five times a second, or once a minute; all brokers lose power half a second after
    m1."""
    s.commit(b"m1")
    s.run(500)
    _everybody_loses_power(s)


@guided(
    "rack_loses_power",
    "R26",
    "lost-write",
    setting=Setting(brokers=4, replicas=_spread(2)),
    exposing={"replicas": (1, 2)},
)
def rack_loses_power(s: Stage) -> None:
    """R26. A rack loses power, and its brokers, 1 and 2, lose what they had not flushed."""
    s.commit(b"m1")
    for node, rack in RACKS.items():
        if rack == "a":
            s.power(node, keep=0)
    s.run(5_000)
    for node, rack in RACKS.items():
        if rack == "a":
            s.unfence(node)
    s.run(3_000)


@guided(
    "slow_disk",
    "Z13",
    "stall",
    setting=Setting(lag_ms=2_000, broker=_EVERY_WRITE),
    exposing={"lag_ms": 60_000},
)
def slow_disk(s: Stage) -> None:
    """Z13. Every write is flushed before it counts, and broker 3's disk takes six seconds to do so. A write
    waits until 3 is dropped from the ISR, and not until its disk has been heard of."""
    s.commit(b"m1")
    s.world.brokers[3].disk.slow_ms = _FLUSH_TAKES_MS
    s.say(f"3's disk takes {_FLUSH_TAKES_MS:.0f} ms to flush")
    call = s.produce(1, b"m2")
    s.must(lambda: s.is_acked(call), "m2 acknowledged without 3", 5_000, "stall")
    s.world.brokers[3].disk.slow_ms = 0.0
    s.say("3's disk is as fast as the others")


@guided(
    "zombie_leader",
    "B05",
    "I05",
    "I17",
    "I01",
    "lost-write",
    defects=("shrink_before_commit",),
    setting=Setting(lag_ms=2_000, min_isr=1),
)
def zombie_leader(s: Stage) -> None:
    """B05. Broker 1 is cut off from everyone but its clients, and still takes itself for the leader."""
    s.commit(b"m1")
    s.cut(1, 2, 3, CONTROLLER)
    call = s.produce(1, b"m2")
    s.until(lambda: s.leader == 2, "2 leads")
    s.commit(b"m3")
    s.run(3_000)
    s.say(f"m2 acknowledged by the zombie: {s.is_acked(call)}")


@guided("no_idempotence", "B39", "duplicate", exposing={"acks": 1})
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


@guided(
    "jepsen_2013",
    "B52",
    "lost-write",
    setting=Setting(lag_ms=2_000),
    exposing={"min_isr": 1, "topic": _UNCLEAN},
)
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
