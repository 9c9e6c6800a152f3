"""The settings of the nemesis in a specification: an explicit schedule, random faults, or a guided
schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

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
from wrackline.nemesis.presets import PRESETS
from wrackline.nemesis.targets.states import STATES, TAKE_BYTES, USUAL
from wrackline.nemesis.targets.words import BYSTANDERS
from wrackline.plugins.doors import Door
from wrackline.plugins.fields import JsonSchema, Lax, Like, Seconds, SomeSeconds
from wrackline.plugins.nearest import instead_of
from wrackline.plugins.registry import Group


class SpecError(ValueError):
    """The specification is wrong. One line per mistake: where, what, how to mend."""


FAULTS = Door(Group.FAULTS, FaultSpec, "fault")
AnyFault = Annotated[FaultSpec, FAULTS]
FAULT: TypeAdapter[FaultSpec] = TypeAdapter(AnyFault)
Range = Annotated[tuple[SomeSeconds, SomeSeconds], Lax]
LaneName = Annotated[
    str, Like(r"^[a-z][a-z0-9-]{0,19}$", "use a-z, 0-9 and -, a letter first, up to 20 characters")
]
ONCE: Mapping[str, str] = {
    "add-broker": "spares",
    "replace-broker": "spares",
    "add-controller": "spare_controllers",
}
"""Faults that use a spare host up, and cannot be drawn at random -> the key of ``fleet`` that says how many
such hosts there are."""


@dataclass(frozen=True, slots=True)
class _ByName:
    """Annotation of faults that may be drawn: ``kill`` stands for ``{fault: kill}``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.whole, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        drawn = {name: ref for name, ref in _by_name(handler(core)).items() if name not in ONCE}
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
    weights: Annotated[dict[str, Annotated[int, Field(ge=1, le=100)]], Lax] = Field(default_factory=dict)
    """By fault: how often it comes while one of weight 1, which is what is left out here, comes once."""
    start_s: Seconds = 2.0
    """When the first fault begins."""
    tail_s: Seconds = 2.0
    """Quiet time at the end of the run."""

    @field_validator("faults")
    @classmethod
    def _no_growth(cls, given: tuple[FaultSpec, ...]) -> tuple[FaultSpec, ...]:
        if used := [one.fault for one in given if one.fault in ONCE]:
            raise ValueError(f"{used[0]} uses a spare host up: put it into the schedule, at its time")
        return given

    @model_validator(mode="after")
    def _weights_of_these(self) -> Self:
        there = {one.fault for one in self.faults}
        if unknown := sorted(set(self.weights) - there):
            raise ValueError(
                f"weights: {', '.join(unknown)} is none of the faults; there are {', '.join(sorted(there))}"
            )
        return self

    @field_validator("every_s", "duration_s")
    @classmethod
    def _in_order(cls, given: Range) -> Range:
        return in_order(given)


class QuietSpec(Strict):
    """A stretch of the main phase in which no fault is in force."""

    at_s: Seconds
    """From the start of the nemesis."""
    duration_s: SomeSeconds
    """How long it is quiet."""

    @property
    def ends_s(self) -> float:
        return self.at_s + self.duration_s


class ByName(Strict):
    """A part of a specification with its keys, or by its name alone: ``guided: NAME`` for ``guided: {name:
    NAME}``."""

    of: ClassVar[str]
    """What it is, where a name is refused."""
    known: ClassVar[Collection[str]]
    listed: ClassVar[str] = ""
    """Who lists those that are known."""

    name: str

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        whole = handler(core)
        name = handler.resolve_ref_schema(whole)["properties"]["name"]
        name["enum"] = sorted(cls.known)
        return {"anyOf": [name, whole]}

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in cls.known:
            there = instead_of(name, sorted(cls.known), cls.listed, are="there are")
            raise ValueError(f"no {cls.of} {name!r}{there}")
        return name


class PresetSpec(ByName):
    """A ready-made mixture of faults, in lanes."""

    of: ClassVar[str] = "preset"
    known: ClassVar[Collection[str]] = PRESETS

    name: str
    """The preset's name."""
    interval_s: SomeSeconds = 10.0
    """Each lane waits about so long, begins a fault, and ends it after about so long again; half of it to one
    and a half."""


class GuidedSpec(ByName):
    """A schedule that follows the cluster's state (nemesis.guided)."""

    of: ClassVar[str] = "guided schedule"
    known: ClassVar[Collection[str]] = SCHEDULES
    listed: ClassVar[str] = "docs/nemesis.md lists them"

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


def _state_names(schema: JsonSchema) -> None:
    schema["enum"] = sorted(STATES)


StateName = Annotated[str, Field(json_schema_extra=_state_names)]


class FollowSpec(Strict):
    """Faults that follow the cluster's state (nemesis.follow): a state and a fault are drawn, the state is
    brought about and waited for, and the fault begins at that moment."""

    states: Annotated[tuple[StateName, ...], Lax] = ()
    """The states that are followed; none named: all to which a fault leads here."""
    faults: Annotated[tuple[Annotated[AnyFault, _ByName()], ...], Lax] = ()
    """What may happen then. The targets `subject` and `bystanders` are the nodes that the state is about, and
    the other replicas of its partition; `leader` is that of this partition. None named: the usual ones that
    are possible here."""
    openers: dict[StateName, Annotated[tuple[Annotated[AnyFault, _ByName()], ...], Lax]] = Field(
        default_factory=dict
    )
    """By state: the faults that lead to it. A state that is not named has the usual ones."""
    also: dict[StateName, Annotated[tuple[Annotated[AnyFault, _ByName()], ...], Lax]] = Field(
        default_factory=dict
    )
    """By state: faults that may follow it besides `faults`. The usual ones where `faults` names none."""
    lanes: Annotated[int, Field(ge=1, le=4)] = 1
    """So many go on beside each other, and overlap."""
    duration_s: Range = (1.0, 6.0)
    """How long a fault stays once it has come to something: from, to."""
    lossy: Annotated[int, Field(ge=0, le=15)] = 1
    """So many replicas of a partition may lose what they had not synced before its ISR is full again: with
    MinISR of them acks=all promises nothing, unless every write is synced. Power cuts of more are passed
    over."""
    patience_s: SomeSeconds = 15.0
    """So long a state is waited for; then another one is drawn."""
    then: Annotated[float, Field(ge=0, le=1)] = 0.5
    """How often another fault follows, as soon as the one before has brought about a state."""
    start_s: Seconds = 2.0
    """When the first one is drawn."""
    tail_s: Seconds = 2.0
    """Quiet time at the end of the run."""
    reached: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Pairs of state and fault that earlier runs have reached, and how often: others are preferred. A night
    fills it in."""

    @field_validator("states")
    @classmethod
    def _check_states(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_check_state, value))

    @field_validator("openers", "also")
    @classmethod
    def _check_keys(cls, value: dict[str, tuple[FaultSpec, ...]]) -> dict[str, tuple[FaultSpec, ...]]:
        return {_check_state(name): faults for name, faults in value.items()}

    @model_validator(mode="after")
    def _no_growth(self) -> Self:
        for one in self.every_fault:
            if one.fault in ONCE:
                raise ValueError(f"{one.fault} uses a spare host up: put it into the schedule, at its time")
        return self

    @field_validator("duration_s")
    @classmethod
    def _in_order(cls, value: Range) -> Range:
        return in_order(value)

    @property
    def every_fault(self) -> tuple[FaultSpec, ...]:
        by_state = (*self.openers.values(), *self.also.values())
        return (*self.faults, *(one for faults in by_state for one in faults))

    def aimed(self, aim: Callable[[FaultSpec], FaultSpec]) -> FollowSpec:
        """The same with every fault as ``aim`` has it."""

        def each(by_state: Mapping[str, tuple[FaultSpec, ...]]) -> dict[str, tuple[FaultSpec, ...]]:
            return {name: tuple(map(aim, faults)) for name, faults in by_state.items()}

        faults = tuple(map(aim, self.faults))
        return self.model_copy(
            update={"faults": faults, "openers": each(self.openers), "also": each(self.also)}
        )

    def with_usual(self, cannot: Callable[[FaultSpec], str | None]) -> FollowSpec:
        """The same with the usual states, faults and openers in the place of what is not named, as far as
        they are possible here."""
        openers = {}
        for name in self.states or STATES:
            usual = map(FAULT.validate_python, STATES[name].brought_by)
            possible = [one for one in usual if not cannot(one)]
            openers[name] = self.openers.get(name, tuple(possible))
        states = self.states or tuple(name for name in openers if openers[name])
        update: dict[str, Any] = {"states": states, "openers": openers}
        if not self.faults:
            usual = map(FAULT.validate_python, USUAL)
            update["faults"] = tuple(one for one in usual if self._may_lose(one) and not cannot(one))
            also = {name: tuple(one for one in _also(name) if not cannot(one)) for name in states}
            update["also"] = {name: faults for name, faults in also.items() if faults}
        return self.model_copy(update=update)

    def _may_lose(self, fault: FaultSpec) -> bool:
        """Tells whether ``lossy`` ever allows it: it may not lose the bytes of several replicas."""
        several = fault.target in (BYSTANDERS, "replicas") and fault.fault.startswith(TAKE_BYTES)
        return self.lossy > 1 or not several


def _also(state: str) -> list[FaultSpec]:
    return [FAULT.validate_python(one) for one in STATES[state].also]


def _check_state(name: str) -> str:
    if name not in STATES:
        there = instead_of(name, sorted(STATES), "docs/faults.md lists them", are="there are")
        raise ValueError(f"no state {name!r}{there}")
    return name


def in_order(value: Range) -> Range:
    if value[0] > value[1]:
        raise ValueError(f"[{value[0]:g}, {value[1]:g}]: the smaller number comes first")
    return value


class NemesisSpec(Strict):
    """Any mixture; nothing at all is a run without faults."""

    schedule: Annotated[tuple[ScheduledSpec, ...], Lax] = ()
    """Faults at their times, counted from the beginning of the main phase."""
    random: RandomSpec | None = None
    """Faults drawn from the seed."""
    lanes: Annotated[dict[LaneName, RandomSpec], Lax] = Field(default_factory=dict)
    """Several such lists by name, each drawn by itself: faults of one lane overlap those of the others."""
    preset: PresetSpec | None = None
    """Lanes that others have found useful. A fault that the system or its hosts cannot be given is left
    out."""
    quiet: Annotated[tuple[QuietSpec, ...], Lax] = ()
    """Stretches without any fault: none is drawn that would be in force then."""
    guided: GuidedSpec | None = None
    """Steps that follow the cluster's state."""
    follow: FollowSpec | None = None
    """Faults drawn by what has just become true of the cluster."""

    @property
    def drawn(self) -> Mapping[str, RandomSpec]:
        """All lists that faults are drawn from, by where they stand."""
        lanes = {f"lanes.{name}": lane for name, lane in self.lanes.items()}
        return {"random": self.random, **lanes} if self.random is not None else lanes

    def with_usual(self, cannot: Callable[[FaultSpec], str | None]) -> NemesisSpec:
        """The same with what `follow` does not name written out. ``cannot``: as below."""
        if self.follow is None:
            return self
        return self.model_copy(update={"follow": self.follow.with_usual(cannot)})

    def without_preset(self, cannot: Callable[[FaultSpec], str | None]) -> tuple[NemesisSpec, list[str]]:
        """The same with the preset's lanes written out, and what was left out of them: a line each.
        ``cannot``: why a fault is not possible here."""
        if self.preset is None:
            return self, []
        lanes, left_out = dict(self.lanes), []
        for name, given in PRESETS[self.preset.name].lanes.items():
            possible = []
            for fault in map(FAULT.validate_python, given):
                if why := cannot(fault):
                    left_out.append(why)
                else:
                    possible.append(fault)
            if possible:
                around = (0.5 * self.preset.interval_s, 1.5 * self.preset.interval_s)
                lanes[name] = RandomSpec(faults=tuple(possible), every_s=around, duration_s=around)
        return self.model_copy(update={"lanes": lanes, "preset": None}), list(dict.fromkeys(left_out))


def load(given: Any) -> NemesisSpec:
    """Parses what YAML gave. Raises SpecError with a line per mistake."""
    try:
        return NemesisSpec.model_validate(given or {})
    except ValidationError as error:
        lines = [
            f"{_place(mistake['loc'])}: {mistake['msg'].removeprefix('Value error, ')}"
            for mistake in error.errors()
        ]
        raise SpecError("\n".join(lines)) from error


def _place(loc: Iterable[int | str]) -> str:
    """``nemesis.schedule[0].at_s``"""
    return "nemesis" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc)
