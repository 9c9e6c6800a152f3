"""Faults that hit the active controller: the quorum fails over, writes go on, nothing acknowledged is lost.

Once with controllers beside brokers in one process, where the broker goes with it, and once on hosts of their
own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nemesis.canaries import watched
from tests.nemesis.doubles import Recorded
from tests.nemesis.load import Load, missing
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import ClusterState, DeployError, TopicSpec
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]
CONFIG = {
    "session_timeout_ms": 1_500,
    "heartbeat_interval_ms": 200,
    "replica_lag_time_max_ms": 3_000,
    "replica_fetch_backoff_ms": 200,
    "quorum_election_timeout_ms": 500,
    "quorum_fetch_timeout_ms": 1_000,
    "quorum_request_timeout_ms": 1_000,
}
BROKERS = ("n1", "n2", "n3")
DEADLINE_S = 60.0


@contextmanager
def cluster(controllers: tuple[str, ...], tmp_path: Path, bundle_cache: Path) -> Iterator[WracklineSystem]:
    hosts = tuple(dict.fromkeys((*BROKERS, *controllers)))
    with NetnsFleet(f"quorum-{os.getpid()}", hosts, state_dir=tmp_path / "fleet", disk_mb=64) as fleet:
        system = WracklineSystem(
            fleet,
            brokers=BROKERS,
            controllers=controllers,
            cluster_id="test-quorum",
            config=CONFIG,
            bundle_cache=bundle_cache,
        )
        system.install()
        system.start_all()
        system.wait_ready()
        system.create_topic(TopicSpec("log", 1, 3, {"min.insync.replicas": "2"}))
        yield system
        system.close()


@contextmanager
def producing(system: WracklineSystem) -> Iterator[Load]:
    under_way = Load(b"quorum")
    with system.fleet.entered():
        thread = threading.Thread(target=under_way.run, args=(system.bootstrap(), "all"))
        thread.start()
    try:
        yield under_way
    finally:
        under_way.stop.set()
        thread.join()


def wait_for(what: str, met: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not met():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.1)


def healthy(system: WracklineSystem) -> ClusterState | None:
    """Its state when all is well: an active controller, a leader, the full ISR."""
    try:
        state = system.describe(timeout_s=2.0)
    except DeployError:
        return None
    found = state.partition("log", 0)
    return state if state.controller > 0 and found and found.leader > 0 and found.full_isr else None


def settled(system: WracklineSystem) -> ClusterState:
    deadline = time.monotonic() + DEADLINE_S
    while (state := healthy(system)) is None:
        assert time.monotonic() < deadline, f"the cluster was not healthy within {DEADLINE_S:g} s"
        time.sleep(0.1)
    return state


def active(system: WracklineSystem) -> int:
    try:
        return system.describe(timeout_s=2.0).controller
    except DeployError:
        return -1


def hit(system: WracklineSystem, load_under_way: Load, fault: str, target: str = "controller") -> None:
    """The fault lasts until writes go on under another controller; of a fault on all hosts, until it is in
    force."""
    before = settled(system).controller
    recorded = Recorded()
    spec = load({"schedule": [{"at_s": 0, "duration_s": 90, "fault": fault, "target": target}]})
    with watched(system.fleet) as canaries:
        nemesis = Nemesis(
            plan(spec, 1, 100.0), system.fleet, system, recorded, topics=("log",), canaries=canaries
        )
        nemesis.start()
        try:
            recorded.wait_for(lambda: "active" in recorded.phases("f1"), timeout_s=40)
            if target == "controller":
                wait_for(f"another controller after {fault}", lambda: active(system) not in (-1, before))
                now = len(load_under_way.acked)
                wait_for(f"writes after {fault}", lambda: len(load_under_way.acked) > now + 20)
        finally:
            repairs = nemesis.stop_and_heal()
    assert repairs == []
    ended = recorded.assert_proved("f1")
    assert ended["role"] == target
    if target == "controller":
        [struck] = [node.host.name for node in system.nodes if node.node_id == before]
        assert ended["targets"] == [struck]
    settled(system)


def test_the_quorum_and_its_brokers_survive_faults_on_combined_nodes(
    tmp_path: Path, bundle_cache: Path
) -> None:
    with cluster(BROKERS, tmp_path, bundle_cache) as system:
        with producing(system) as under_way:
            for fault in ("kill", "partition", "power-cut", "restart"):
                hit(system, under_way, fault)
        acked = dict(under_way.acked)
        assert missing(system, acked) == {}
        before = system.describe()
        with producing(system) as again:
            wait_for("writes", lambda: len(again.acked) > 20)
            hit(system, again, "power-cut", "all")
            now = len(again.acked)
            wait_for("writes after all power was gone", lambda: len(again.acked) > now + 20)
        after = settled(system)
        assert [one.replicas for one in after.partitions] == [one.replicas for one in before.partitions]
        assert after.partitions[0].leader_epoch > before.partitions[0].leader_epoch


def test_the_quorum_survives_faults_on_hosts_of_its_own(tmp_path: Path, bundle_cache: Path) -> None:
    with cluster(("c1", "c2", "c3"), tmp_path, bundle_cache) as system:
        with producing(system) as under_way:
            for fault in ("pause", "power-cut"):
                hit(system, under_way, fault)
        assert missing(system, dict(under_way.acked)) == {}
