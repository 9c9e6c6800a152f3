"""Guided schedules against our broker under load show the defect; the right broker does not lose a record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nemesis.canaries import watched
from tests.nemesis.doubles import Recorded
from tests.nemesis.load import CONFIG, missing, producing, started
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]


@contextmanager
def cluster(
    bundle_cache: Path, state_dir: Path, *, defects: tuple[str, ...] = ()
) -> Iterator[WracklineSystem]:
    hosts = ("n1", "n2", "n3", "c1")
    config = {**CONFIG, "replica_lag_time_max_ms": 4_000}
    settings = {"brokers": hosts[:3], "controllers": hosts[3:], "defects": defects, "config": config}
    with (
        NetnsFleet(f"guided-{os.getpid()}", hosts, state_dir=state_dir) as fleet,
        started(fleet, bundle_cache, **settings) as system,
    ):
        yield system


def lost_after(system: WracklineSystem, schedule: str, acks: str) -> tuple[dict[bytes, int], Recorded]:
    """Run the schedule under load; what was acknowledged and is not in the leader's log after healing."""
    recorded = Recorded()
    planned = plan(load({"guided": schedule}), 1, 60.0)
    with watched(system.fleet) as canaries, producing(system, acks) as under_way:
        nemesis = Nemesis(planned, system.fleet, system, recorded, topics=("log",), canaries=canaries)
        try:
            nemesis.start()
            assert nemesis.wait(60)
        finally:
            under_way.stop.set()
            repairs = nemesis.stop_and_heal()
    assert repairs == []
    for event in recorded.events:
        assert event.extra is not None
        assert "error" not in event.extra, event.extra
    assert under_way.acked
    return missing(system, under_way.acked), recorded


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
