"""A fleet without hosts. The brokers of a cluster that runs already are on machines of somebody's, which have
power as far as we know, and to which nobody of ours logs in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from wrackline.fleets.base import FleetError, Host, PowerCut


class NoPowerSwitch:
    """Every host has power, and no switch."""

    def __init__(self, why: str) -> None:
        self._why = why

    def cut(self, host: Host) -> PowerCut:
        raise FleetError(f"{host.name}: {self._why}")

    def on(self, host: Host) -> None:
        del host

    def is_on(self, host: Host) -> bool:  # noqa: ARG002
        return True


class NoFleet:
    """The `Fleet` of a system that needs none. Clients are in the network of this machine."""

    hosts: tuple[Host, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.power = NoPowerSwitch("a fleet without hosts has no power switch")

    def up(self) -> None:
        """There is nothing to make."""

    def down(self) -> None:
        """There is nothing to remove."""

    def detach(self) -> None:
        """There is nothing to keep."""

    def remote(self, host: Host) -> NoReturn:
        raise FleetError(f"{host.name}: nobody of ours logs in to it")

    def entered(self) -> AbstractContextManager[None]:
        return nullcontext()
