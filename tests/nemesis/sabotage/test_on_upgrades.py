"""Faults of an upgrade are sabotaged on a cluster of ours that begins as an earlier profile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nemesis.sabotage.clusters import cluster, settled
from tests.nemesis.sabotage.sabotages import Place, Sabotage, check
from tests.nemesis.sabotage.trials import ON_UPGRADES
from wrackline.fleets.netns.fleet import NetnsFleet

pytestmark = pytest.mark.fleet

HOSTS = ("n1", "n2", "n3")
LATER = (Sabotage.OFF, Sabotage.OTHER, Sabotage.NONE)
"""What an upgrade does stays: the fault as it is comes last."""


@pytest.fixture(scope="module")
def place(bundle_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fleet")
    with (
        NetnsFleet(f"sau-{os.getpid()}", HOSTS, state_dir=folder, disk_mb=64) as fleet,
        cluster(fleet, bundle_cache, brokers=HOSTS, controllers=HOSTS, profile="kraft35") as place,
    ):
        yield place


def test_nobody_is_taken_in(place: Place) -> None:
    for trial in ON_UPGRADES.values():
        for sabotage in LATER:
            if sabotage in trial.sabotages:
                settled(place)
                check(trial, place, sabotage)
