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
from collections.abc import Hashable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from wrackline.harness.specification import parts
from wrackline.harness.specification.errors import lines, nearest
from wrackline.nemesis.spec import NemesisSpec
from wrackline.plugins.fields import (
    MILLISECONDS,
    SECONDS,
    JsonSchema,
    Lax,
    NoBoolean,
    Strict,
    in_milliseconds,
)
from wrackline.workloads.catalog import AnySpec
from wrackline.workloads.log import LogSpec

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Limit = Annotated[float, Field(gt=0)]
LimitS = Annotated[Limit, SECONDS]
LimitMs = Annotated[Limit, MILLISECONDS]
TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,200}$")]


class SpecError(Exception):
    """A specification is wrong. The message is one line: which file, which key, what is wrong, what would
    do."""

    def __init__(self, *mistakes: str) -> None:
        """A line for each mistake; the message is the first, and how many more there are."""
        super().__init__(*mistakes)
        self.mistakes = mistakes

    def __str__(self) -> str:
        more = len(self.mistakes) - 1
        return self.mistakes[0] + (f" (and {more} more)" if more else "")


class FleetSpec(Strict):
    kind: Literal["netns"] = "netns"
    """Hosts are namespaces of this machine."""
    brokers: Annotated[int, Field(ge=1, le=9)] = 3
    """How many broker hosts there are: n1, n2, ..."""
    controllers: Annotated[Literal[1, 3, 5], NoBoolean] = 1
    """How many controllers there are, on hosts c1, c2, ...; several are a quorum."""
    combined: bool = False
    """The controllers run beside brokers, on the first of their hosts, in one process with each."""
    spares: Annotated[int, Field(ge=0, le=8)] = 0
    """Hosts with a broker that is not started: the fault ``add-broker`` does."""
    disk_mb: Annotated[int, Field(ge=64, le=65_536)] = 256
    """Size of each host's data disk."""
    filesystem: Literal["ext4", "xfs"] = "ext4"
    """The file system of each host's data disk."""
    subnet: Annotated[str, Field(json_schema_extra={"pattern": "^[0-9./]+$"})] = "198.18.0.0/24"
    """IPv4 addresses for the hosts."""

    @field_validator("subnet")
    @classmethod
    def _a_network_with_room(cls, subnet: str) -> str:
        try:
            network = IPv4Network(subnet)
        except ValueError as wrong:
            raise ValueError(f"{wrong}; give it as 198.18.0.0/24") from wrong
        if network.prefixlen > 26:
            raise ValueError(f"{subnet} has no room for the hosts: /26 is the smallest")
        return subnet

    @property
    def broker_hosts(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.brokers + 1))

    @property
    def spare_hosts(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(self.brokers + 1, self.brokers + self.spares + 1))

    @property
    def controller_hosts(self) -> tuple[str, ...]:
        kind = "n" if self.combined else "c"
        return tuple(f"{kind}{number}" for number in range(1, self.controllers + 1))

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.broker_hosts, *self.spare_hosts, *self.controller_hosts)))

    @model_validator(mode="after")
    def _brokers_enough(self) -> Self:
        if self.combined and self.controllers > self.brokers:
            raise ValueError(
                f"combined: {self.controllers} controllers need as many brokers, there are {self.brokers}"
            )
        if self.brokers + self.spares > 9:
            raise ValueError(
                f"{self.brokers} brokers and {self.spares} spares are more than the 9 there can be"
            )
        return self


class SystemSpec(Strict):
    kind: Literal["wrackline"] = "wrackline"
    """What is deployed: the broker that comes with Wrackline."""
    profile: str = "kip966"
    """The broker's set of rules: kip966, kraft35 or kip101."""
    defects: Annotated[tuple[str, ...], Lax] = ()
    """Historic defects to start the broker with; `docs/defects.md` lists them."""
    config: Annotated[dict[str, str | int | float | bool], AfterValidator(in_milliseconds)] = Field(
        default_factory=dict
    )
    """Settings of brokers and controllers by their names in the broker's configuration file."""


class TopicSpec(Strict):
    name: TopicName = "log"
    """The name of the one topic that clients use."""
    partitions: Annotated[int, Field(ge=1, le=200)] = 2
    """How many partitions the topic has."""
    replication_factor: Annotated[int, Field(ge=1, le=15)] = 3
    """How many replicas each partition has."""
    min_insync_replicas: Annotated[int, Field(ge=1, le=15)] = 2
    """As many replicas must be in the ISR for a write with acks=all."""
    configs: Annotated[dict[str, str | int | bool], AfterValidator(in_milliseconds)] = Field(
        default_factory=dict
    )
    """Topic settings with Kafka's names."""


class Percentiles(Strict):
    """Of the latency of sends, in milliseconds: at most."""

    p50: LimitMs | None = None
    """Half of the sends take no longer."""
    p95: LimitMs | None = None
    """95 of 100 sends take no longer."""
    p99: LimitMs | None = None
    """99 of 100 sends take no longer."""


class LatencySpec(Strict):
    healthy: Percentiles = Percentiles()
    """In the main phase's stretches without a fault."""
    faults: Percentiles = Percentiles()
    """While a fault was in force."""


class Thresholds(Strict):
    """Their meanings are in wrackline.checkers.thresholds."""

    latency_ms: LatencySpec = LatencySpec()
    """The latency of sends that succeeded is at most this."""
    longest_gap_s: LimitS | None = None
    """How long a partition may go without an acknowledgement."""
    recovery_s: LimitS | None = None
    """How long after a fault every partition may take until it is acknowledged again, with its full ISR."""
    left_out: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share (0 to 1) of the operations asked for during the faults that may be left out."""
    records_per_s: Limit | None = None
    """At least so many records are acknowledged a second."""
    operations_per_s: Limit | None = None
    """At least so many operations succeed a second."""

    def limits(self) -> dict[str, float]:
        """Those that are set, by their names in wrackline.checkers.thresholds."""
        return dict(_flat(self.model_dump(exclude_none=True)))


def _flat(given: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    for key, value in given.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, float(value)


def _anomalies(schema: JsonSchema) -> None:
    """The names that ``expected`` takes."""
    from wrackline.checkers.registry import names  # imports every check, which takes a second

    schema["items"]["enum"] = sorted(names())


class ContractSpec(Strict):
    """The contract itself follows from the configuration; `wrackline analyze --contract` judges by
    another."""

    expected: Annotated[tuple[str, ...], Lax, Field(json_schema_extra=_anomalies)] = ()
    """Anomalies that must show (defect runs): the verdict is then `reproduced` or `not reproduced`."""
    thresholds: Thresholds = Thresholds()
    """Limits for what is measured; one that is missed makes the run inconclusive."""

    @field_validator("expected")
    @classmethod
    def _that_are_looked_for(cls, expected: tuple[str, ...]) -> tuple[str, ...]:
        if expected:
            from wrackline.checkers.registry import names  # imports every check, which takes a second

            for anomaly in expected:
                if anomaly not in names():
                    near = nearest(anomaly, names()) or ";"
                    raise ValueError(
                        f"there is no anomaly {anomaly!r}{near} `wrackline anomalies` lists them"
                    )
        return expected


class Spec(Strict):
    name: Name
    """The run's name; its directory has it too."""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    """Every random choice follows from it."""
    fleet: FleetSpec = FleetSpec()
    """The hosts."""
    system: SystemSpec = SystemSpec()
    """What is deployed on them."""
    topic: TopicSpec = TopicSpec()
    """What the clients write to and read from."""
    workload: Annotated[AnySpec, Field(discriminator="name")] = LogSpec()
    """What the clients do."""
    nemesis: NemesisSpec = NemesisSpec()
    """What goes wrong."""
    contract: ContractSpec = ContractSpec()
    """What is expected of the run beyond what its configuration promises."""

    @model_validator(mode="before")
    @classmethod
    def _a_log_unless_named(cls, raw: Any) -> Any:
        """A workload without a name is ``log``; its clients follow from the number of partitions."""
        if not isinstance(raw, dict):
            return raw
        workload, topic = raw.get("workload", {}), raw.get("topic", {})
        if not isinstance(workload, dict) or workload.get("name", "log") != "log":
            return raw
        partitions = topic.get("partitions") if isinstance(topic, dict) else None
        clients = LogSpec.clients_for(partitions) if isinstance(partitions, int) else {}
        return {**raw, "workload": {"name": "log", **clients, **workload}}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        """Any other workload than ``log`` must be named."""
        whole = handler(core)
        workload = handler.resolve_ref_schema(whole)["properties"]["workload"]
        by_name = {name: {"$ref": ref} for name, ref in workload["discriminator"]["mapping"].items()}
        workload["oneOf"] = [
            ref if name == "log" else {"allOf": [ref, {"required": ["name"]}]}
            for name, ref in by_name.items()
        ]
        return whole

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


class _Loader(yaml.SafeLoader):
    """Rejects a key that is there twice: YAML's own answer, to take the last one, hides a mistake. Reads
    `1e3` as the number that it is in YAML 1.2, and so in editors; PyYAML alone takes it for text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(
                    problem="a key must be a word or a number; are there too many braces?",
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} is there twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def load(path: Path, *, settings: Sequence[str] = (), seed: int | None = None) -> Spec:
    """Read a specification. ``settings`` are ``key.path=value`` (the value in YAML), ``seed`` wins over the
    file's.

    Raises SpecError."""
    try:
        text = path.read_text()
    except FileNotFoundError as missing:
        raise SpecError(
            f"{path}: no such file; `wrackline init` writes one, `wrackline examples` lists others"
        ) from missing
    except (OSError, UnicodeDecodeError) as wrong:
        raise SpecError(f"{path}: cannot be read: {wrong}") from wrong
    return parse(text, str(path), settings=settings, seed=seed)


def parse(text: str, source: str, *, settings: Sequence[str] = (), seed: int | None = None) -> Spec:
    """Raises SpecError."""
    try:
        raw = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as wrong:
        raise SpecError(f"{source}: {_yaml_line(wrong)}") from wrong
    if not isinstance(raw, dict):
        raise SpecError(
            f"{source}: a specification is a mapping with at least `name:`, this is {type(raw).__name__}"
        )
    for setting in settings:
        apply_setting(raw, setting)
    if seed is not None:
        raw["seed"] = seed
    return validated(raw, source)


def validated(raw: dict[str, Any], source: str) -> Spec:
    """A specification as YAML gave it. Raises SpecError."""
    try:
        return Spec.model_validate(raw)
    except ValidationError as wrong:
        raise SpecError(*(f"{source}: {line}" for line in lines(wrong, Spec, raw))) from wrong


def apply_setting(raw: dict[str, Any], setting: str) -> None:
    """``workload.rate=500`` into the mapping. Raises SpecError."""
    path, equals, text = setting.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise SpecError(f"--set {setting}: give it as key.path=value, for example --set workload.rate=500")
    try:
        value = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as wrong:
        raise SpecError(f"--set {setting}: {_yaml_line(wrong)}") from wrong
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


def _yaml_line(wrong: yaml.YAMLError) -> str:
    if isinstance(wrong, yaml.MarkedYAMLError) and wrong.problem_mark is not None:
        mark = wrong.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {wrong.problem or 'not YAML'}"
    return "not YAML: " + " ".join(str(wrong).split())
