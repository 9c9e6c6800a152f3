"""A fleet: namespaces of this machine whose disks are small and have the file system xfs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from wrackline.api import Fleet, FleetSpec, NetnsFleet

DISK_MB = 320
"""The smallest that mkfs.xfs makes is 300 MB."""


class NetnsXfsSpec(FleetSpec):
    """What a specification says of it."""

    kind: Literal["netns-xfs"] = "netns-xfs"
    """Hosts are namespaces of this machine, with xfs."""

    def build(self, name: str, state_dir: Path) -> Fleet:
        return NetnsFleet(name, self.hosts, state_dir=state_dir, disk_mb=DISK_MB, filesystem="xfs")
