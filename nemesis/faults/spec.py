"""What a specification may say of any fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, WithJsonSchema, field_validator, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.steps import Fault
from wrackline.nemesis.targets.words import CONTROLLERS, ROLE, check_role, hosts_named, is_clients, plain
from wrackline.plugins import fields
from wrackline.systems.spec import SystemSpec


class Strict(fields.Strict):
    """Refuses keys it does not know, and says which it knows."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        if isinstance(given, dict):
            known = sorted(cls.model_fields)
            if unknown := [repr(key) for key in given if key not in known]:
                keys = f"key{'s' if len(unknown) > 1 else ''} {' and '.join(unknown)}"
                raise ValueError(f"unknown {keys}; known keys: {', '.join(known)}")
        return given


Role = Annotated[str, AfterValidator(check_role), WithJsonSchema({"type": "string", "pattern": ROLE})]


class FaultSpec(Strict):
    """The settings of one fault. A subclass says its name (``fault: Literal["kill"]``), which is also that of
    its entry point, has a field for each setting, and builds the fault."""

    needs: ClassVar[tuple[Ability, ...]] = (Ability.ROOT,)
    """What hosts must give for it."""
    hits_clients: ClassVar[bool] = False
    """Whether the machine that clients are on may be its target."""
    example: ClassVar[Mapping[str, Any]] = {}
    """What a reader may write for the settings that have no default."""

    fault: str
    """The fault's name."""
    target: Role = "one"
    """Whom it hits: a role such as `leader(log-0)`, resolved when the fault begins, or hosts by name."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        """Why it cannot be done to such a system on such hosts, in one line; None when it can. A system that
        runs already, on hosts that are not ours, is asked otherwise
        (`wrackline.nemesis.faults.by_command`)."""
        if why := system.cannot(self.fault):
            return why
        for ability in (*self.needs, *((Ability.CLIENTS,) if is_clients(self.target) else ())):
            if why := fleet.lacks(ability):
                return f"{self.fault} needs {ability}: {why}"
        return self._nobody_asks(fleet) if is_clients(self.target) else None

    def _nobody_asks(self, fleet: FleetSpec) -> str | None:
        """Of targets that are clients of controllers, where these have hosts of their own."""
        named = set(hosts_named(self.target))
        alone = {*fleet.controller_hosts} - {*fleet.broker_hosts, *fleet.spare_hosts}
        if named <= alone if named else plain(self.target) in CONTROLLERS and alone:
            return (
                f"{self.fault}: clients ask brokers and no controller, so `target: {self.target}` is nobody"
            )
        return None

    @field_validator("target")
    @classmethod
    def _clients_only_where_they_can_be_hit(cls, role: str) -> str:
        if is_clients(role) and not cls.hits_clients:
            raise ValueError(
                f"target {role!r}: the clients are the harness itself and only their network can be hit, by "
                "packets or partition; aim this fault at hosts"
            )
        return role

    @property
    def begins_s(self) -> float:
        """How long its beginning may take, besides the time that it is in force then."""
        return 0.0

    def build(self) -> Fault:
        """The fault with these settings."""
        raise NotImplementedError


def check_alone(spec: FaultSpec, *keys: str) -> None:
    """Raises ValueError where the target is the clients' machine and one of the keys says something beside it
    that only hosts can be meant by."""
    if not is_clients(spec.target):
        return
    for key in keys:
        if getattr(spec, key) != type(spec).model_fields[key].get_default():
            raise ValueError(
                f"target {spec.target!r} means what goes between clients and the brokers' port, and nothing "
                f"else: leave `{key}` out"
            )
