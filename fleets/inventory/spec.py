"""The settings of the fleet ``inventory`` in a specification."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, Self

import paramiko
from pydantic import Field, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Become, Fleet, FleetError, Host
from wrackline.fleets.inventory.fleet import InventoryFleet, fields_of
from wrackline.fleets.inventory.power import PowerSpec
from wrackline.fleets.inventory.prepare import Wishes
from wrackline.fleets.inventory.read import Inventory, InventoryError, Login, login, read
from wrackline.fleets.spec import FleetSpec
from wrackline.plugins.fields import Lax, Like, Most

BROKERS, CONTROLLERS, ZOOKEEPER = "brokers", "controllers", "zookeeper"
GROUPS = (BROKERS, CONTROLLERS, ZOOKEEPER)
"""Groups of the inventory that say which hosts are which."""
_PLAIN = re.compile(r"/[A-Za-z0-9_./+-]*")
PlainPath = Annotated[
    str, Like(_PLAIN.pattern.join(("^", "$")), "give a whole path, /..., of letters, digits and _ . / + -")
]


MOST_BROKERS = 100
_MORE = "more are asked one by one, which takes longer than a fault lasts"


class InventorySpec(FleetSpec):
    """Settings of the fleet ``inventory``."""

    needs_root: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"inventory": "", "power": PowerSpec(sysrq=True)}

    made_here: ClassVar[bool] = False
    most_brokers: ClassVar[int] = MOST_BROKERS

    kind: Literal["inventory"] = "inventory"
    """Hosts are machines of an Ansible inventory."""
    brokers: Annotated[int, Field(ge=1), Most(MOST_BROKERS, _MORE)] = 3
    """How many broker hosts there are: n1, n2, ..."""
    spares: Annotated[int, Field(ge=0), Most(MOST_BROKERS - 1, _MORE)] = 0
    """Hosts with a broker that is not started: the fault ``add-broker`` does."""
    inventory: str
    """The inventory: a file (INI, YAML), a folder, or a program that prints JSON."""
    known_hosts: str = "~/.ssh/known_hosts"
    """The keys that hosts may show, as OpenSSH has them; a host without a line there is not spoken to."""
    become: Annotated[Become, Lax] = Become.NOBODY
    """What a user who is not root may do by sudo: nothing, the named commands, or everything."""
    root: PlainPath | None = None
    """Where the folders of the system begin; `/`, and for a user with fewer rights `/home/USER/.wrackline`,
    where nothing is said."""
    data_dir: PlainPath = "/data"
    """Mount point of the data disk."""
    data_disk: Literal["own", "make", "shared"] = "own"
    """Whether it is a file system of its own, is made in a file of the system disk, or is the system disk."""
    disk_mb: Annotated[int, Field(ge=64, le=1_048_576)] = 1024
    """Size of a data disk that is made."""
    power: PowerSpec | None = None
    """How hosts lose their power; without it none does."""
    keep_installed: bool = True
    """Programs stay on the hosts after the run, so that the next need not bring them."""

    @property
    def untested(self) -> tuple[str, ...]:
        if self.lacks(Ability.POWER) or self.lacks(Ability.DISK):
            return ("durability: no host could lose its power, so nothing showed what had been synced",)
        return ()

    def lacks(self, ability: Ability) -> str | None:
        match ability:
            case Ability.POWER if self.power is None:
                return "fleet.power says nothing; give commands for it, or sysrq: true"
            case Ability.DISK if self.data_disk == "shared":
                return "fleet.data_disk is shared"
            case Ability.ROOT if (user := self._plain_user()) and self.become is not Become.ROOT:
                return f"hosts are entered as {user}, and fleet.become is {self.become}, not root"
            case Ability.NETWORK if (user := self._plain_user()) and self.become is Become.NOBODY:
                return f"hosts are entered as {user}, and fleet.become is nobody, not named or root"
            case Ability.SWAPPED_DISK | Ability.PAGE_CACHE | Ability.THROTTLE:
                return "the fleet inventory does not reach around the hosts' own kernels to their disks"
            case Ability.HYPERVISOR:
                return "the fleet inventory knows its hosts by SSH alone"
            case Ability.CLIENTS:
                return (
                    "clients run on this machine, in the network that everything else here is in; aim at "
                    "hosts (shape: clients, links: [client-broker])"
                )
            case Ability.KERNEL if self._plain_user() and self.become is not Become.ROOT:
                return f"fleet.become is {self.become}, not root"
        return None

    def build(self, name: str, state_dir: Path) -> Fleet:  # noqa: ARG002
        wishes = Wishes(self.data_disk, self.disk_mb, self.keep_installed)
        try:
            logins = self._logins()
        except InventoryError as changed:
            raise FleetError(str(changed)) from changed
        return InventoryFleet(
            name,
            {self._host(host, one): one for host, one in logins.items()},
            known_hosts=Path(self.known_hosts).expanduser(),
            wishes=wishes,
            power=self.power,
        )

    # -- who is who ------------------------------------------------------------------------------------------

    @model_validator(mode="after")
    def _hosts_are_there(self) -> Self:
        """Raises ValueError for hosts that nobody could log in to."""
        logins = self._logins()
        seen: dict[tuple[str, int], str] = {}
        for one in logins.values():
            if other := seen.setdefault((one.ssh_address, one.port), one.alias) != one.alias:
                raise ValueError(f"hosts {other} and {one.alias} are the same: {one.ssh_address}:{one.port}")
        self._check_known(list(logins.values()))
        if self.power is not None:
            for one in logins.values():
                if missing := self.power.missing(fields_of(one)):
                    raise ValueError(
                        f"power: host {one.alias} has no variable {', '.join(missing)} in the inventory"
                    )
        if self.data_disk == "make" and self._plain_user() and self.become is not Become.ROOT:
            raise ValueError("data_disk: make needs root on the hosts: become: root")
        return self

    def _check_known(self, logins: Sequence[Login]) -> None:
        file = Path(self.known_hosts).expanduser()
        try:
            known = paramiko.HostKeys(str(file))
        except OSError as error:
            raise ValueError(f"known_hosts: {file} cannot be read: {error.strerror}") from error
        for one in logins:
            ways = [(jump.address, jump.port) for jump in one.jumps] + [(one.ssh_address, one.port)]
            for address, port in ways:
                if known.lookup(address if port == 22 else f"[{address}]:{port}") is None:
                    raise ValueError(
                        f"host {one.alias}: {file} has no key of {address}; take it from the host itself, or "
                        f"by `ssh-keyscan -p {port} {address}` and compare"
                    )

    def _logins(self) -> dict[str, Login]:
        """Returns the logins by our names of the hosts. Raises InventoryError."""
        inventory = read(Path(self.inventory).expanduser())
        carriers = (*self.broker_hosts, *self.spare_hosts)
        apart = [*([] if self.combined else self.controller_hosts), *self.spare_controller_hosts]
        taken = self._members(inventory, BROKERS, len(carriers), [])
        taken += self._members(inventory, CONTROLLERS, len(apart), taken)
        taken += self._members(inventory, ZOOKEEPER, self.zookeeper, taken)
        chosen = dict(zip((*carriers, *apart, *self.zookeeper_hosts), taken, strict=True))
        return {name: login(alias, inventory.variables[alias]) for name, alias in chosen.items()}

    def _members(self, inventory: Inventory, group: str, wanted: int, taken: Sequence[str]) -> list[str]:
        """Returns the members of the group where there is one, else the hosts in the inventory's order that
        no group has."""
        if group in inventory.groups:
            there, where = list(inventory.groups[group]), f"its group {group}"
        else:
            grouped = {host for one in GROUPS for host in inventory.groups.get(one, ())}
            there, where = [host for host in inventory.variables if host not in grouped], "it"
        there = [host for host in there if host not in taken]
        if len(there) < wanted:
            raise InventoryError(
                f"{self.inventory}: {wanted} hosts are wanted for {group}, and {where} has {len(there)}"
            )
        return there[:wanted]

    def _plain_user(self) -> str | None:
        """A user that is not root; None when all are, and of an example without hosts."""
        if not self.inventory:
            return None
        return next((one.user for one in self._logins().values() if one.user != "root"), None)

    def _host(self, name: str, one: Login) -> Host:
        becomes = Become.NOBODY if one.user == "root" else self.become
        as_root = one.user == "root" or becomes is Become.ROOT
        root = self.root or ("/" if as_root else f"/home/{one.user}/.wrackline")
        return Host(
            name,
            one.address,
            user=one.user,
            port=one.port,
            key_file=one.key_file,
            data_dir=PurePosixPath(self.data_dir),
            python=one.python,
            root=PurePosixPath(root),
            login_address="" if one.ssh_address == one.address else one.ssh_address,
            become=becomes,
            alias=one.alias,
        )
