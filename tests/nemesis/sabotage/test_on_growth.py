"""Faults that move replicas are sabotaged on a running cluster of ours that has a spare broker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nemesis.sabotage.clusters import cluster, partitions, settled
from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_GROWTH
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.systems.wrackline.system import WracklineSystem

pytestmark = pytest.mark.fleet

BROKERS, SPARE, CONTROLLER = ("n1", "n2", "n3"), "n4", "c1"
REPLICAS = {("log", 0): (1, 2), ("log", 1): (2, 3), ("log", 2): (3, 1)}


@pytest.fixture(scope="module")
def place(bundle_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fleet")
    hosts = (*BROKERS, SPARE, CONTROLLER)
    with (
        NetnsFleet(f"sag-{os.getpid()}", hosts, state_dir=folder, disk_mb=64) as fleet,
        cluster(
            fleet, bundle_cache, brokers=BROKERS, controllers=(CONTROLLER,), spares=(SPARE,), replicas=2
        ) as place,
    ):
        yield place


def as_in_the_beginning(place: Place) -> None:
    """The spare broker is stopped and unknown to the cluster, the others have the replicas."""
    system = place.system
    assert isinstance(system, WracklineSystem)
    [spare] = [node for node in system.nodes if node.spare]
    for node in system.nodes:
        if not node.spare:
            system.start(node)
    if {(one.topic, one.partition): one.replicas for one in partitions(place)} != REPLICAS:
        settled(place)
        system.reassign(REPLICAS)
        settled(place, lambda seen: {(one.topic, one.partition): one.replicas for one in seen} == REPLICAS)
    if system.is_running(spare):
        system.stop(spare)
    if spare.node_id in system.describe().brokers:
        system.admin.unregister(spare.node_id, timeout_s=10)
    settled(place)


@pytest.mark.parametrize(("trial", "sabotage"), every(ON_GROWTH))
def test_nobody_is_taken_in(place: Place, trial: Trial, sabotage: Sabotage) -> None:
    as_in_the_beginning(place)
    check(trial, place, sabotage)
