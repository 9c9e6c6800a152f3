"""Faults that need a kernel or a machine of their own are sabotaged on a virtual machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nemesis.listeners import Listeners
from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_VMS
from wrackline.fleets.qemu.fleet import QemuFleet

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly]


@pytest.fixture(scope="module")
def place(state_root: Path) -> Iterator[Place]:
    fleet = QemuFleet(f"sav-{os.getpid()}", ["n1"], state_dir=state_root, accel="tcg")
    fleet.prepare(print)
    with fleet:
        system = Listeners(fleet)
        system.install()
        system.start(system.nodes[0])
        yield Place(fleet, system)


@pytest.mark.parametrize(("trial", "sabotage"), every(ON_VMS))
def test_nobody_is_taken_in(place: Place, trial: Trial, sabotage: Sabotage) -> None:
    check(trial, place, sabotage)
