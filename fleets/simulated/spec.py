"""The settings of the fleet ``simulated`` in a specification."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.fleets.simulated.fleet import SimulatedFleet
from wrackline.fleets.spec import FleetSpec

UNTESTED = (
    "sockets, files and threads: nodes were the broker's core in virtual time, on a simulated network and "
    "disk",
)


class SimulatedSpec(FleetSpec):
    """Settings of the fleet ``simulated``."""

    needs_root: ClassVar[bool] = False
    virtual: ClassVar[bool] = True

    kind: Literal["simulated"] = "simulated"
    """Hosts are nodes of one process, in virtual time: minutes of a run are seconds, and the same seed is
    the same run, event for event."""
    spares: Literal[0] = 0
    """There are none: a node that joins is not simulated."""
    spare_controllers: Literal[0] = 0
    """There are none."""
    zookeeper: Literal[0] = 0
    """There is none: profiles with ZooKeeper are for `wrackline simulate`."""

    @property
    def untested(self) -> tuple[str, ...]:
        return UNTESTED

    def lacks(self, ability: Ability) -> str | None:  # noqa: ARG002
        """Returns None: which faults there are in virtual time is no question of abilities
        (`wrackline.harness.specification.virtual_time`)."""
        return None

    def build(self, name: str, state_dir: Path) -> Fleet:  # noqa: ARG002
        return SimulatedFleet(name, self.hosts)
