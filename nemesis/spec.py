"""What a specification may say of the nemesis: an explicit schedule, random faults, or a guided schedule."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from nemesis.growth import AddBroker, Reassign
from nemesis.network import Direction, Partition, Shape
from nemesis.power import PowerCut
from nemesis.processes import Kill, Pause, Restart
from nemesis.steps import Fault
from nemesis.targets import SPARE, check_role


class SpecError(ValueError):
    """The specification is wrong. One line per mistake: where, what, how to mend."""


class Strict(BaseModel):
    """Refuses keys it does not know, and says which it knows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, given: Any) -> Any:
        if isinstance(given, dict):
            known = sorted(cls.model_fields)
            for key in given:
                if key not in known:
                    raise ValueError(f"unknown key {key!r}; known keys: {', '.join(known)}")
        return given


class _Aimed(Strict):
    target: str = "one"
    """A role (nemesis.targets), resolved when the fault is injected."""

    _role = field_validator("target")(check_role)


class PartitionSpec(_Aimed):
    fault: Literal["partition"]
    shape: Shape = Shape.ISOLATE
    controllers: bool = True
    """False: the targets go on talking to the controllers."""
    direction: Direction = Direction.BOTH

    @model_validator(mode="before")
    @classmethod
    def _default_target(cls, given: Any) -> Any:
        """Halves means a random half unless a target is named."""
        if isinstance(given, dict) and given.get("shape") == Shape.HALVES and "target" not in given:
            return {**given, "target": "half"}
        return given

    @model_validator(mode="after")
    def _link_names_two(self) -> PartitionSpec:
        if self.shape is Shape.LINK and (
            self.target.count(",") != 1 or len(set(self.target.split(","))) != 2
        ):
            raise ValueError(f"shape link needs two hosts as target (n1,n2), not {self.target!r}")
        return self

    def build(self) -> Fault:
        return Partition(self.shape, self.controllers, self.direction)


class KillSpec(_Aimed):
    fault: Literal["kill"]

    def build(self) -> Fault:
        return Kill()


class PauseSpec(_Aimed):
    fault: Literal["pause"]

    def build(self) -> Fault:
        return Pause()


class PowerCutSpec(_Aimed):
    fault: Literal["power-cut"]

    def build(self) -> Fault:
        return PowerCut()


class RestartSpec(_Aimed):
    fault: Literal["restart"]

    def build(self) -> Fault:
        return Restart()


class AddBrokerSpec(_Aimed):
    fault: Literal["add-broker"]
    target: str = SPARE

    _role = field_validator("target")(check_role)

    def build(self) -> Fault:
        return AddBroker()


class ReassignSpec(_Aimed):
    fault: Literal["reassign"]

    def build(self) -> Fault:
        return Reassign()


FaultSpec = Annotated[
    PartitionSpec | KillSpec | PauseSpec | PowerCutSpec | RestartSpec | AddBrokerSpec | ReassignSpec,
    Field(discriminator="fault"),
]
FAULT: TypeAdapter[FaultSpec] = TypeAdapter(FaultSpec)
Range = tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]]


class ScheduledSpec(Strict):
    """One fault at its time."""

    at_s: float = Field(ge=0)
    """From the start of the nemesis."""
    duration_s: float = Field(gt=0)
    inject: FaultSpec


class RandomSpec(Strict):
    """Faults drawn from a list, one after another or overlapping."""

    faults: tuple[FaultSpec, ...] = Field(min_length=1)
    every_s: Range = (4.0, 8.0)
    """Between the beginnings of two faults; without ``overlap`` between the end of one and the next."""
    duration_s: Range = (2.0, 5.0)
    overlap: bool = False
    start_s: float = Field(default=2.0, ge=0)
    tail_s: float = Field(default=2.0, ge=0)
    """Quiet time at the end of the run."""

    @field_validator("faults")
    @classmethod
    def _no_growth(cls, given: tuple[FaultSpec, ...]) -> tuple[FaultSpec, ...]:
        if any(one.fault == "add-broker" for one in given):
            raise ValueError("add-broker happens once to a spare host: put it into the schedule, at its time")
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
    at_s: float = Field(default=3.0, ge=0)
    topic: str | None = None
    """Default: the run's first topic."""
    partition: int = Field(default=0, ge=0)
    deadline_s: float = Field(default=30.0, gt=0)
    """For each wait on the cluster."""

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        from nemesis.guided import SCHEDULES  # it imports what this module defines

        if name not in SCHEDULES:
            raise ValueError(f"no guided schedule {name!r}; there are {', '.join(sorted(SCHEDULES))}")
        return name


class NemesisSpec(Strict):
    """Any mixture; nothing at all is a run without faults."""

    schedule: tuple[ScheduledSpec, ...] = ()
    random: RandomSpec | None = None
    guided: GuidedSpec | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        """``guided: NAME`` for ``guided: {name: NAME}``; ``{at_s, duration_s, fault, ...}`` in the schedule and
        plain names in ``random.faults``."""
        if not isinstance(given, dict):
            return given
        given = dict(given)
        if isinstance(given.get("guided"), str):
            given["guided"] = {"name": given["guided"]}
        if isinstance(given.get("schedule"), list | tuple):
            given["schedule"] = [_unflatten(one) for one in given["schedule"]]
        drawn = given.get("random")
        if isinstance(drawn, dict) and isinstance(drawn.get("faults"), list | tuple):
            faults = [{"fault": one} if isinstance(one, str) else one for one in drawn["faults"]]
            given["random"] = {**drawn, "faults": faults}
        return given


def _unflatten(entry: Any) -> Any:
    if not isinstance(entry, dict) or "inject" in entry:
        return entry
    times = {key: entry[key] for key in ("at_s", "duration_s") if key in entry}
    return {**times, "inject": {key: value for key, value in entry.items() if key not in times}}


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
