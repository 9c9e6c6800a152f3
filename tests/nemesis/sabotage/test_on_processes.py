"""Faults of processes and of the cluster are sabotaged on folders of this machine, without namespaces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nemesis.sabotage.clusters import cluster
from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.test_on_cluster import HOSTS, in_order
from tests.nemesis.sabotage.trials import ON_PROCESSES
from wrackline.fleets.process.fleet import ProcessFleet


@pytest.fixture(scope="module")
def place(bundle_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fleet")
    with (
        ProcessFleet(f"sap-{os.getpid()}", HOSTS, state_dir=folder) as fleet,
        cluster(fleet, bundle_cache, brokers=HOSTS, controllers=HOSTS) as place,
    ):
        yield place


@pytest.mark.parametrize(("trial", "sabotage"), every(ON_PROCESSES))
def test_nobody_is_taken_in(place: Place, trial: Trial, sabotage: Sabotage) -> None:
    in_order(place)
    check(trial, place, sabotage)
