"""Faults that hit the active controller: the quorum fails over, writes go on, nothing acknowledged is lost.

Once with controllers beside brokers in one process, where the broker goes with it, and once on hosts of their
own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.nemesis.canaries import watched
from tests.nemesis.doubles import Recorded
from tests.nemesis.load import Load, missing, producing, started, wait_until
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import ClusterState, DeployError
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]
BROKERS = ("n1", "n2", "n3")


@contextmanager
def cluster(controllers: tuple[str, ...], tmp_path: Path, bundle_cache: Path) -> Iterator[WracklineSystem]:
    hosts = tuple(dict.fromkeys((*BROKERS, *controllers)))
    with (
        NetnsFleet(f"quorum-{os.getpid()}", hosts, state_dir=tmp_path / "fleet", disk_mb=64) as fleet,
        started(fleet, bundle_cache, brokers=BROKERS, controllers=controllers) as system,
    ):
        yield system


def healthy(system: WracklineSystem) -> ClusterState | None:
    """Its state when all is well: an active controller, a leader, the full ISR."""
    try:
        state = system.describe(timeout_s=2.0)
    except DeployError:
        return None
    found = state.partition("log", 0)
    return state if state.controller > 0 and found and found.leader > 0 and found.full_isr else None


def settled(system: WracklineSystem) -> ClusterState:
    seen: list[ClusterState | None] = []
    wait_until(lambda: seen.append(healthy(system)) or seen[-1], "a healthy cluster")
    state = seen[-1]
    assert state is not None
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
                wait_until(lambda: active(system) not in (-1, before), f"another controller after {fault}")
                now = len(load_under_way.acked)
                wait_until(lambda: len(load_under_way.acked) > now + 20, f"writes after {fault}")
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
            wait_until(lambda: len(again.acked) > 20, "writes")
            hit(system, again, "power-cut", "all")
            now = len(again.acked)
            wait_until(lambda: len(again.acked) > now + 20, "writes after all power was gone")
        after = settled(system)
        assert [one.replicas for one in after.partitions] == [one.replicas for one in before.partitions]
        assert after.partitions[0].leader_epoch > before.partitions[0].leader_epoch


def test_the_quorum_survives_faults_on_hosts_of_its_own(tmp_path: Path, bundle_cache: Path) -> None:
    with cluster(("c1", "c2", "c3"), tmp_path, bundle_cache) as system:
        with producing(system) as under_way:
            for fault in ("pause", "power-cut"):
                hit(system, under_way, fault)
        assert missing(system, dict(under_way.acked)) == {}
