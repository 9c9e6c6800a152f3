"""Specification and seed to plan: every random choice is made here, and the plan is saved with the run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.spec import (
    FAULT,
    FollowSpec,
    GuidedSpec,
    NemesisSpec,
    QuietSpec,
    RandomSpec,
    SpecError,
)


@dataclass(frozen=True, slots=True)
class PlannedFault:
    id: str
    """``f1``, ``f2``, ...: in the order of their beginnings."""
    at_s: float
    duration_s: float
    spec: FaultSpec
    pick: int
    """Settles the free choices when its role is resolved (which of two followers?)."""


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    duration_s: float
    faults: tuple[PlannedFault, ...] = ()
    guided: GuidedSpec | None = None
    follow: FollowSpec | None = None

    @property
    def ends_s(self) -> float:
        """When the last timed fault is over; a guided schedule takes as long as the cluster does."""
        return max((fault.at_s + fault.duration_s for fault in self.faults), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """JSON-serialisable; `from_dict` takes it back."""
        return {
            "seed": self.seed,
            "duration_s": self.duration_s,
            "faults": [
                {
                    "id": fault.id,
                    "at_s": fault.at_s,
                    "duration_s": fault.duration_s,
                    "inject": FAULT.dump_python(fault.spec, mode="json"),
                    "pick": fault.pick,
                }
                for fault in self.faults
            ],
            "guided": None if self.guided is None else self.guided.model_dump(mode="json"),
            **({} if self.follow is None else {"follow": self.follow.model_dump(mode="json")}),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Plan:
        """Raises SpecError when it is no plan."""
        try:
            return cls(
                seed=int(given["seed"]),
                duration_s=float(given["duration_s"]),
                faults=tuple(
                    PlannedFault(
                        one["id"],
                        float(one["at_s"]),
                        float(one["duration_s"]),
                        FAULT.validate_python(one["inject"]),
                        int(one["pick"]),
                    )
                    for one in given["faults"]
                ),
                guided=None if given["guided"] is None else GuidedSpec.model_validate(given["guided"]),
                follow=None if given.get("follow") is None else FollowSpec.model_validate(given["follow"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SpecError(f"not a nemesis plan: {error}") from error


def plan(spec: NemesisSpec, seed: int, duration_s: float) -> Plan:
    """Pure: the same specification, seed and duration give the same plan.

    ``duration_s``: of the part of the run in which faults may be in force. Raises SpecError when a scheduled
    fault does not fit in it.
    """
    chance = random.Random(f"nemesis {seed}")
    timed: list[tuple[float, float, FaultSpec]] = []
    for number, one in enumerate(spec.schedule):
        if one.at_s + one.duration_s > duration_s:
            raise SpecError(
                f"nemesis.schedule[{number}]: {one.inject.fault} ends at {one.at_s + one.duration_s:g} s, "
                f"but the run lasts {duration_s:g} s; let it last longer or the fault begin earlier"
            )
        if (quiet := _disturbed(spec.quiet, one.at_s, one.at_s + one.duration_s)) is not None:
            raise SpecError(
                f"nemesis.schedule[{number}]: {one.inject.fault} from {one.at_s:g} to "
                f"{one.at_s + one.duration_s:g} s would be in force from {quiet.at_s:g} to "
                f"{quiet.ends_s:g} s, where nemesis.quiet wants no fault; move one of them"
            )
        timed.append((one.at_s, one.duration_s, one.inject))
    if spec.random is not None:
        timed += _draw(spec.random, chance, duration_s, spec.quiet)
    for name, lane in spec.lanes.items():
        # By itself: what one lane draws does not depend on what stands in another.
        timed += _draw(lane, random.Random(f"nemesis {seed} {name}"), duration_s, spec.quiet)
    timed.sort(key=lambda entry: entry[0])
    faults = tuple(
        PlannedFault(f"f{number}", at_s, lasts_s, fault, chance.getrandbits(32))
        for number, (at_s, lasts_s, fault) in enumerate(timed, 1)
    )
    return Plan(seed, duration_s, faults, spec.guided, spec.follow)


def _draw(
    spec: RandomSpec, chance: random.Random, duration_s: float, quiet: Sequence[QuietSpec]
) -> list[tuple[float, float, FaultSpec]]:
    drawn: list[tuple[float, float, FaultSpec]] = []
    at_s = spec.start_s
    # Every fault of the list gets its turn before one comes again: a short run must not miss one by chance.
    hat: list[FaultSpec] = []
    while True:
        lasts_s = round(chance.uniform(*spec.duration_s), 3)
        if at_s + lasts_s > duration_s - spec.tail_s:
            return drawn
        if (stretch := _disturbed(quiet, at_s, at_s + lasts_s)) is not None:
            at_s = stretch.ends_s
            continue
        if not hat:
            hat = [fault for fault in spec.faults for _ in range(spec.weights.get(fault.fault, 1))]
            chance.shuffle(hat)
        drawn.append((round(at_s, 3), lasts_s, hat.pop()))
        at_s += chance.uniform(*spec.every_s) + (0.0 if spec.overlap else lasts_s)


def _disturbed(quiet: Sequence[QuietSpec], begins_s: float, ends_s: float) -> QuietSpec | None:
    """The first stretch that should be quiet and would not be."""
    for stretch in sorted(quiet, key=lambda one: one.at_s):
        if begins_s < stretch.ends_s and ends_s > stretch.at_s:
            return stretch
    return None
