"""The settings of any fault in a specification."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.shapes import Direction, Link
from wrackline.nemesis.faults.steps import Fault
from wrackline.nemesis.targets.words import (
    CONTROLLERS,
    ROLE,
    ROLE_OR_CLIENTS,
    ZOOKEEPERS,
    check_any,
    check_role,
    hosts_named,
    is_clients,
    needs_ensemble,
    plain,
)
from wrackline.plugins import fields
from wrackline.plugins.acls import Acls, Resource
from wrackline.plugins.fields import Lax
from wrackline.plugins.nearest import nearest
from wrackline.systems.spec import SystemSpec


class Strict(fields.Strict):
    """Refuses keys it does not know, and says which it knows."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        if isinstance(given, dict):
            known = sorted(cls.model_fields)
            if strangers := [key for key in given if key not in known]:
                keys = f"key{'s' if len(strangers) > 1 else ''} {' and '.join(map(repr, strangers))}"
                hint = nearest(str(strangers[0]), known) or ";"
                raise ValueError(f"unknown {keys}{hint} known keys: {', '.join(known)}")
        return given


Role = Annotated[str, AfterValidator(check_role), WithJsonSchema({"type": "string", "pattern": ROLE})]
RoleOrClients = Annotated[
    str, AfterValidator(check_any), WithJsonSchema({"type": "string", "pattern": ROLE_OR_CLIENTS})
]


class FaultSpec(Strict):
    """The settings of one fault. A subclass says its name (``fault: Literal["kill"]``), which is also that of
    its entry point, has a field for each setting, and builds the fault."""

    needs: ClassVar[tuple[Ability, ...]] = (Ability.ROOT,)
    """What hosts must give for it."""
    acls: ClassVar[Acls] = {}
    """The rights that it needs in a cluster with ACLs, beside the workload's."""
    example: ClassVar[Mapping[str, Any]] = {}
    """What a reader may write for the settings that have no default."""

    fault: str
    """The fault's name."""
    target: Role = "one"
    """Whom it hits: a role such as `leader(log-0)`, resolved when the fault begins, or hosts by name."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        """Returns why the fault cannot be done to such a system on such hosts, in one line; None when it can.
        A system that runs already, on hosts that are not ours, is asked otherwise
        (`wrackline.nemesis.faults.by_command`)."""
        if why := system.cannot(self.fault):
            return why
        for ability in self.needs:
            if why := fleet.lacks(ability):
                return f"{self.fault} needs {ability}: {why}"
        return None

    @property
    def begins_s(self) -> float:
        """Returns how long the fault's beginning may take, besides the time that it is in force then."""
        return 0.0

    makes: ClassVar[type[Any]]
    """The fault's dataclass, for `build`."""

    def build(self) -> Fault:
        """The fault with these settings: each field that the fault has in common with them, and the others as
        they are by default."""
        made: Fault = self.makes(
            **{
                field.name: getattr(self, field.name)
                for field in dataclasses.fields(self.makes)
                if hasattr(self, field.name)
            }
        )
        return made


TO_MOVE: Acls = {Resource.CLUSTER: ("Alter", "Describe")}
"""To move replicas and leaders."""


class UnprivilegedSpec(FaultSpec):
    """The settings of a fault that needs nothing of its hosts."""

    needs = ()


class TrafficSpec(FaultSpec):
    """Settings of a fault of the network, which may also hit that of the machine that clients are on."""

    of_hosts_alone: ClassVar[tuple[str, ...]] = ()
    """Settings that mean something between hosts of the system only."""

    target: RoleOrClients = "one"
    """Whom it hits: a role such as `leader(log-0)`, resolved when the fault begins, hosts by name, or the
    clients of any of these: `clients of n1`."""

    direction: Annotated[Direction, Lax] = Direction.BOTH
    """Which way packets are meant, as the targets see it."""
    links: Annotated[tuple[Annotated[Link, Lax], ...], Lax] = ()
    """Only packets of these kinds of connections. Empty: whatever is between these hosts."""
    ports: Annotated[tuple[Annotated[int, Field(ge=1, le=65535)], ...], Lax] = ()
    """Only TCP from or to these ports. Empty: everything."""

    @property
    def at_clients(self) -> bool:
        return is_clients(self.target)

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if self.links and self.ports:
            raise ValueError("links and ports both say which packets are meant: give one of them")
        for key in self.of_hosts_alone if self.at_clients else ():
            if getattr(self, key) != type(self).model_fields[key].get_default():
                raise ValueError(
                    f"target {self.target!r} means what goes between clients and the brokers' port, and "
                    f"nothing else: leave `{key}` out"
                )
        return self

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) or not self.at_clients:
            return why
        if why := fleet.lacks(Ability.CLIENTS):
            return f"{self.fault} needs {Ability.CLIENTS}: {why}"
        named = set(hosts_named(self.target))
        controllers = {*fleet.controller_hosts, *fleet.spare_controller_hosts}
        alone = controllers - {*fleet.broker_hosts, *fleet.spare_hosts}
        if named <= alone if named else plain(self.target) in CONTROLLERS and alone:
            return f"{self.fault}: clients ask brokers and no controller, so {self.target!r} is nobody"
        servers = plain(self.target) == ZOOKEEPERS or needs_ensemble(self.target)
        if named <= {*fleet.zookeeper_hosts} if named else servers:
            return f"{self.fault}: clients ask brokers and no ZooKeeper, so {self.target!r} is nobody"
        return None
