"""Every fault that is installed, what it needs, and on which fleets and systems it can be done: what
``wrackline list faults`` says, and what a specification is refused for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from wrackline.fleets.base import CLIENTS
from wrackline.fleets.spec import FleetSpec
from wrackline.harness.specification.sections import FLEET, SYSTEM
from wrackline.nemesis.faults.spec import FaultSpec, TrafficSpec
from wrackline.nemesis.spec import FAULTS
from wrackline.systems.spec import SystemSpec

OLD_VERSION = "2.8.2"


@dataclass(frozen=True, slots=True)
class Setting:
    """A key that the fault takes."""

    name: str
    what: str
    default: Any
    """None also where it must be given: ``required`` tells."""
    required: bool


@dataclass(frozen=True, slots=True)
class Known:
    """One fault."""

    name: str
    what: str
    """One sentence."""
    needs: tuple[str, ...]
    """What hosts must give for it."""
    target: str
    """Whom it hits where nobody says whom."""
    clients: bool
    """Whether it may hit the clients' machine."""
    settings: tuple[Setting, ...]
    refused: Mapping[str, str]
    """By fleet, and by fleet and system (``netns apache-kafka``) where systems differ: why it cannot be done
    there. What is not here works."""
    clients_refused: Mapping[str, str]
    """By fleet, where it can be done to hosts: why not to the clients' machine."""
    module: str


def known_faults() -> list[Known]:
    """All of them, by name."""
    fleets, systems = _examples(FLEET.models()), _examples(SYSTEM.models())
    systems |= _on_zookeeper(SYSTEM.models())
    return [_known(name, model, fleets, systems) for name, model in sorted(FAULTS.models().items())]


def fleets_with_hosts() -> list[str]:
    """The kinds of fleets on which a fault may happen, the usual one first."""
    kinds = [name for name, one in _examples(FLEET.models()).items() if one.hosts]
    return sorted(kinds, key=lambda kind: (kind != FLEET.default, kind))


def _known(name: str, model: type[BaseModel], fleets: Mapping[str, Any], systems: Mapping[str, Any]) -> Known:
    assert issubclass(model, FaultSpec)
    example = _example(name, model)
    of_clients = None
    if isinstance(example, TrafficSpec):
        of_clients = example.model_copy(update={"target": CLIENTS})
    refused: dict[str, str] = {}
    clients_refused: dict[str, str] = {}
    for kind, fleet in fleets.items():
        if not fleet.hosts:
            continue
        why = {
            system: example.refusal(_fitting(fleet, spec), spec)
            for system, spec in systems.items()
            if spec.broker_names() is None
        }
        if len(set(why.values())) == 1:
            one = next(iter(why.values()))
            refused |= {kind: one} if one is not None else {}
        else:
            refused |= {f"{kind} {system}": one for system, one in why.items() if one is not None}
        if of_clients is not None and kind not in refused:
            no = of_clients.refusal(fleet, SYSTEM.usual())
            clients_refused |= {kind: no} if no is not None else {}
    return Known(
        name,
        _text(model.model_fields["fault"].description),
        tuple(str(need) for need in model.needs),
        str(model.model_fields["target"].get_default()),
        of_clients is not None,
        tuple(_settings(model)),
        refused,
        clients_refused,
        model.__module__,
    )


def _on_zookeeper(models: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    """The systems that have a version which keeps its metadata in ZooKeeper, with that."""
    result: dict[str, Any] = {}
    for name, model in models.items():
        try:
            spec = model.model_validate({"version": OLD_VERSION})
        except ValidationError:
            continue
        assert isinstance(spec, SystemSpec)
        if spec.misfit(0) is not None:
            result[f"{name} {OLD_VERSION}"] = spec
    return result


def _fitting(fleet: Any, system: Any) -> Any:
    """The fleet as the system needs it: with ZooKeeper, or without."""
    if system.misfit(0) is None:
        return fleet
    return fleet.model_copy(update={"zookeeper": 1, "controllers": 0, "combined": False})


def _example(name: str, model: type[FaultSpec]) -> FaultSpec:
    """Returns the fault with example values for the settings that must be given."""
    try:
        return model.model_validate({"fault": name, **model.example})
    except ValidationError:  # of somebody who gives no example
        return model.model_construct(fault=name)


def _settings(model: type[BaseModel]) -> list[Setting]:
    result = []
    for name, field in model.model_fields.items():
        if name in ("fault", "target"):
            continue
        default = field.get_default(call_default_factory=True) if not field.is_required() else None
        default = None if default is PydanticUndefined else default
        result.append(Setting(name, _text(field.description), default, field.is_required()))
    return result


def _text(description: str | None) -> str:
    return " ".join((description or "").replace("``", "`").split())


def _examples(models: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    """Each with its default settings, and hosts enough for all that needs several of a kind; a system that
    has versions with an old one, for there are faults that upgrade it."""
    result: dict[str, Any] = {}
    for name, model in models.items():
        assert issubclass(model, FleetSpec | SystemSpec)
        generous: dict[str, Any] = (
            {"controllers": 3, "spares": 1, "spare_controllers": 1}
            if issubclass(model, FleetSpec)
            else {"version": "3.9.2", "quorum": "dynamic"}
        )
        for given in (generous, dict[str, Any]()):
            try:
                result[name] = model.model_validate(given)
                break
            except ValidationError:
                own = model.example if issubclass(model, FleetSpec) else {}
                result[name] = model.model_construct(None, **{**generous, **own})
    return result
