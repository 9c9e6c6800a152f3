"""Abilities that a fault may need of a host and a fleet may have. By it a fault that cannot be done is
refused before there is a host."""

from __future__ import annotations

from enum import StrEnum


class Ability(StrEnum):
    """Each value completes the sentence "the fault needs ..."."""

    ROOT = "commands on its hosts as root"
    NETWORK = "hosts with a network of their own, in which packets can be dropped"
    POWER = "a switch for the power of its hosts"
    DISK = "a data disk that is a file system of its own"
    SWAPPED_DISK = "data disks that can be exchanged while a host is off"
    PAGE_CACHE = "data disks whose unsynced bytes can be dropped while a host stays on"
    THROTTLE = "data disks that can be held back from outside"
    KERNEL = "hosts with a kernel of their own: their clock, their memory"
    CLIENTS = "clients with a network of their own, in which packets can be dropped"
    HYPERVISOR = "a hypervisor that can be asked to hold back a host's disk, link and processors"
