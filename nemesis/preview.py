"""The preview of a plan's targets, as far as the seed alone settles them: nothing here asks a cluster.

A role such as ``one`` is a choice among the brokers that the fault's ``pick`` settles, the same in every
run where faults end in time (within `LATE_S`), unless another fault has taken a node that nobody knows
beforehand. Who ``leader(log-0)`` is the cluster says when the fault begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from wrackline.nemesis.guided.catalogue import SCHEDULES
from wrackline.nemesis.guided.steps import Aim, GuidedStep
from wrackline.nemesis.schedule import Plan, PlannedFault
from wrackline.nemesis.spec import ONCE, GuidedSpec
from wrackline.nemesis.targets.roles import Situation, TargetError, resolve
from wrackline.nemesis.targets.words import (
    INTERNAL_TOPICS,
    SPARE,
    SPARES,
    hosts_named,
    plain,
    settled_by_seed,
)
from wrackline.systems.base import ClusterState, Node, PartitionState

LATE_S = 3.0
"""A fault may hold its node for so long after its time, until it is started again, and a broker may take so
long to join."""


@dataclass(frozen=True, slots=True)
class Others:
    """The other faults of a plan that matter to one of its faults."""

    around: Sequence[PlannedFault]
    """Begun when it begins, and not surely over."""
    growing: Sequence[PlannedFault]
    """Those of the whole plan that use a spare host up."""
    guided: GuidedSpec | None


def foreseen(plan: Plan, nodes: Sequence[Node]) -> Mapping[str, tuple[str, ...] | None]:
    """Hosts by the fault's id; None where only the run can tell."""
    known: dict[str, tuple[str, ...] | None] = {}
    spares = {role: _spares(role, nodes) for role in SPARES}
    growing = [one for one in plan.faults if one.spec.fault in ONCE]
    around: list[PlannedFault] = []  # begun by then, and not surely over: of weeks these are few
    coming = deque(plan.faults)
    for fault in plan.faults:
        while coming and coming[0].at_s <= fault.at_s:
            around.append(coming.popleft())
        around = [one for one in around if not _ended(one, fault.at_s)]
        role = fault.spec.target
        if role in SPARES:
            known[fault.id] = (spares[role].pop(0),) if spares[role] else None
        elif hosts_named(role) and plain(role) == role:
            known[fault.id] = hosts_named(role)
        elif settled_by_seed(role) or hosts_named(role):
            others = Others(around, growing, plan.guided)
            known[fault.id] = _settled(fault, others, nodes, known)
        else:
            known[fault.id] = None
    return known


def _spares(role: str, nodes: Sequence[Node]) -> list[str]:
    return [node.host.name for node in nodes if node.spare and node.is_broker == (role == SPARE)]


def _settled(
    fault: PlannedFault, others: Others, nodes: Sequence[Node], known: Mapping[str, tuple[str, ...] | None]
) -> tuple[str, ...] | None:
    """Returns the targets that every possible situation gives the role; None when they differ."""
    held = _held(fault, others, known)
    if held is None:
        return None
    choices: set[tuple[str, ...] | None] = set()
    for taken, idle in product(held, _idle(fault, others, nodes, known)):
        try:
            now = Situation(nodes, held=taken, idle=idle)
            choices.add(resolve(fault.spec.target, now, fault.pick))
        except TargetError:
            choices.add(None)
    return choices.pop() if len(choices) == 1 else None


def _held(
    fault: PlannedFault, others: Others, known: Mapping[str, tuple[str, ...] | None]
) -> Sequence[frozenset[str]] | None:
    """The hosts that other faults may have taken when this one chooses, in every way it may be; None:
    nobody knows."""
    if not fault.spec.build().holds_node:
        return [frozenset()]
    if others.guided is not None and others.guided.at_s <= fault.at_s:
        return None
    ways: list[frozenset[str]] = [frozenset()]
    for other in others.around:
        ends_s = other.at_s + other.duration_s
        if other is fault or not other.spec.build().holds_node:
            continue
        hosts = known.get(other.id)
        if hosts is None:
            return None
        with_it = [way | set(hosts) for way in ways]
        ways = with_it if ends_s > fault.at_s > other.at_s else [*ways, *with_it]
    return ways


def _ended(one: PlannedFault, at_s: float) -> bool:
    return one.at_s + one.duration_s + one.spec.begins_s + LATE_S <= at_s


def _idle(
    fault: PlannedFault, others: Others, nodes: Sequence[Node], known: Mapping[str, tuple[str, ...] | None]
) -> Sequence[frozenset[str]]:
    """The spare hosts whose nodes may not have joined when this fault chooses, in every way it may be."""
    spares = _spares(SPARE, nodes)
    every = frozenset(node.host.name for node in nodes if node.spare)
    ways = [every]
    for other in others.growing:
        if other is fault or other.at_s > fault.at_s:
            continue
        # What replaces a broker is the first spare that is left; a broker that is added is the target itself.
        joined = frozenset(known.get(other.id) or ()) & every or frozenset(spares[:1])
        spares = [host for host in spares if host not in joined]
        after = [way - joined for way in ways]
        ways = after if other.at_s + LATE_S <= fault.at_s else [*ways, *after]
    return ways


def guided_steps(spec: GuidedSpec, nodes: Sequence[Node], topic: str, replicas: int) -> Sequence[GuidedStep]:
    """The steps of a guided schedule in a cluster where brokers lead in their order: an example of what it
    does, since the real ones are made from the cluster as it is then. Raises GuidedError when it does not
    fit such a cluster."""
    brokers = [node.node_id for node in nodes if node.is_broker and not node.spare]
    controller = next((node.node_id for node in nodes if node.is_controller), -1)
    there = tuple(brokers[:replicas])
    places = [(topic, spec.partition), *((internal, 0) for internal in INTERNAL_TOPICS)]
    partitions = tuple(PartitionState(name, number, there[0], 0, there, there) for name, number in places)
    state = ClusterState(controller, tuple(brokers), partitions)
    aim = Aim(state, {node.node_id: node for node in nodes}, spec.topic or topic, spec.partition)
    return SCHEDULES[spec.name](aim)
