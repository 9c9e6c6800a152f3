"""What the other folders find of the ZooKeeper era by name is there."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ("broker", "nemesis", "simulator", "systems")
NAMES = sorted(
    {
        name
        for folder in HOUSE
        for file in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'"(wrackline\.zookeeper\.[\w.]+(?::\w+)?)"', file.read_text(encoding="utf-8"))
    }
)


def test_each_room_that_needs_the_era_has_a_door() -> None:
    rooms = {name.split(".")[2].partition(":")[0] for name in NAMES}
    assert rooms == {"core", "nemesis", "rules", "server", "simulator", "systems"}


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_behind_a_door_is_there(name: str) -> None:
    assert callable(found := resolve_name(name)) or found
