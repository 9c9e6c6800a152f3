"""Faults that an administrator makes are sabotaged on a running cluster of ours, in every way there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.nemesis.sabotage.clusters import cluster, settled
from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_CLUSTER
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.systems.base import PartitionState
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = pytest.mark.fleet

HOSTS = ("n1", "n2", "n3")
ORDERS = {("log", 0): (1, 2, 3), ("log", 1): (2, 3, 1), ("log", 2): (3, 1, 2)}
"""Each node leads a partition."""


@pytest.fixture(scope="module")
def place(bundle_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fleet")
    with (
        NetnsFleet(f"sac-{os.getpid()}", HOSTS, state_dir=folder, disk_mb=64) as fleet,
        cluster(fleet, bundle_cache, brokers=HOSTS, controllers=HOSTS) as place,
    ):
        yield place


def in_order(place: Place) -> None:
    """Every node leads one partition, its first replica's."""
    system = place.system
    assert isinstance(system, WracklineSystem)
    settled(place)
    system.reassign(ORDERS)
    settled(place, lambda seen: {(one.topic, one.partition): one.replicas for one in seen} == ORDERS)

    def led_by_first(seen: list[PartitionState]) -> bool:
        """Asks again: on a busy machine a broker may lose its session, and what it led."""
        led = [one for one in seen if one.leader != one.replicas[0]]
        if led:
            system.admin.elect_preferred([(one.topic, one.partition) for one in led], timeout_s=10)
        return not led

    settled(place, led_by_first)


def out_of_order(place: Place) -> None:
    """The first replica of a partition does not lead it: its order is another than when it was elected."""
    in_order(place)
    place.system.reassign({("log", 0): (2, 1, 3)})
    settled(place, lambda seen: seen[0].replicas == (2, 1, 3) and seen[0].leader == 1)


@pytest.mark.parametrize(("trial", "sabotage"), every(ON_CLUSTER))
def test_nobody_is_taken_in(place: Place, trial: Trial, sabotage: Sabotage) -> None:
    (out_of_order if trial.fault == "elect-preferred" else in_order)(place)
    if trial.fault == "controller-failover":
        state = place.system.describe()
        hosts = {node.node_id: node.host.name for node in place.system.nodes}
        active = hosts[state.controller]
        other = next(host for host in HOSTS if host != active)
        trial = replace(trial, hosts=(active,), elsewhere=other)
    if trial.fault == "rolling-restart":
        trial = replace(trial, hosts=HOSTS[:1])
    check(trial, place, sabotage)


def test_an_election_that_changed_nobody_proves_nothing(place: Place) -> None:
    in_order(place)
    ended = place.tried(ON_CLUSTER["elect-preferred"], Sabotage.NONE)
    assert ended["proved"] is False
    assert "0 changed their leader" in ended["proof"]
