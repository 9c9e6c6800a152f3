"""One host of a ``libvirt`` fleet as a machine: a domain, begun, held back and ended by libvirt."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field

from wrackline.fleets.base import FleetError
from wrackline.fleets.libvirt.domain import DATA_DISK, Computer, Domain, xml
from wrackline.fleets.libvirt.virsh import Virsh
from wrackline.fleets.local.domains import processes
from wrackline.fleets.local.look import is_alive, signal_all
from wrackline.fleets.local.network.links import mac_address
from wrackline.fleets.local.network.namespaces import ip_batch, run_tool, wait_dead
from wrackline.fleets.qemu.virtual.host import VirtualHost

FORGOTTEN_S = 10.0
"""So long libvirt may take to notice that a QEMU has ended."""
LONGEST_SOCKET = 107


@dataclass(slots=True)
class DomainHost(VirtualHost):
    """A host as a libvirt domain; not thread-safe, since its power switch keeps one caller at a time."""

    virsh: Virsh = field(default_factory=Virsh)
    computer: Computer | None = None
    _pid: int | None = field(default=None, init=False)
    """Of its QEMU."""

    @property
    def domain(self) -> Domain:
        return Domain(
            self.state.netns(self.host.name),
            mac_address(self.host.address),
            self.disks.system,
            self.disks.data,
            self.folder.log(self.host.name),
            # Not on the tmpfs: a libvirtd with a mount namespace of its own would not see it.
            self.folder.path / f"{self.host.name}.agent",
        )

    @property
    def is_on(self) -> bool:
        return self._pid is not None and is_alive(self._pid)

    @property
    def pid(self) -> int | None:
        return self._pid

    # -- power-on --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        assert self.computer is not None
        domain = self.domain
        if len(os.fsencode(domain.port)) > LONGEST_SOCKET:
            raise FleetError(
                f"{domain.port} is too long for a socket, which may have {LONGEST_SOCKET} characters: "
                "take a shorter --state-dir"
            )
        self._await_forgotten()
        self.virsh.create_paused(xml(self.computer, domain))
        pids = processes(domain.name)
        if not pids:
            raise FleetError(
                f"host {self.host.name}: libvirt started it, and no process of this machine has it: "
                f"is {self.virsh.uri} on this machine?"
            )
        self._pid = pids[0]
        self.paused = False
        self._take_link(self._pid, domain.tap)
        self.virsh("resume", domain.name)
        self._listen(domain.port, self.boot_s)

    def _take_link(self, pid: int, tap: str) -> None:
        """Moves the host's link from libvirt's network to the fleet's, before the guest has sent a packet."""
        control = self.state.control
        run_tool(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "link", "set", tap, "netns", control])
        ip_batch(
            [f"link set {tap} name {self.link}", f"link set {self.link} master br0 up"],
            netns=control,
        )

    # -- while it is on --------------------------------------------------------------------------------------

    def hold_back(self, bytes_per_s: int | None) -> None:
        """The data disk reads and writes so many bytes a second each at most. Raises FleetError."""
        each = str(bytes_per_s or 0)
        limits = ("--read-bytes-sec", each, "--write-bytes-sec", each)
        self._ask("blkdeviotune", DATA_DISK, "--live", *limits)

    def set_link(self, *, up: bool) -> None:
        """Pull the network cable, or plug it in: the guest sees its carrier go. Raises FleetError."""
        self._ask("domif-setlink", self.domain.mac, "up" if up else "down")

    def pause(self) -> None:
        """Stop all processors. Raises FleetError."""
        self._ask("suspend")
        self.paused = True

    def resume(self) -> None:
        """Raises FleetError."""
        self._ask("resume")
        self.paused = False

    def _ask(self, order: str, *words: str) -> None:
        if not self.is_on:
            raise FleetError(f"host {self.host.name} is off: switch it on first")
        self.virsh(order, self.domain.name, *words)

    # -- power-off -------------------------------------------------------------------------------------------

    def switch_off(self) -> None:
        """Stops the processors, with all that is in the guest's memory. What had reached the disk stays."""
        if self.is_on:
            self.virsh.destroy(self.domain.name)

    def destroy(self) -> None:
        """End its QEMU by hand, and wait until libvirt knows. Idempotent. Raises FleetError."""
        self.hang_up()
        pids = processes(self.domain.name)
        signal_all(pids, signal.SIGKILL)
        wait_dead(pids)
        if self._pid is not None:
            self._pid = None
            with contextlib.suppress(FleetError):  # libvirt has gone itself: it has nothing to forget
                self._await_forgotten()

    def _await_forgotten(self) -> None:
        """Waits until libvirt has no domain of the name any more. Raises FleetError."""
        name, deadline = self.domain.name, time.monotonic() + FORGOTTEN_S
        while name in self.virsh.domains():
            if time.monotonic() > deadline:
                raise FleetError(
                    f"libvirt has a domain {name} that is none of this fleet: "
                    f"`virsh -c {self.virsh.uri} destroy {name}` ends it"
                )
            time.sleep(0.05)
