"""The settings of any fleet in a specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.plugins.fields import Most, NoBoolean, Strict


@dataclass(frozen=True, slots=True)
class HostNeeds:
    """The needs of a system regarding hosts that are made for it."""

    packages: tuple[str, ...] = ()
    """Of Debian, besides Python and the usual tools."""
    memory_mb: int = 256
    """So much is enough for a node and the host's own programs."""


MOST_MADE_HERE = 9
MOST_DISKS = 4
_MORE = (
    "hosts that are made here share one machine; for more name machines of your own, fleet.kind inventory, "
    "or test a cluster that runs already, system.kind external"
)


class FleetSpec(Strict):
    """The settings of a fleet: how many hosts there are, and for what. A subclass says its name (``kind:
    Literal["netns"] = "netns"``), which is also that of its entry point, has a field for each further
    setting, and builds the fleet."""

    needs_root: ClassVar[bool] = True
    """Whether only root can make its hosts."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Returns the needs of the hosts regarding this machine, by the names of `wrackline.needs`."""
        return ()

    virtual: ClassVar[bool] = False
    """Whether its hosts are simulated, in virtual time."""

    slowness: ClassVar[float] = 1.0
    """So many times as long as on this machine itself things take on its hosts: by it the waits of a system
    grow that the user has not set."""

    example: ClassVar[Mapping[str, Any]] = {}
    """What stands for settings without a default where no hosts are meant, only the kind."""

    made_here: ClassVar[bool] = True
    """Whether its hosts share this machine's processors and memory: then clusters are small."""
    most_brokers: ClassVar[int] = MOST_MADE_HERE
    """With the spare ones."""

    most_disks: ClassVar[int] = 1
    """How many data disks each host can have."""
    shares_folder: ClassVar[bool] = False
    """Whether its hosts see a folder alike (`wrackline.fleets.base.Host.shared`)."""

    kind: str
    """The fleet's name."""
    brokers: Annotated[int, Field(ge=1), Most(MOST_MADE_HERE, _MORE)] = 3
    """How many broker hosts there are: n1, n2, ..."""
    controllers: Annotated[Literal[0, 1, 3, 5], NoBoolean] = 1
    """How many controllers there are, on hosts c1, c2, ...; several are a quorum. With ZooKeeper: 0, for one
    of the brokers is the controller, or 1, a broker that has no replicas and is the first controller."""
    combined: bool = False
    """The controllers run beside brokers, on the first of their hosts, in one process with each."""
    spares: Annotated[int, Field(ge=0), Most(MOST_MADE_HERE - 1, _MORE)] = 0
    """Hosts with a broker that is not started: the fault ``add-broker`` does."""
    spare_controllers: Annotated[int, Field(ge=0, le=4)] = 0
    """Hosts with a controller that is not started, after the others: c4, ...; the fault ``add-controller``
    does. For systems whose quorum can change."""
    disks: Annotated[int, Field(ge=1)] = 1
    """How many data disks each host has; nodes of Apache Kafka keep a log directory on each (JBOD)."""
    zookeeper: Annotated[Literal[0, 1, 3, 5], NoBoolean] = 0
    """How many ZooKeeper servers there are, on hosts z1, z2, ...; several are an ensemble. For systems that
    keep their metadata there: Apache Kafka up to 2.8."""

    def build(self, name: str, state_dir: Path) -> Fleet:
        """The fleet of these `hosts`, under this name, not up. ``state_dir``: a folder of this machine for
        what a fleet keeps while it is up; others use it too. Raises FleetError for hosts that cannot be
        named."""
        raise NotImplementedError

    def prepare(self, say: Callable[[str], None]) -> None:
        """Bring to this machine what its hosts are made of, before there are any. ``say`` is given a line for
        whatever takes long. Raises FleetError."""

    def carrying(self, needs: HostNeeds) -> Self:  # noqa: ARG002
        """Returns these settings, completed by the needs of a system where the user has said nothing else.
        The same settings where hosts are what they are."""
        return self

    def lacks(self, ability: Ability) -> str | None:
        """Returns why faults cannot have this ability of its hosts, in one line; None when they can."""
        if ability is Ability.CLIENTS:
            return f"the fleet {self.kind} does not say how"
        return None

    @property
    def untested(self) -> tuple[str, ...]:
        """Returns the failures that no run on these hosts can show, whatever its faults: a few words, and
        why. The verdict says so."""
        return ()

    @property
    def broker_hosts(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.brokers + 1))

    @property
    def spare_hosts(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(self.brokers + 1, self.brokers + self.spares + 1))

    @property
    def controller_hosts(self) -> tuple[str, ...]:
        kind = "n" if self.combined else "c"
        return tuple(f"{kind}{number}" for number in range(1, self.controllers + 1))

    @property
    def spare_controller_hosts(self) -> tuple[str, ...]:
        first = self.controllers + 1
        return tuple(f"c{number}" for number in range(first, first + self.spare_controllers))

    @property
    def zookeeper_hosts(self) -> tuple[str, ...]:
        return tuple(f"z{number}" for number in range(1, self.zookeeper + 1))

    @property
    def hosts(self) -> tuple[str, ...]:
        controllers = (*self.controller_hosts, *self.spare_controller_hosts)
        every = (*self.broker_hosts, *self.spare_hosts, *controllers, *self.zookeeper_hosts)
        return tuple(dict.fromkeys(every))

    @model_validator(mode="before")
    @classmethod
    def _no_controllers_beside_zookeeper(cls, given: Any) -> Any:
        """Unless they are asked for."""
        if isinstance(given, dict) and given.get("zookeeper") and "controllers" not in given:
            return {**given, "controllers": 0}
        return given

    @model_validator(mode="after")
    def _disks_fit(self) -> Self:
        if self.disks > self.most_disks:
            most = "one data disk" if self.most_disks == 1 else f"at most {self.most_disks} data disks"
            raise ValueError(
                f"disks is {self.disks}: a host of the fleet {self.kind} has {most}; with netns it has up to "
                f"{MOST_DISKS}"
            )
        return self

    @model_validator(mode="after")
    def _controllers_fit(self) -> Self:
        if self.zookeeper and (self.combined or self.controllers > 1):
            what = "combined" if self.combined else f"{self.controllers} controllers"
            raise ValueError(
                f"zookeeper: {what} with ZooKeeper: there brokers elect one of themselves the controller; "
                "leave it out, or say controllers: 1 for a broker that has no replicas and is the first "
                "controller"
            )
        return self

    @model_validator(mode="after")
    def _brokers_enough(self) -> Self:
        if self.combined and self.controllers > self.brokers:
            raise ValueError(
                f"combined: {self.controllers} controllers need as many brokers, there are {self.brokers}"
            )
        if self.brokers + self.spares > self.most_brokers:
            raise ValueError(
                f"{self.brokers} brokers and {self.spares} spares are more than the {self.most_brokers} "
                "there can be"
            )
        return self
