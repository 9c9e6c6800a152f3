"""Guided schedules against our broker under load show the defect; the right broker does not lose a record."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nemesis.canaries import watched
from tests.nemesis.doubles import Recorded
from tests.nemesis.load import Load, missing
from wrackline.fleets.canary import Canaries
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import TopicSpec
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]
CONFIG = {
    "session_timeout_ms": 1_500,
    "heartbeat_interval_ms": 200,
    "replica_lag_time_max_ms": 4_000,
    "replica_fetch_backoff_ms": 200,
}


@contextmanager
def cluster(
    bundle_cache: Path, state_dir: Path, *, defects: tuple[str, ...] = ()
) -> Iterator[WracklineSystem]:
    with NetnsFleet(f"guided-{os.getpid()}", ("n1", "n2", "n3", "c1"), state_dir=state_dir) as fleet:
        system = WracklineSystem(
            fleet,
            brokers=("n1", "n2", "n3"),
            controllers=("c1",),
            cluster_id="test-guided",
            defects=defects,
            config=CONFIG,
            bundle_cache=bundle_cache,
        )
        system.install()
        system.start_all()
        system.wait_ready()
        system.create_topic(TopicSpec("log", 1, 3, {"min.insync.replicas": "2"}))
        yield system
        system.close()


def lost_after(system: WracklineSystem, schedule: str, acks: str) -> tuple[dict[bytes, int], Recorded]:
    """Run the schedule under load; what was acknowledged and is not in the leader's log after healing."""
    with watched(system.fleet) as canaries:
        return _lost_after(system, schedule, acks, canaries)


def _lost_after(
    system: WracklineSystem, schedule: str, acks: str, canaries: Canaries
) -> tuple[dict[bytes, int], Recorded]:
    fleet = system.fleet
    load_under_way = Load(schedule.encode())
    recorded = Recorded()
    planned = plan(load({"guided": schedule}), 1, 60.0)
    nemesis = Nemesis(planned, fleet, system, recorded, topics=("log",), canaries=canaries)
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


def assert_proved(recorded: Recorded, *ids: str) -> None:
    for one in ids:
        recorded.assert_proved(one)


def test_truncating_to_the_high_watermark_loses_acknowledged_records(
    bundle_cache: Path, tmp_path: Path
) -> None:
    with cluster(bundle_cache, tmp_path, defects=("trunc_hw",)) as system:
        lost, recorded = lost_after(system, "b01-truncate-to-hw", "all")
        assert_proved(recorded, "g1", "g2", "g3")
        assert lost


def test_the_right_broker_loses_nothing_but_what_acks_1_never_promised(
    bundle_cache: Path, tmp_path: Path
) -> None:
    with cluster(bundle_cache, tmp_path) as system:
        lost, recorded = lost_after(system, "b01-truncate-to-hw", "all")
        assert_proved(recorded, "g1", "g2", "g3")
        assert lost == {}
        lost, recorded = lost_after(system, "power-cut-lossy", "all")
        assert_proved(recorded, "g1")
        assert recorded.ended("g1")["lossy"]
        assert lost == {}
        lost, recorded = lost_after(system, "acks1-leader-power-cut", "1")
        assert_proved(recorded, "g1", "g2")
        assert lost
