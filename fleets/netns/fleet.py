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

from typing import ClassVar

from wrackline.fleets.base import Host
from wrackline.fleets.local.fleet import LocalFleet
from wrackline.fleets.netns.machine import Machine


class NetnsFleet(LocalFleet[Machine]):
    """Hosts in namespaces of this machine (needs root). One owner per name; several fleets live side by
    side."""

    kind: ClassVar[str] = "netns"
    reads_here: ClassVar[bool] = True

    def _machine(self, host: Host) -> Machine:
        return Machine(self.state, self.folder, host, self._network.prefixlen)
