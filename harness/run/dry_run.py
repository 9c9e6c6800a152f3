"""A run's course as its specification and seed alone settle it: for `wrackline plan`.

The plan is the very one that a run saves, and the contract the one that would judge it. Nothing is made or
asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wrackline.checkers.verdict.contracts import name_of, terms_of
from wrackline.harness.run.live.live import GUIDED_S
from wrackline.harness.run.live.setup import plan_of, run_info, saved_plan
from wrackline.harness.specification.access import Access, access_of
from wrackline.harness.specification.build import build_parts
from wrackline.harness.specification.spec import Spec
from wrackline.nemesis.follow.draw import title
from wrackline.nemesis.guided.steps import (
    AskEnd,
    Await,
    AwaitBroker,
    AwaitCheckpoint,
    AwaitGrowth,
    ElectUncleanly,
    Flush,
    GuidedError,
    GuidedStep,
    Heal,
    Inject,
    KeepDisk,
    Sleep,
)
from wrackline.nemesis.preview import foreseen, guided_steps
from wrackline.nemesis.schedule import Plan
from wrackline.nemesis.spec import FollowSpec
from wrackline.nemesis.targets.states import STATES
from wrackline.systems.base import Node

SET_UP_S, TURNED_S, HEALED_S, READ_S, COLLECTED_S = 10.0, 1.0, 2.0, 1.0, 2.0
"""What parts of a run usually take on two cores: hosts, broker and topic; until every kind of operation
succeeded; until every replica is back in the ISR; the final read; the logs of the nodes."""
GUIDED_TAKES_S = 12.0
"""A guided schedule usually takes so long."""


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    usual_s: float
    at_most_s: float | None
    """None: as long as it takes."""
    what: str


@dataclass(frozen=True, slots=True)
class FaultAhead:
    """Times from the beginning of the main phase."""

    id: str
    at_s: float
    ends_s: float
    fault: str
    target: str
    hosts: tuple[str, ...] | None
    """None: the role is resolved when the fault begins."""
    how: Mapping[str, Any] = field(default_factory=dict)
    """The fault's other keys."""


@dataclass(frozen=True, slots=True)
class GuidedAhead:
    name: str
    at_s: float
    partition: str
    deadline_s: float
    """The longest that each wait may take."""
    supposing: str
    steps: tuple[str, ...]
    """The steps under that supposition; a run makes them from the cluster as it finds it."""


@dataclass(frozen=True, slots=True)
class TopicAhead:
    name: str
    partitions: int
    replication_factor: int
    min_insync_replicas: int


@dataclass(frozen=True, slots=True)
class LoadAhead:
    name: str
    duration_s: float
    rate: float
    """Operations per second; 0: as fast as the clients can."""
    spacing: str
    acks: str
    idempotence: bool
    topics: tuple[TopicAhead, ...]
    processes: Mapping[str, int]
    """By kind of operation."""
    clients: str
    """The library that they use, with its version where the specification settles it."""


@dataclass(frozen=True, slots=True)
class ContractAhead:
    name: str
    promise: str
    expected: tuple[str, ...]
    thresholds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Forecast:
    name: str
    seed: int
    hosts: Mapping[str, str]
    """What runs on each."""
    phases: tuple[Phase, ...]
    faults: tuple[FaultAhead, ...]
    guided: GuidedAhead | None
    workload: LoadAhead
    contract: ContractAhead
    usual_s: float
    """The whole run, without the judge."""
    plan: Mapping[str, Any]
    """What the run saves as ``plan.json``."""
    access: tuple[Access, ...] = ()
    """What the run uses in a cluster that runs already."""
    left_out: tuple[str, ...] = ()
    """Faults of a preset that are not possible here, and why."""
    follow: tuple[str, ...] = ()
    """The states of the cluster that faults follow, and these faults: a line each."""


def forecast(spec: Spec) -> Forecast:
    """Raises FleetError for hosts that cannot be named."""
    plan = plan_of(spec)
    system = build_parts(spec, spec.name).system
    info = run_info(spec, spec.name, system, plan)
    terms = terms_of(info)
    phases = _phases(spec, plan)
    return Forecast(
        name=spec.name,
        seed=spec.seed,
        hosts={node.host.name: _role(node) for node in system.nodes},
        phases=phases,
        faults=_faults(plan, system.nodes),
        guided=_guided(spec, system.nodes),
        workload=_load(spec),
        contract=ContractAhead(name_of(terms), terms.promise, info.expected, info.thresholds),
        usual_s=sum(phase.usual_s for phase in phases),
        plan=saved_plan(plan),
        access=access_of(spec),
        left_out=tuple(spec.left_out),
        follow=tuple(_follow(plan.follow)) if plan.follow is not None else (),
    )


def _phases(spec: Spec, plan: Plan) -> tuple[Phase, ...]:
    main_s, waits = spec.workload.duration_s, spec.system.waits
    guided_s = max(main_s, plan.guided.at_s + GUIDED_TAKES_S) if plan.guided else main_s
    at_most_s = main_s + (GUIDED_S if plan.guided else 0)
    return (
        Phase(
            "setup",
            SET_UP_S,
            None,
            f"hosts, broker, topic; {waits.ready_s:g} s for the cluster to be ready",
        ),
        Phase(
            "warm",
            TURNED_S + waits.steady_s,
            waits.warm_s + waits.steady_s,
            "every kind of operation succeeds, nothing goes wrong",
        ),
        Phase("main", guided_s, at_most_s, "the faults"),
        Phase(
            "heal",
            HEALED_S + waits.recovered_s,
            None,
            f"faults are undone; {waits.full_isr_s:g} s for the full ISR; {waits.recovered_s:g} s more",
        ),
        Phase(
            "drain",
            READ_S,
            waits.drain_s,
            "every partition is read to its end, and every replica's files",
        ),
        Phase("collect", COLLECTED_S, None, "logs of the nodes; the hosts are removed"),
    )


def _faults(plan: Plan, nodes: Sequence[Node]) -> tuple[FaultAhead, ...]:
    hosts = foreseen(plan, nodes)
    return tuple(
        FaultAhead(
            id=one.id,
            at_s=one.at_s,
            ends_s=round(one.at_s + one.duration_s, 3),
            fault=one.spec.fault,
            target=one.spec.target,
            hosts=hosts[one.id],
            how=one.spec.model_dump(mode="json", exclude={"fault", "target"}, exclude_defaults=True),
        )
        for one in plan.faults
    )


def _guided(spec: Spec, nodes: Sequence[Node]) -> GuidedAhead | None:
    guided = spec.nemesis.guided
    if guided is None:
        return None
    topic = next((one for one in spec.every_topic if one.name == guided.topic), spec.every_topic[0])
    led = [node.host.name for node in nodes if node.is_broker and not node.spare][: topic.replication_factor]
    try:
        steps = tuple(
            _in_words(step) for step in guided_steps(guided, nodes, topic.name, topic.replication_factor)
        )
    except GuidedError as error:
        steps = (f"none in such a cluster: {error}",)
    partition = f"{topic.name}-{guided.partition}"
    return GuidedAhead(
        name=guided.name,
        at_s=guided.at_s,
        partition=partition,
        deadline_s=guided.deadline_s,
        supposing=f"{led[0]} leads {partition}, its replicas are on {', '.join(led)}",
        steps=steps,
    )


def _follow(follow: FollowSpec) -> Iterator[str]:
    for state in follow.states:
        openers = ", ".join(map(title, follow.openers.get(state, ()))) or "nothing"
        yield f"{state}, {STATES[state].what}; {openers} leads there"
    yield f"then: {', '.join(map(title, follow.faults))}"


def _in_words(step: GuidedStep) -> str:
    match step:
        case Inject(id=fault_id, fault=fault, hosts=hosts, role=role):
            return f"{fault_id}: {fault.name} of {', '.join(hosts)} ({role})"
        case Heal(ids=ids):
            return f"{', '.join(ids)} undone"
        case Sleep(seconds=seconds, why=why):
            return f"{seconds:g} s: {why}"
        case Await() | AwaitGrowth() | AwaitCheckpoint() if step.patience_s is not None:
            return f"wait for {step.patience_s:g} s at most for: {step.what}"
        case Await(what=what) | AwaitBroker(what=what) | AwaitGrowth(what=what) | AwaitCheckpoint(what=what):
            return f"wait for: {what}"
        case AskEnd(host=host, told_by=told_by, topic=topic, partition=partition):
            return f"a client that knows what {told_by} knows asks {host} where {topic}-{partition} ends"
        case Flush(hosts=hosts):
            return f"{', '.join(hosts)} sync their disks"
        case KeepDisk(hosts=hosts):
            return f"the data disk of {', '.join(hosts)} is copied"
        case ElectUncleanly(topic=topic, partitions=partitions):
            names = ", ".join(f"{topic}-{number}" for number in partitions)
            return f"a person has a leader of {names} elected, whoever is there"


def _load(spec: Spec) -> LoadAhead:
    load = spec.workload
    return LoadAhead(
        name=load.name,
        duration_s=load.duration_s,
        rate=load.rate,
        spacing=load.spacing,
        acks=str(load.acks),
        idempotence=load.idempotence,
        topics=tuple(
            TopicAhead(one.name, one.partitions, one.replication_factor, one.min_insync_replicas)
            for one in spec.every_topic
        ),
        processes={f: processes for f, (processes, _) in load.shares.items() if processes},
        clients=f"{load.client.library} {load.client.version}".rstrip(),
    )


def _role(node: Node) -> str:
    if node.spare:
        return f"spare {' and '.join(sorted(node.roles))}"
    return " and ".join(sorted(node.roles))
