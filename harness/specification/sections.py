"""The sections of a specification, each by itself; whether they fit each other is looked up in
`wrackline.harness.specification.parts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from wrackline.fleets.spec import FleetSpec
from wrackline.harness.specification import virtual_time
from wrackline.nemesis.faults.by_command import beyond_commands
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import ClusterFault
from wrackline.nemesis.spec import NemesisSpec
from wrackline.plugins.doors import Door
from wrackline.plugins.fields import (
    MILLISECONDS,
    SECONDS,
    JsonSchema,
    Lax,
    Like,
    Most,
    Strict,
    in_milliseconds,
)
from wrackline.plugins.nearest import nearest
from wrackline.plugins.registry import Group, PluginError
from wrackline.systems.spec import SystemSpec
from wrackline.workloads.log import ClientsSpec, Workload

FLEET = Door(Group.FLEETS, FleetSpec, "kind", default="netns")
SYSTEM = Door(Group.SYSTEMS, SystemSpec, "kind", default="wrackline")


def _settings_of(workload: Any) -> Any:
    """An entry point names the workload, which names its settings."""
    return workload.settings if isinstance(workload, type) and issubclass(workload, Workload) else None


WORKLOAD = Door(Group.WORKLOADS, ClientsSpec, "name", default="log", model_of=_settings_of)

Name = Annotated[
    str, Like(r"^[a-z0-9][a-z0-9-]{0,39}$", "use a-z, 0-9 and -, up to 40 characters, such as my-run")
]
Limit = Annotated[float, Field(gt=0)]
LimitS = Annotated[Limit, SECONDS]
LimitMs = Annotated[Limit, MILLISECONDS]
TopicName = Annotated[
    str, Like(r"^[a-zA-Z0-9._-]{1,200}$", "use letters, digits, '.', '_' and -, up to 200 characters")
]


MOST_TOPICS = 50


class TopicSpec(Strict):
    """A topic of a run."""

    name: TopicName = "log"
    """The topic's name."""
    partitions: Annotated[
        int, Field(ge=1), Most(10_000, "take several runs, each with a topic of its own")
    ] = 2
    """How many partitions the topic has; on hosts that are made here 200 at most."""
    replication_factor: Annotated[int, Field(ge=1, le=15)] = 3
    """How many replicas each partition has."""
    min_insync_replicas: Annotated[int, Field(ge=1, le=15)] = 2
    """As many replicas must be in the ISR for a write with acks=all."""
    configs: Annotated[dict[str, str | int | bool], AfterValidator(in_milliseconds)] = Field(
        default_factory=dict
    )
    """Topic settings with Kafka's names."""


class Percentiles(Strict):
    """Limits of the latency of sends, in milliseconds."""

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
    """Their meanings are in wrackline.checkers.verdict.conditions.thresholds."""

    latency_ms: LatencySpec = LatencySpec()
    """The latency of sends that succeeded is at most this."""
    longest_gap_s: LimitS | None = None
    """How long a partition may go without an acknowledgement."""
    recovery_s: LimitS | None = None
    """How long after a fault every partition may take until it is acknowledged again, with its full ISR."""
    isr_changes: Limit | None = None
    """How often the ISR of a partition may change in the whole run."""
    left_out: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share (0 to 1) of the operations asked for during the faults that may be left out."""
    records_per_s: Limit | None = None
    """At least so many records are acknowledged a second."""
    operations_per_s: Limit | None = None
    """At least so many operations succeed a second."""

    def limits(self) -> dict[str, float]:
        """Returns the limits that are set, by their names in `checkers.verdict.conditions.thresholds`."""
        return dict(_flat(self.model_dump(exclude_none=True)))


class LivenessSpec(Strict):
    """How long the cluster may take, once faults are over, until everything moves again. Without a bound:
    twice ``system.waits.full_isr_s``, for ``disk_s`` as long as that, and nothing for ``fence_s``."""

    leader_s: LimitS | None = None
    """Every partition has a leader, as long as a replica that may lead is there."""
    rejoin_s: LimitS | None = None
    """Every node runs, and every replica that is there is in the ISR."""
    reassignment_s: LimitS | None = None
    """Every reassignment whose replicas are there has ended."""
    coordinator_s: LimitS | None = None
    """Every group and every transactional id has a coordinator that answers."""
    transaction_s: LimitS | None = None
    """Once the clients have stopped, every transaction has ended, and the last stable offset is the high
    watermark."""
    operation_s: LimitS | None = None
    """Of every kind of operation that clients try one succeeds."""
    disk_s: LimitS | None = None
    """While a disk takes no writes, another replica of the ISR leads."""
    fence_s: LimitS | None = None
    """While a node is killed, paused or without power, it is in no ISR that has another member."""

    def bounds(self, full_isr_s: float) -> dict[str, float]:
        """Returns the bound of each key. ``full_isr_s``: of ``system.waits``."""
        usual = dict.fromkeys(type(self).model_fields, 2 * full_isr_s) | {"disk_s": full_isr_s}
        del usual["fence_s"]
        return usual | self.model_dump(exclude_none=True)


def _flat(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, float(value)


def _anomalies(schema: JsonSchema) -> None:
    """The names that ``expected`` takes."""
    from wrackline.checkers.checks.registry import names  # imports every check, which takes a second

    schema["items"]["enum"] = sorted(names())


class ContractSpec(Strict):
    """The contract itself follows from the configuration; `wrackline analyze --contract` judges by
    another."""

    expected: Annotated[tuple[str, ...], Lax, Field(json_schema_extra=_anomalies)] = ()
    """Anomalies that must show (defect runs): the verdict is then `reproduced` or `not reproduced`."""
    verdict: Literal["violation"] | None = None
    """The verdict of a run that shows a known bug: where it comes, whoever looks at many runs shows it as
    expected, and nobody is told; `pass` counts as failed. The verdict itself does not change."""
    thresholds: Thresholds = Thresholds()
    """Limits for what is measured; one that is missed makes the run inconclusive."""
    liveness: LivenessSpec = LivenessSpec()
    """How long things may stand still after healing; what takes longer is a violation."""
    invariants: Literal["noted", "violation"] = "noted"
    """What a broken invariant of the brokers' state is (docs/invariants.md), which clients may not have
    noticed: a line of the verdict, or a violation."""

    @field_validator("expected")
    @classmethod
    def _that_are_looked_for(cls, expected: tuple[str, ...]) -> tuple[str, ...]:
        if expected:
            from wrackline.checkers.checks.registry import (
                names,  # imports every check, which takes a second
            )

            for anomaly in expected:
                if anomaly not in names():
                    near = nearest(anomaly, names()) or ";"
                    raise ValueError(
                        f"there is no anomaly {anomaly!r}{near} `wrackline list anomalies` lists them"
                    )
        return expected


class Sections(Strict):
    """A specification whose parts may not fit."""

    name: Name
    """The run's name; its directory has it too."""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    """Every random choice follows from it."""
    fleet: Annotated[FleetSpec, FLEET] = Field(default_factory=FLEET.usual)
    """The hosts."""
    system: Annotated[SystemSpec, SYSTEM] = Field(default_factory=SYSTEM.usual)
    """What is deployed on them."""
    topic: TopicSpec = TopicSpec()
    """What the clients write to and read from."""
    topics: Annotated[tuple[TopicSpec, ...], Lax, Field(max_length=MOST_TOPICS)] = ()
    """Several topics, for workloads that take them; what one of them does not say is as in ``topic``."""
    workload: Annotated[ClientsSpec, WORKLOAD] = Field(default_factory=WORKLOAD.usual)
    """What the clients do."""
    nemesis: NemesisSpec = NemesisSpec()
    """What goes wrong."""
    contract: ContractSpec = ContractSpec()
    """What is expected of the run beyond what its configuration promises."""

    @property
    def every_topic(self) -> tuple[TopicSpec, ...]:
        """Returns the topics of the run, one or several."""
        return self.topics or (self.topic,)

    @property
    def nemesis_here(self) -> NemesisSpec:
        """Returns the nemesis, with the lanes of a preset and what ``follow`` does not name written out as
        far as they are possible here."""
        return self.nemesis.without_preset(self.cannot)[0].with_usual(self._cannot_follow)

    @property
    def every_fault(self) -> list[FaultSpec]:
        """Returns the faults of the schedule, and then all that may be drawn."""
        here = self.nemesis_here
        pool = [fault for lane in here.drawn.values() for fault in lane.faults]
        followed = () if here.follow is None else here.follow.every_fault
        return [*(one.inject for one in self.nemesis.schedule), *pool, *followed]

    @property
    def left_out(self) -> list[str]:
        """Faults of the preset that are not possible here: a line each."""
        left_out = self.nemesis.without_preset(self.cannot)[1]
        return [f"left out of the preset: {line}" for line in left_out]

    def _cannot_follow(self, fault: FaultSpec) -> str | None:
        """As ``cannot``; a reassignment needs a broker to move to besides, and what names a controller one
        that is known."""
        factor = max(topic.replication_factor for topic in self.every_topic)
        if fault.fault == "reassign" and self.fleet.hosts and self.fleet.brokers <= factor:
            return f"reassign needs more brokers than topic.replication_factor ({factor})"
        if fault.target == "controller" and self.fleet.hosts and not self.fleet.controllers:
            return "fleet.controllers is 0"
        return self.cannot(fault)

    def cannot(self, fault: FaultSpec) -> str | None:
        """Returns why the fault cannot be done to this system on these hosts; None when it can."""
        if self.fleet.virtual:
            return virtual_time.cannot(fault, self.fleet.hosts)
        if self.system.broker_names() is None:
            return fault.refusal(self.fleet, self.system) if self.fleet.hosts else None
        built = fault.build()
        if isinstance(built, ClusterFault):
            return fault.refusal(self.fleet, self.system)
        return self.system.cannot(fault.fault) or beyond_commands(built)

    @model_validator(mode="before")
    @classmethod
    def _fleet_of_the_system(cls, raw: Any) -> Any:
        """Sets the fleet of a system that runs already, which needs none."""
        system = raw.get("system") if isinstance(raw, dict) else None
        if "fleet" in (raw or ()) or not isinstance(system, dict | SystemSpec):
            return raw
        kind = system.get("kind", SYSTEM.default) if isinstance(system, dict) else system.kind
        return {**raw, "fleet": {"kind": _usual_fleet(kind)}}

    @model_validator(mode="before")
    @classmethod
    def _a_log_unless_named(cls, raw: Any) -> Any:
        """A workload without a name is ``log``; how many clients it has may follow from the number of
        partitions."""
        if not isinstance(raw, dict):
            return raw
        workload = raw.get("workload", {})
        if not isinstance(workload, dict):
            return raw
        named = {"name": WORKLOAD.default, **workload}
        partitions = _partitions(raw.get("topic", {}), raw.get("topics") or ())
        clients = {} if partitions is None else _clients_for(named["name"], partitions)
        return {**raw, "workload": {**named, **clients, **workload}}

    @model_validator(mode="after")
    def _topics_like_topic(self) -> Self:
        """What one of several topics does not say is as in ``topic``."""
        topics = tuple(
            self.topic.model_copy(update={key: getattr(one, key) for key in one.model_fields_set})
            for one in self.topics
        )
        if topics != self.topics:
            object.__setattr__(self, "topics", topics)
        return self

    @model_validator(mode="after")
    def _fit_for_one_another(self) -> Self:
        """Hosts have what the system needs, and the system is given the time that its hosts need, where the
        user has said nothing else."""
        if not self.fleet.hosts or self.system.broker_names() is not None:
            return self
        fleet = self.fleet.carrying(self.system.host_needs)
        system = self.system
        if fleet.slowness != 1.0:
            system = system.model_copy(update={"waits": system.waits.slower(fleet.slowness)})
        # In place, for a validator has no other way: nobody has seen this specification yet.
        for name, fit in (("fleet", fleet), ("system", system)):
            if fit is not getattr(self, name):
                object.__setattr__(self, name, fit)
        return self


def _partitions(topic: Any, topics: Any) -> int | None:
    """Returns how many partitions all topics have together, as they are written; None where nothing is
    said, or not with a number."""
    if not isinstance(topic, dict) or not isinstance(topics, list | tuple):
        return None
    usual = topic.get("partitions")
    if not topics:
        return usual if isinstance(usual, int) else None
    usual = TopicSpec().partitions if usual is None else usual
    counts = [one.get("partitions", usual) for one in topics if isinstance(one, dict)]
    numbers = [count for count in counts if isinstance(count, int)]
    return sum(numbers) if len(numbers) == len(topics) else None


def _usual_fleet(system: Any) -> str:
    """The default for a system that there is not: it is refused where it stands."""
    try:
        model = SYSTEM.model(system)
    except PluginError:
        return FLEET.default or ""
    assert issubclass(model, SystemSpec)
    return model.usual_fleet


def _clients_for(workload: Any, partitions: int) -> dict[str, int]:
    """Returns the default numbers of clients; nothing for a workload that does not exist: it is refused where
    it stands."""
    try:
        model = WORKLOAD.model(workload)
    except PluginError:
        return {}
    assert issubclass(model, ClientsSpec)
    return model.clients_for(partitions)
