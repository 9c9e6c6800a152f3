"""The settings of the fleet ``process`` in a specification."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.fleets.process.fleet import ProcessFleet
from wrackline.fleets.spec import MOST_DISKS, FleetSpec

FOLDERS = (
    "hosts of the fleet process are folders of this machine, without root; those of the fleet netns are not"
)
UNTESTED = (
    "durability: the hosts shared this machine's page cache, so what a broker had written survived the kill "
    "of its process, synced or not; no host lost its power",
    "partitions and lost packets: the hosts were on this machine's loopback",
)


class ProcessSpec(FleetSpec):
    """Settings of the fleet ``process``."""

    needs_root: ClassVar[bool] = False
    most_disks: ClassVar[int] = MOST_DISKS
    shares_folder: ClassVar[bool] = True

    kind: Literal["process"] = "process"
    """Hosts are folders of this machine, and their nodes processes on loopback."""

    @property
    def untested(self) -> tuple[str, ...]:
        return UNTESTED

    def lacks(self, ability: Ability) -> str:  # noqa: ARG002
        """Returns why faults cannot have this ability: only processes are there, to be killed, paused and
        started."""
        return FOLDERS

    def build(self, name: str, state_dir: Path) -> Fleet:
        return ProcessFleet(name, self.hosts, disks=self.disks, state_dir=state_dir)
