"""A fleet of hosts that are only names: their nodes are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from wrackline.fleets.base import FleetError, Host
from wrackline.fleets.none.fleet import NoPowerSwitch


class SimulatedFleet:
    """The `Fleet` of a run in virtual time. Nobody logs in to its hosts, which have no addresses."""

    def __init__(self, name: str, hosts: Sequence[str]) -> None:
        self.name = name
        self.hosts = tuple(Host(host, host) for host in hosts)
        self.power = NoPowerSwitch("a simulated host has no power switch")

    def up(self) -> None:
        """There is nothing to make."""

    def down(self) -> None:
        """There is nothing to remove."""

    def detach(self) -> None:
        """There is nothing to keep."""

    def remote(self, host: Host) -> NoReturn:
        raise FleetError(f"{host.name}: it is simulated, so nobody logs in to it")

    def entered(self) -> AbstractContextManager[None]:
        return nullcontext()
