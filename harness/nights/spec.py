"""The settings of a night: specifications times seeds times settings, in one YAML file.

name: nightly
budget: 8h
runs:
  - spec: demo-acks-all.yaml                # beside this file
    seeds: [1, 2, 3]
    matrix: {system.profile: [kip101, kip966], workload.acks: [all, 1]}
    exclude: [{system.profile: kip101, workload.acks: 1}]
  - spec: kafka-acks-all.yaml
    matrix: {system.version: [3.9.2, 4.4.0]}
    twin: {system.version: 4.4.0}
  - simulate: {swarm: any, budget: 5m}      # beside runs on hosts, a campaign in virtual time
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import orjson
from pydantic import Field, ValidationError, field_validator, model_validator

from wrackline.harness.notifications.spec import After
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.errors import lines
from wrackline.harness.specification.spec import Spec, SpecError, load_mapping
from wrackline.harness.specification.suites import find
from wrackline.harness.specification.virtual_time import check_campaign
from wrackline.plugins.fields import SECONDS, Lax, Like, Strict

Settings = dict[str, Any]
"""A setting of the specification by its path (``workload.rate``) -> its value."""
SEED = "seed"
_LONGEST_NAME = 100


NightName = Annotated[
    str, Like(r"^[a-z0-9][a-z0-9._-]{0,39}$", "use a-z, 0-9, '.', '_' and -, up to 40 characters")
]


class Campaign(Strict):
    """A search in virtual time: what failed before, then new seeds of a swarm (docs/nights.md)."""

    follows: ClassVar[Mapping[str, Callable[[Any], Any]]] = {"name": lambda one: f"swarm-{one.swarm}"}

    name: NightName = ""
    """Of the case; ``swarm-any`` by default."""
    swarm: str = "any"
    """A profile, or any: all profiles and upgrades."""
    budget: Annotated[float, Field(ge=0.6), SECONDS] = 300.0
    """No run begins after this time. Smaller forms of violations take as long again at most, or a minute."""
    seeds: Annotated[int, Field(ge=1)] | None = None
    """New seeds at most."""
    jobs: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes."""
    corpus: str = ".wrack/corpus"
    """The folder of what failed and of the seeds that were drawn, for this campaign and those to come."""
    defects: Annotated[tuple[str, ...], Lax] = ()
    """Historic bugs to put back. A violation is one all the same: so it can be tried whether a night would
    notice."""


class Entry(Strict):
    """One specification, and how often it is run, and how; or a campaign."""

    spec: str = ""
    """The file, relative to the night's own; or one that comes with Wrackline, by its name (`wrackline
    examples`)."""
    simulate: Campaign | None = None
    """A campaign in virtual time, in place of a specification."""
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Lax] = ()
    """A run for each; the specification's own seed where none is given."""
    matrix: dict[str, Annotated[tuple[Any, ...], Field(min_length=1, strict=False)]] = Field(
        default_factory=dict
    )
    """Settings by their paths, each with its values: a run for every combination."""
    exclude: Annotated[tuple[Settings, ...], Lax] = ()
    """Combinations that are left out: those that have all the values of one of these."""
    set: Settings = Field(default_factory=dict)
    """Settings by their paths that hold in each of these runs."""
    twin: Settings | None = None
    """Settings of the run that is made beside a violation, and that should be clean: a fixed version, for
    example. None: the same run without its faults."""

    @field_validator("matrix")
    @classmethod
    def _seed_has_its_own_key(cls, given: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        if SEED in given:
            raise ValueError("give seeds in `seeds`, beside the matrix")
        return given

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.spec) is (self.simulate is not None):
            raise ValueError("give a spec, or simulate: one of both")
        others = [key for key in ("seeds", "matrix", "exclude", "set", "twin") if getattr(self, key)]
        if self.simulate is not None and others:
            raise ValueError(f"{others[0]} is for a spec: simulate has keys of its own")
        return self


class Shrinking(Strict):
    """The limits of the runs that make a violation smaller."""

    runs: Annotated[int, Field(ge=0)] = 30
    """At most, for each violation; 0: it is left as it is."""
    tries: Annotated[int, Field(ge=1, le=20)] = 2
    """So often a smaller specification is run before it counts as one that does not show it."""


class Night(Strict):
    """A whole night."""

    name: NightName
    """Nights of the same name know of each other: what failed lately is run first."""
    budget: Annotated[float, Field(gt=0), SECONDS] = 8 * 3600.0
    """No run begins after this time."""
    slots: Annotated[int, Field(ge=1, le=64)] = 1
    """So many runs at a time. Faults that are about time want one."""
    repeat: Annotated[int, Field(ge=0, le=100)] = 3
    """So often a violation is run again, with its own seed."""
    twins: bool = True
    """Whether a twin is run beside each violation."""
    shrink: Shrinking = Shrinking()
    """How much is spent on making a violation smaller."""
    keep_free_mb: Annotated[int, Field(ge=0)] = 2048
    """With less than this on the disk of the results no run begins."""
    after: After = After()
    """What is done when the night is over."""
    runs: Annotated[tuple[Entry, ...], Field(min_length=1, strict=False)]
    """What is run."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run that a night wants."""

    name: str
    """Unique in a night, and the same every night: ``demo-acks-all.kip101.1.s2``."""
    spec: Spec | None
    """None: it is a campaign."""
    twin: Spec | None
    """None: the specification has no faults to leave out, and the file names no other twin."""
    file: Path
    """What it was read from."""
    campaign: Campaign | None = None


def load_night(path: Path) -> Night:
    """Raises SpecError."""
    raw = load_mapping(path)
    try:
        return Night.model_validate(raw)
    except ValidationError as error:
        raise SpecError(*(f"{path}: {line}" for line in lines(error, Night, raw))) from error


def cases(night: Night, path: Path) -> list[Case]:
    """Every run that the file wants, each of them checked before the first is made. Raises SpecError, and
    what `load_checked` raises."""
    made: dict[str, Case] = {}
    mistakes: list[str] = []
    for number, entry in enumerate(night.runs):
        result = 0
        for settings in _combinations(entry):
            result += 1
            try:
                one = _case(entry, settings, path)
            except SpecError as error:
                told = f" with {_told(settings)}" if settings else ""
                mistakes += [f"{path}: runs[{number}]{told}: {mistake}" for mistake in error.mistakes]
                continue
            if one.name in made:
                mistakes.append(f"{path}: runs[{number}]: {one.name} is there already; name them apart")
            made[one.name] = one
        if not result:
            mistakes.append(f"{path}: runs[{number}]: exclude leaves none of its combinations")
    if mistakes:
        raise SpecError(*dict.fromkeys(mistakes))
    return list(made.values())


def _combinations(entry: Entry) -> Iterator[Settings]:
    axes: dict[str, tuple[Any, ...]] = dict(entry.matrix)
    if entry.seeds:
        axes[SEED] = entry.seeds
    for values in product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        if not any(without.items() <= chosen.items() for without in entry.exclude):
            yield chosen


def _case(entry: Entry, chosen: Settings, path: Path) -> Case:
    if entry.simulate is not None:
        one = entry.simulate
        check_campaign(one.swarm, one.corpus, one.defects)
        return Case(one.name, None, None, path, one)
    file = path.parent / entry.spec
    if not file.exists():
        file = find(Path(entry.spec))
    seed = chosen.get(SEED)
    settings = _as_options({**entry.set, **{key: value for key, value in chosen.items() if key != SEED}})
    spec = load_checked(file, settings=settings, seed=seed)
    if entry.twin is not None:
        twin = load_checked(file, settings=[*settings, *_as_options(entry.twin)], seed=seed)
    else:
        twin = load_checked(file, settings=[*settings, "nemesis={}"], seed=seed)
        if twin.nemesis == spec.nemesis:
            return Case(_name(spec, entry, chosen), spec, None, file)
    return Case(_name(spec, entry, chosen), spec, twin, file)


def _as_options(settings: Mapping[str, Any]) -> list[str]:
    """Returns the settings as ``--set`` takes them: JSON is YAML."""
    return [f"{key}={orjson.dumps(value).decode()}" for key, value in settings.items()]


def _name(spec: Spec, entry: Entry, chosen: Settings) -> str:
    parts = [spec.name, *(word(chosen[key]) for key in entry.matrix)]
    if SEED in chosen:
        parts.append(f"s{chosen[SEED]}")
    name = ".".join(parts)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}.{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def word(value: Any) -> str:
    """A value as a part of a file's name."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "none"


def _told(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())
