"""A fault that a fleet's hosts cannot be given is refused in one line, before there is a host."""

from __future__ import annotations

from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.faults.disks.power import PowerCutSpec
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.systems.wrackline.spec import WracklineSpec


class OwnClock(FaultSpec):
    """Settings of a fault that needs what namespaces lack."""

    needs: ClassVar[tuple[Ability, ...]] = (Ability.ROOT, Ability.KERNEL)

    fault: Literal["own-clock"] = "own-clock"


def test_namespaces_have_power_and_share_a_kernel() -> None:
    hosts, system = NetnsSpec(), WracklineSpec()
    assert PowerCutSpec(fault="power-cut").refusal(hosts, system) is None
    assert OwnClock().refusal(hosts, system) == (
        "own-clock needs hosts with a kernel of their own: their clock, their memory: "
        "hosts of the fleet netns share this machine's kernel; those of the fleet qemu do not"
    )
