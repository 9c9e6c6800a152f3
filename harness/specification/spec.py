"""The specification of a run: one YAML file, every key known, every mistake one line.

    name: acks-all
    seed: 7
    fleet:    {kind: netns, brokers: 3}
    system:   {kind: wrackline, profile: kip966, config: {replica_lag_time_max_ms: 4000}}
    topic:    {name: log, partitions: 2, replication_factor: 3, min_insync_replicas: 2}
    workload: {name: log, duration_s: 60, rate: 200, acks: all}
    nemesis:  {...}                      # wrackline.nemesis.spec.NemesisSpec
    contract: {expected: [], thresholds: {}}

What is left out has the default written here; `wrackline run` saves the complete specification with the run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError, model_validator

from wrackline.errors import InputError
from wrackline.harness.specification import parts, yaml_text
from wrackline.harness.specification.errors import lines
from wrackline.harness.specification.sections import Sections
from wrackline.harness.specification.suites import find
from wrackline.workloads.clients.versions import NEWEST


class SpecError(InputError):
    """A specification is wrong. The message is one line: which file, which key, what is wrong, what would
    do."""

    def __init__(self, *mistakes: str) -> None:
        """A line for each mistake; the message is the first, and how many more there are."""
        super().__init__(*mistakes)
        self.mistakes = mistakes

    def __str__(self) -> str:
        more = len(self.mistakes) - 1
        return self.mistakes[0] + (f" (and {more} more)" if more else "")


class Spec(Sections):
    """A whole specification."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Spec:
        """Raises ValueError."""
        if self.contract.thresholds.left_out is not None and not self.workload.rate:
            raise ValueError(
                "contract.thresholds.left_out: with workload.rate 0 nothing is asked for, so nothing can be "
                "left out"
            )
        parts.check(self)
        return self

    def to_yaml(self) -> str:
        """Complete: every default written out."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def load(path: Path, *, settings: Sequence[str] = (), seed: int | None = None) -> Spec:
    """Read a specification. ``settings`` are ``key.path=value`` (the value in YAML), ``seed`` wins over the
    file's.

    Raises SpecError."""
    return _changed(load_mapping(path), str(path), settings, seed)


def parse(text: str, source: str, *, settings: Sequence[str] = (), seed: int | None = None) -> Spec:
    """Raises SpecError."""
    return _changed(_mapping(text, source), source, settings, seed)


def load_mapping(path: Path) -> dict[str, Any]:
    """A file of ours in YAML, as it is written. Raises SpecError."""
    try:
        with find(path).open("rb") as file:
            content = file.read(yaml_text.MOST_BYTES + 1)
    except FileNotFoundError as missing:
        raise SpecError(
            f"{path}: no such file; `wrackline init` writes one, `wrackline list specs` lists others"
        ) from missing
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        return _mapping(yaml_text.decoded(content), str(path))
    except yaml_text.NotYaml as error:
        raise SpecError(f"{path}: {error}") from error


def _mapping(text: str, source: str) -> dict[str, Any]:
    try:
        raw = yaml_text.read(text)
    except yaml_text.NotYaml as error:
        raise SpecError(f"{source}: {error}") from error
    if raw is None:
        raise SpecError(f"{source}: it is empty; `wrackline init` writes a specification to start from")
    if not isinstance(raw, dict):
        what = "a list" if isinstance(raw, list) else "a single value"
        raise SpecError(
            f"{source}: this is {what}, not keys with values; at least `name: NAME` must be there"
        )
    return raw


def _changed(raw: dict[str, Any], source: str, settings: Sequence[str], seed: int | None) -> Spec:
    for setting in settings:
        apply_setting(raw, setting)
    if seed is not None:
        raw["seed"] = seed
    return validated(raw, source)


def validated(raw: dict[str, Any], source: str) -> Spec:
    """A specification as YAML gave it. Raises SpecError."""
    try:
        return _with_client_version(Spec.model_validate(raw))
    except ValidationError as error:
        raise SpecError(*(f"{source}: {line}" for line in lines(error, Spec, raw))) from error


def _with_client_version(spec: Spec) -> Spec:
    """Clients in Java are of the system's version where that is Kafka's own and nothing else is said."""
    client, version = spec.workload.client, spec.system.configured().version
    if client.library != "java" or client.version:
        return spec
    client = client.model_copy(update={"version": version or NEWEST})
    return spec.model_copy(update={"workload": spec.workload.model_copy(update={"client": client})})


_IN_BRACKETS = re.compile(r"\[([0-9]+)\]")
"""``schedule[0]``, as places are told, is ``schedule.0``."""


def apply_setting(raw: dict[str, Any], setting: str) -> None:
    """``workload.rate=500`` into the mapping. Raises SpecError."""
    path, equals, text = setting.partition("=")
    keys = _IN_BRACKETS.sub(r".\1", path).split(".")
    if not equals or not all(keys):
        raise SpecError(f"--set {setting}: give it as key.path=value, for example --set workload.rate=500")
    try:
        value = yaml_text.read(text)
    except yaml_text.NotYaml as error:
        raise SpecError(f"--set {setting}: {error}") from error
    place: Any = raw
    for number, key in enumerate(keys):
        last = number == len(keys) - 1
        if isinstance(place, list):
            if not key.isdigit() or int(key) >= len(place):
                raise SpecError(
                    f"--set {setting}: {'.'.join(keys[:number])} has {len(place)} elements, no {key!r}"
                )
            if last:
                place[int(key)] = value
            else:
                place = place[int(key)]
        elif isinstance(place, dict):
            if last:
                place[key] = value
            else:
                place = place.setdefault(key, {})
        else:
            raise SpecError(
                f"--set {setting}: {'.'.join(keys[:number])} is a value, nothing can be set below it"
            )
