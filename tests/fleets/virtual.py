"""What a virtual machine must do, whoever runs it, seen by somebody outside."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from wrackline.fleets.base import Hypervisor, PageCache, Remote, SwappedDisk, Throttle
from wrackline.fleets.qemu.virtual.fleet import VirtualFleet


def banner(fleet: VirtualFleet[Any]) -> bytes:
    """The first bytes that sshd of n1 says to whoever connects."""
    with fleet.entered(), socket.create_connection((fleet.hosts[0].address, 22), timeout=3) as connection:
        return connection.recv(4)


def silent(fleet: VirtualFleet[Any]) -> None:
    with pytest.raises(OSError, match=r"timed out|No route"):
        banner(fleet)


def obeys_its_hypervisor(fleet: VirtualFleet[Any], remote: Remote) -> None:
    """Its disk can be held back, its cable pulled, its processors stopped; and each ends."""
    [host], power = fleet.hosts, fleet.power
    for ability in (Hypervisor, PageCache, SwappedDisk, Throttle):
        assert isinstance(power, ability)

    def seconds() -> float:
        began = time.monotonic()
        remote.run("dd if=/dev/zero of=/data/paced bs=64k count=16 oflag=direct 2>&1")
        return time.monotonic() - began

    power.throttle(host, 500_000)
    held_back_s = seconds()
    power.throttle(host, None)
    assert held_back_s > 1.5  # a megabyte, less what may come at once
    assert seconds() < held_back_s

    carrier = "cat /sys/class/net/eth0/carrier_changes"
    before = int(remote.run(carrier).stdout)
    pulls: list[tuple[Callable[[], None], Callable[[], None]]] = [
        (lambda: power.link(host, up=False), lambda: power.link(host, up=True)),
        (lambda: power.pause(host), lambda: power.resume(host)),
    ]
    for stop, go in pulls:
        assert banner(fleet) == b"SSH-"
        stop()
        silent(fleet)
        go()
        assert remote.run("echo back").stdout == "back\n"
    assert int(remote.run(carrier).stdout) == before + 2, "the guest saw its cable go and come"
