"""The actions of guided schedules on the disks of single hosts."""

from __future__ import annotations

from wrackline.fleets.base import Fleet, SwappedDisk
from wrackline.fleets.folders import data_dir
from wrackline.nemesis.faults.disks.power import early_witness
from wrackline.nemesis.guided.steps import GuidedError
from wrackline.systems.base import System
from wrackline.systems.segments import HIGH_WATERMARKS


def sync(fleet: Fleet, system: System, name: str) -> None:
    """Syncs what the host has written to its data disk. Raises FleetError."""
    [host] = [node.host for node in system.nodes if node.host.name == name]
    fleet.remote(host).run(f"sync -f {data_dir(host)}")


def keep_copy(fleet: Fleet, system: System, name: str) -> None:
    """A copy of the host's data disk is kept, all of it synced, with a file by which it is known later.
    Raises FleetError, and GuidedError where no disk can be copied."""
    [host] = [node.host for node in system.nodes if node.host.name == name]
    if not isinstance(fleet.power, SwappedDisk):
        raise GuidedError(f"{name}: fleet {fleet.name} cannot copy a disk")
    fleet.remote(host).run(early_witness(host.data_dir))
    fleet.power.copy_disk(host)


def log_size(fleet: Fleet, system: System, name: str, topic: str, partition: int) -> int:
    """Bytes of the segments of a replica. Raises FleetError."""
    [host] = [node.host for node in system.nodes if node.host.name == name]
    segments = f"{data_dir(host)}/{topic}-{partition}/*.log"
    return int(fleet.remote(host).run(f"cat {segments} 2>/dev/null | wc -c").stdout)


def checkpoint(fleet: Fleet, system: System, name: str, topic: str, partition: int) -> int:
    """The high watermark of a replica that is on its host's disk; 0 where none is. Raises FleetError."""
    [host] = [node.host for node in system.nodes if node.host.name == name]
    result = f"sed -n 's/^{topic} {partition} //p' {data_dir(host)}/{HIGH_WATERMARKS} 2>/dev/null"
    return int(fleet.remote(host).run(f"{result} || true").stdout or 0)
