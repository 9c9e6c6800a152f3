"""A fleet in memory, and a system on it."""

from __future__ import annotations

import pytest

from tests.nemesis.doubles import FakeFleet, FakeSystem, Recorded, cluster, partition


@pytest.fixture
def fleet() -> FakeFleet:
    return FakeFleet()


@pytest.fixture
def system(fleet: FakeFleet) -> FakeSystem:
    return FakeSystem(fleet, cluster(partition(0, leader=2)))


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()
