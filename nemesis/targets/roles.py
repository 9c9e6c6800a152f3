"""Targets by role, resolved at injection time from the cluster's own metadata
(docs/architecture.md section 6)."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wrackline.nemesis.targets.words import (
    COORDINATED,
    LAST,
    OF_ENSEMBLE,
    OF_PARTITION,
    OF_STATE,
    SOME_OF,
    SPARE,
    SPARES,
    SUBJECT,
    coordinator_of,
    without_clients,
)
from wrackline.systems.base import ClusterState, Node, PartitionState, Place


class TargetError(Exception):
    """The role names nobody now. The message says why; later it may."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation of the cluster when a fault is aimed."""

    nodes: Sequence[Node]
    state: ClusterState | None = None
    """None: nobody answers, or no role needs it."""
    held: Collection[str] = ()
    """Hosts under another fault that has taken their node: they are passed over, or the role is not
    resolvable now."""
    topics: Sequence[str] = ()
    """What a bare ``leader`` may mean."""
    spares: Sequence[str] = ()
    """Hosts whose brokers or controllers may join."""
    idle: Collection[str] = ()
    """Hosts whose nodes have not, hit by name only."""
    last: Sequence[str] = ()
    """Whom the fault before this one hit."""
    former: Mapping[Place, int] = field(default_factory=dict)
    """Who led a partition before its present leader."""
    coordinators: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """``group``, ``transaction`` or ``share`` -> the nodes that coordinate those of the run."""
    ensemble: Mapping[int, str] = field(default_factory=dict)
    """Node of each ZooKeeper server that answers -> ``leader``, ``follower`` or ``standalone``."""
    place: Place | None = None
    """The partition that the followed state is about: what a bare ``leader`` means then."""
    subject: Sequence[int] = ()
    """The nodes that the followed state is about."""

    @property
    def brokers(self) -> list[str]:
        return [node.host.name for node in self.nodes if node.is_broker and node.host.name not in self.idle]


def resolve(role: str, now: Situation, pick: int) -> tuple[str, ...]:
    """Host names for a role, sorted; for ``clients of ROLE`` the hosts that have the role. ``pick`` settles
    every free choice, so a plan chooses the same way again in the same situation. Raises TargetError."""
    role = without_clients(role)
    chance = random.Random(pick)
    if match := SOME_OF.fullmatch(role):
        everybody = resolve(match[2], replace(now, held=()), pick)
        return _some([host for host in everybody if host not in now.held], int(match[1]), role, chance)
    if match := OF_PARTITION.fullmatch(role):
        kind, topic, partition = match.groups()
        expected = _partition(now, topic, partition, chance)
        if kind == "replicas":
            return _hosts(expected.replicas, role, now)
        return _hosts([_member(kind, expected, now, chance)], role, now)
    if (what := coordinator_of(role)) is not None:
        known = now.coordinators.get(what, ())
        if not known:
            raise TargetError(f"nobody says who coordinates the run's {COORDINATED[what]}s")
        return _hosts([chance.choice(sorted(known))], role, now)
    if match := OF_ENSEMBLE.fullmatch(role):
        return _hosts([_of_ensemble(match[1], now, chance)], role, now)
    if role == "primaries":
        return _hosts(_leaders(now), role, now)
    if role in SPARES:
        return (_spare(role, now),)
    if role.endswith(("controller", "controllers")):
        return _controllers(role, now, chance)
    if role in OF_STATE:
        return _of_state(role, now)
    if role == LAST:
        if not now.last:
            raise TargetError("no fault has hit anybody before this one")
        return _named(now.last, now)
    return _by_seed(role, now, chance) or _named(role.split(","), now)


def _of_state(role: str, now: Situation) -> tuple[str, ...]:
    """Returns whom the followed state is about, or the other replicas of its partition."""
    if role == SUBJECT:
        nodes = list(now.subject)
    else:
        partition = now.state.partition(*now.place) if now.state is not None and now.place else None
        nodes = [one for one in partition.replicas if one not in now.subject] if partition else []
    if not nodes:
        raise TargetError(f"the state has no {role}")
    return _hosts(nodes, role, now)


def _spare(role: str, now: Situation) -> str:
    """Returns the first spare host whose node is of this kind."""
    brokers = {node.host.name for node in now.nodes if node.is_broker}
    free = [host for host in now.spares if (host in brokers) == (role == SPARE)]
    if not free:
        key = "spares" if role == SPARE else "spare_controllers"
        raise TargetError(f"no {role.replace('-', ' ')} host is left (fleet.{key})")
    return free[0]


def _by_seed(role: str, now: Situation, chance: random.Random) -> tuple[str, ...]:
    """Empty when it is no such role."""
    brokers = now.brokers
    free = [host for host in brokers if host not in now.held]
    servers = [one.host.name for one in now.nodes if one.is_zookeeper and one.host.name not in now.held]
    match role:
        case "one":
            return _some(free, 1, role, chance)
        case "minority":
            return _some(free, (len(brokers) - 1) // 2, role, chance)
        case "majority":
            return _some(free, len(brokers) // 2 + 1, role, chance)
        case "all":
            return _some(free, len(free), role, chance)
        case "zookeepers":
            return _some(servers, len(servers), role, chance)
        case "half":
            every = [node.host.name for node in now.nodes if node.host.name not in (*now.held, *now.idle)]
            return _some(every, len(every) // 2, role, chance)
    return ()


def _some(hosts: Sequence[str], count: int, role: str, chance: random.Random) -> tuple[str, ...]:
    if count < 1 or count > len(hosts):
        raise TargetError(f"{role}: {count} hosts wanted, free are {', '.join(hosts) or 'none'}")
    return tuple(sorted(chance.sample(list(hosts), count)))


def _named(hosts: Sequence[str], now: Situation) -> tuple[str, ...]:
    known = [node.host.name for node in now.nodes]
    for host in hosts:
        if host not in known:
            raise TargetError(f"no host {host!r}: there are {', '.join(known)}")
        if host in now.held:
            raise TargetError(f"{host} is under another fault")
    return tuple(dict.fromkeys(hosts))


def _partition(
    now: Situation, topic: str | None, partition: str | None, chance: random.Random
) -> PartitionState:
    if now.state is None:
        raise TargetError("no broker answers")
    if topic is None and now.place is not None:
        topic, partition = now.place[0], str(now.place[1])
    if topic is None:
        known = [one for one in now.state.partitions if one.topic in now.topics]
        if not known:
            raise TargetError(f"no partition of {', '.join(now.topics) or 'any topic'} is known")
        return chance.choice(known)
    result = now.state.partition(topic, int(partition or 0))
    if result is None:
        raise TargetError(f"the cluster knows no partition {topic}-{partition}")
    return result


def _member(kind: str, partition: PartitionState, now: Situation, chance: random.Random) -> int:
    name = f"{partition.topic}-{partition.partition}"
    if kind == "leader":
        if partition.leader < 0:
            raise TargetError(f"{name} has no leader now")
        return partition.leader
    if kind == "previous-leader":
        former = now.former.get((partition.topic, partition.partition))
        if former is None:
            raise TargetError(f"{name} has had one leader only so far")
        return former
    if kind == "follower":
        candidates = [one for one in partition.replicas if one in partition.isr and one != partition.leader]
    else:
        candidates = list(partition.isr[-1:] if kind == "isr-last" else partition.elr)
    if not candidates:
        raise TargetError(f"{name} has no {kind} now (ISR {list(partition.isr)}, ELR {list(partition.elr)})")
    return chance.choice(candidates)


def _of_ensemble(kind: str, now: Situation, chance: random.Random) -> int:
    """A server that is alone leads nobody, and is what a leader is."""
    expected = ("leader", "standalone") if kind == "leader" else (kind,)
    result = sorted(node_id for node_id, mode in now.ensemble.items() if mode in expected)
    if not result:
        known = ", ".join(f"{node_id} {mode}" for node_id, mode in sorted(now.ensemble.items()))
        raise TargetError(f"no ZooKeeper server is a {kind} now: {known or 'none answers'}")
    return chance.choice(result)


def _leaders(now: Situation) -> list[int]:
    if now.state is None:
        raise TargetError("no broker answers")
    leaders = {one.leader for one in now.state.partitions if one.topic in now.topics and one.leader >= 0}
    if not leaders:
        raise TargetError(f"no partition of {', '.join(now.topics) or 'any topic'} has a leader now")
    return sorted(leaders)


def _controllers(role: str, now: Situation, chance: random.Random) -> tuple[str, ...]:
    if now.state is None or now.state.controller < 0:
        raise TargetError("the cluster knows no controller now")
    if role == "controller":
        return _hosts([now.state.controller], role, now)
    others = [
        node.node_id
        for node in now.nodes
        if node.is_controller and node.node_id != now.state.controller and node.host.name not in now.idle
    ]
    if not others:
        raise TargetError("there is one controller only, so none follows")
    return _hosts(others if role == "follower-controllers" else [chance.choice(others)], role, now)


def _hosts(nodes: Sequence[int], role: str, now: Situation) -> tuple[str, ...]:
    """The hosts of these nodes, which must be free."""
    names = {node.node_id: node.host.name for node in now.nodes}
    result = []
    for node_id in nodes:
        if node_id not in names:
            raise TargetError(f"{role} is node {node_id}, which is not one of ours")
        if names[node_id] in now.held:
            raise TargetError(f"{role} is {names[node_id]}, which is under another fault")
        result.append(names[node_id])
    return tuple(sorted(result))
