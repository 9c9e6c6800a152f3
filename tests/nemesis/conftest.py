"""A fleet in memory, whose node processes are gone as soon as they are killed, and a system on it."""

from __future__ import annotations

import pytest

from tests.nemesis.doubles import FakeFleet, FakeSystem, Recorded, cluster, partition


@pytest.fixture
def fleet() -> FakeFleet:
    fleet = FakeFleet()
    fleet.answers["/stat"] = (0, "gone")
    return fleet


@pytest.fixture
def system(fleet: FakeFleet) -> FakeSystem:
    return FakeSystem(fleet, cluster(partition(0, leader=2)))


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()
