"""What a specification may say of the nemesis: an explicit schedule, random faults, or a guided schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from wrackline.nemesis.faults.spec import FaultSpec, Strict
from wrackline.nemesis.guided.catalogue import SCHEDULES
from wrackline.plugins.doors import Door
from wrackline.plugins.fields import JsonSchema, Lax, Seconds, SomeSeconds
from wrackline.plugins.registry import Group


class SpecError(ValueError):
    """The specification is wrong. One line per mistake: where, what, how to mend."""


FAULTS = Door(Group.FAULTS, FaultSpec, "fault")
AnyFault = Annotated[FaultSpec, FAULTS]
FAULT: TypeAdapter[FaultSpec] = TypeAdapter(AnyFault)
Range = Annotated[tuple[SomeSeconds, SomeSeconds], Lax]
ONCE: Literal["add-broker"] = "add-broker"
"""Of the faults, the one that cannot be drawn at random."""


@dataclass(frozen=True, slots=True)
class _ByName:
    """Annotation of faults that may be drawn: ``kill`` stands for ``{fault: kill}``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.whole, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        drawn = {name: ref for name, ref in _by_name(handler(core)).items() if name != ONCE}
        return {"anyOf": [{"enum": list(drawn)}, *drawn.values()]}

    @staticmethod
    def whole(given: Any) -> Any:
        return {"fault": given} if isinstance(given, str) else given


def _by_name(union: JsonSchema) -> dict[str, JsonSchema]:
    """The schemas of the faults, from that of `AnyFault`."""
    return {name: {"$ref": ref} for name, ref in union["discriminator"]["mapping"].items()}


class ScheduledSpec(Strict):
    """One fault at its time."""

    at_s: Seconds
    """From the start of the nemesis."""
    duration_s: SomeSeconds
    """How long the fault is in force."""
    inject: AnyFault
    """The fault; its keys may stand beside the times instead."""

    @model_validator(mode="before")
    @classmethod
    def _flat(cls, given: Any) -> Any:
        """``{at_s, duration_s, fault, ...}`` for ``{at_s, duration_s, inject: {fault, ...}}``."""
        if not isinstance(given, dict) or "inject" in given:
            return given
        times = {key: given[key] for key in _TIMES if key in given}
        return {**times, "inject": {key: value for key, value in given.items() if key not in times}}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        nested = handler(core)
        own = handler.resolve_ref_schema(nested)["properties"]
        times = {key: own[key] for key in _TIMES}
        faults = map(handler.resolve_ref_schema, _by_name(own["inject"]).values())
        flat = [
            {
                **fault,
                "properties": {**times, **fault["properties"]},
                "required": [*times, *fault["required"]],
            }
            for fault in faults
        ]
        return {"anyOf": [*flat, nested]}


_TIMES = ("at_s", "duration_s")


class RandomSpec(Strict):
    """Faults drawn from a list, one after another or overlapping."""

    faults: Annotated[tuple[Annotated[AnyFault, _ByName()], ...], Field(min_length=1, strict=False)]
    """What may happen, by name or with its keys; each comes once before one comes again."""
    every_s: Range = (4.0, 8.0)
    """Between the beginnings of two faults; without ``overlap`` between the end of one and the next."""
    duration_s: Range = (2.0, 5.0)
    """How long a fault is in force: from, to."""
    overlap: bool = False
    """Whether a fault may begin while another is in force."""
    start_s: Seconds = 2.0
    """When the first fault begins."""
    tail_s: Seconds = 2.0
    """Quiet time at the end of the run."""

    @field_validator("faults")
    @classmethod
    def _no_growth(cls, given: tuple[FaultSpec, ...]) -> tuple[FaultSpec, ...]:
        if any(one.fault == ONCE for one in given):
            raise ValueError(f"{ONCE} happens once to a spare host: put it into the schedule, at its time")
        return given

    @field_validator("every_s", "duration_s")
    @classmethod
    def _in_order(cls, given: Range) -> Range:
        if given[0] > given[1]:
            raise ValueError(f"[{given[0]:g}, {given[1]:g}]: the smaller number comes first")
        return given


class GuidedSpec(Strict):
    """A schedule that follows the cluster's state (nemesis.guided)."""

    name: str
    """The schedule's name."""
    at_s: Seconds = 3.0
    """When the schedule begins, from the start of the main phase."""
    topic: str | None = None
    """Default: the run's first topic."""
    partition: int = Field(default=0, ge=0)
    """The partition that the schedule aims at."""
    deadline_s: SomeSeconds = 30.0
    """For each wait on the cluster."""

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        """``guided: NAME`` for ``guided: {name: NAME}``."""
        return {"name": given} if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        whole = handler(core)
        name = handler.resolve_ref_schema(whole)["properties"]["name"]
        name["enum"] = sorted(SCHEDULES)
        return {"anyOf": [name, whole]}

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SCHEDULES:
            raise ValueError(f"no guided schedule {name!r}; there are {', '.join(sorted(SCHEDULES))}")
        return name


class NemesisSpec(Strict):
    """Any mixture; nothing at all is a run without faults."""

    schedule: Annotated[tuple[ScheduledSpec, ...], Lax] = ()
    """Faults at their times, counted from the beginning of the main phase."""
    random: RandomSpec | None = None
    """Faults drawn from the seed."""
    guided: GuidedSpec | None = None
    """Steps that follow the cluster's state."""


def load(given: Any) -> NemesisSpec:
    """From what YAML gave. Raises SpecError with a line per mistake."""
    try:
        return NemesisSpec.model_validate(given or {})
    except ValidationError as wrong:
        lines = [
            f"nemesis.{'.'.join(map(str, mistake['loc']))}: {mistake['msg'].removeprefix('Value error, ')}"
            for mistake in wrong.errors()
        ]
        raise SpecError("\n".join(lines)) from wrong
