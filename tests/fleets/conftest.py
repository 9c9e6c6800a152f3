"""Fleets for the tests of this folder, each below a state root of its own, and an eye for what they leave."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from wrackline.fleets.netns.fleet import NetnsFleet


@pytest.fixture(scope="module")
def fleet(state_root: Path, request: pytest.FixtureRequest) -> Iterator[NetnsFleet]:
    name = f"tf-{request.module.__name__.rpartition('_')[2]}-{os.getpid()}"
    with NetnsFleet(name, ["n1", "n2"], state_dir=state_root, disk_mb=64) as made:
        yield made
