"""The settings of the fleet ``none`` in a specification: its name."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.fleets.none.fleet import NoFleet
from wrackline.fleets.spec import FleetSpec


class NoFleetSpec(FleetSpec):
    """Settings of the fleet ``none``."""

    needs_root: ClassVar[bool] = False

    kind: Literal["none"] = "none"
    """No hosts are made: for a system that runs already."""
    brokers: Literal[0] = 0
    """There are none."""
    controllers: Literal[0] = 0
    """There are none."""
    combined: Literal[False] = False
    """There is nothing to combine."""
    spares: Literal[0] = 0
    """There are none."""
    spare_controllers: Literal[0] = 0
    """There are none."""
    zookeeper: Literal[0] = 0
    """There is none."""

    def lacks(self, ability: Ability) -> str:  # noqa: ARG002
        return "the fleet none has no hosts"

    def build(self, name: str, state_dir: Path) -> Fleet:  # noqa: ARG002
        return NoFleet(name)
