"""Guided schedules against our broker under load: the defect shows, the right broker does not lose a record."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer
from nem_doubles import Recorded

from harness.fleet.netns import NetnsFleet
from harness.systems.base import TopicSpec
from harness.systems.wrackline import WracklineSystem
from nemesis.runner import Nemesis
from nemesis.schedule import plan
from nemesis.spec import load

pytestmark = [pytest.mark.fleet, pytest.mark.slow]
CONFIG = {
    "session_timeout_ms": 1_500,
    "heartbeat_interval_ms": 200,
    "replica_lag_time_max_ms": 4_000,
    "replica_fetch_backoff_ms": 200,
}


@dataclass
class Load:
    """A confluent-kafka producer that never rests; remembers what was acknowledged."""

    run_id: bytes
    acked: dict[bytes, int] = field(default_factory=dict)
    """Value -> offset, of partition 0: an offset can be acknowledged twice when records are lost."""
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, bootstrap: str, acks: str) -> None:
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": acks,
                "linger.ms": 2,
                "message.timeout.ms": 3_000,
                "topic.metadata.refresh.interval.ms": 500,
                "reconnect.backoff.max.ms": 500,
                "retries": 0,
            }
        )
        number = 0
        while not self.stop.wait(0.004):
            value = b"%s %08d" % (self.run_id, number) + b"." * 500
            producer.produce("log", value, partition=0, on_delivery=self._delivered)
            producer.poll(0)
            number += 1
        producer.flush(5)

    def _delivered(self, error: object, message: Message) -> None:
        offset, value = message.offset(), message.value()
        if error is None and offset is not None and value is not None:
            self.acked[value] = offset


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@contextmanager
def cluster(cache: Path, state_dir: Path, *, defects: tuple[str, ...] = ()) -> Iterator[WracklineSystem]:
    with NetnsFleet("guided", ("n1", "n2", "n3", "c1"), state_dir=state_dir) as fleet:
        system = WracklineSystem(
            fleet,
            brokers=("n1", "n2", "n3"),
            controllers=("c1",),
            cluster_id="test-guided",
            defects=defects,
            config=CONFIG,
            bundle_cache=cache,
        )
        system.install()
        system.start_all()
        system.wait_ready()
        system.create_topic(TopicSpec("log", 1, 3, {"min.insync.replicas": "2"}))
        yield system
        system.close()


def lost_after(system: WracklineSystem, schedule: str, acks: str) -> tuple[dict[bytes, int], Recorded]:
    """Run the schedule under load; what was acknowledged and is not in the leader's log after healing."""
    fleet = system.fleet
    load_under_way = Load(schedule.encode())
    recorded = Recorded()
    nemesis = Nemesis(plan(load({"guided": schedule}), 1, 60.0), fleet, system, recorded, topics=("log",))
    with fleet.entered():
        thread = threading.Thread(target=load_under_way.run, args=(system.bootstrap(), acks))
        thread.start()
    try:
        nemesis.start()
        assert nemesis.wait(60)
    finally:
        load_under_way.stop.set()
        thread.join()
        repairs = nemesis.stop_and_heal()
    assert repairs == []
    for event in recorded.events:
        assert event.extra is not None
        assert "error" not in event.extra, event.extra
    assert load_under_way.acked
    return missing(system, load_under_way.acked), recorded


def missing(system: WracklineSystem, acked: Mapping[bytes, int]) -> dict[bytes, int]:
    state = system.describe().partition("log", 0)
    assert state is not None
    assert state.full_isr
    leader = next(node for node in system.brokers if node.node_id == state.leader)
    log = system.replica_log(leader, "log", 0)
    assert log.problem is None
    stored = {one.offset: one.value for one in log.records}
    return {value: offset for value, offset in acked.items() if stored.get(offset) != value}


def proved(recorded: Recorded, *ids: str) -> bool:
    return all(recorded.ended(one)["proved"] is True for one in ids)


def test_truncating_to_the_high_watermark_loses_acknowledged_records(cache: Path, tmp_path: Path) -> None:
    with cluster(cache, tmp_path, defects=("trunc_hw",)) as system:
        lost, recorded = lost_after(system, "b01-truncate-to-hw", "all")
        assert proved(recorded, "g1", "g2", "g3"), recorded.events
        assert lost


def test_the_right_broker_loses_nothing_but_what_acks_1_never_promised(cache: Path, tmp_path: Path) -> None:
    with cluster(cache, tmp_path) as system:
        lost, recorded = lost_after(system, "b01-truncate-to-hw", "all")
        assert proved(recorded, "g1", "g2", "g3"), recorded.events
        assert lost == {}
        lost, recorded = lost_after(system, "power-cut-lossy", "all")
        assert proved(recorded, "g1"), recorded.events
        assert recorded.ended("g1")["lossy"]
        assert lost == {}
        lost, recorded = lost_after(system, "acks1-leader-power-cut", "1")
        assert proved(recorded, "g1", "g2"), recorded.events
        assert lost
