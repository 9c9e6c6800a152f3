"""The default fleet: hosts on one Linux machine, each in namespaces of its own, on a network of their own.

What one fleet ``f`` with host ``n1`` consists of, and nothing else:

* network namespace ``wl-f`` with bridge ``br0`` (first address of the subnet). The harness enters it;
* network namespace ``wl-f-n1`` with ``eth0``, joined to the bridge; the machine's own network has no part in
  it;
* the processes of ``hostinit.py``: PID 1 of the host in its mount, PID, UTS and IPC namespaces, and sshd;
* an image file behind a loop device, mounted at ``/data`` in the host's mount namespace only;
* a folder below the state root with keys, images and logs, and a tmpfs in it with what hosts write elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from wrackline.fleets.local.disk import make_image
from wrackline.fleets.local.fleet import LocalFleet
from wrackline.fleets.local.keys import host_files, sshd_config
from wrackline.fleets.local.power import LocalPower
from wrackline.fleets.local.state import DEFAULT_STATE_ROOT
from wrackline.fleets.netns.machine import Machine


class NetnsFleet(LocalFleet):
    """Hosts in namespaces of this machine (needs root). One owner per name; several fleets live side by
    side."""

    kind: ClassVar[str] = "netns"
    reads_here: ClassVar[bool] = True
    power: LocalPower[Machine]

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        *,
        subnet: str = "198.18.0.0/24",
        state_dir: Path = DEFAULT_STATE_ROOT,
        disk_mb: int = 256,
        filesystem: str = "ext4",
        detached: bool = False,
    ) -> None:
        """``state_dir``: folder for the folders of all fleets. ``detached``: the fleet outlives this
        process."""
        super().__init__(
            name,
            hosts,
            subnet=subnet,
            state_dir=state_dir,
            disk_mb=disk_mb,
            filesystem=filesystem,
            detached=detached,
        )
        self._machines = {
            host.name: Machine(self.state, self.folder, host, self._network.prefixlen) for host in self.hosts
        }
        self.power = LocalPower(self._machines, self._forget)

    def _machine_list(self) -> Sequence[Machine]:
        return list(self._machines.values())

    def _prepare(self) -> None:
        """Prepares nothing: hosts are made of this machine."""

    def _build_hosts(self, public_key: str, host_key: str) -> None:
        sshd = sshd_config()
        for machine in self._machines.values():
            machine.files = host_files(
                machine.host, self.hosts, public_key=public_key, host_key=host_key, sshd=sshd
            )
        self._each(
            lambda host: make_image(self.folder.image(host.name), self.state.filesystem, self.state.disk_mb)
        )
