"""Targets by role, resolved at injection time from the cluster's own metadata
(docs/architecture.md section 6)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from wrackline.systems.base import ClusterState, Node, PartitionState

_OF_PARTITION = re.compile(r"(leader|follower|isr-last|elr)(?:\((.+)-(\d+)\))?")
_HOSTS = re.compile(r"[a-z][a-z0-9-]*\d+(,[a-z][a-z0-9-]*\d+)*")
SPARE = "spare"
PLAIN = ("one", "minority", "majority", "half", "all", "controller", SPARE)
_ROLE = f"(?:{'|'.join(PLAIN)}|{_OF_PARTITION.pattern}|{_HOSTS.pattern})"
ROLE = f"^{_ROLE}$"
"""What `check_role` takes, as a JSON schema says it."""
HELP = (
    "one, minority, majority, half, all, controller, spare, leader(TOPIC-P), follower(TOPIC-P), "
    "isr-last(TOPIC-P), "
    "elr(TOPIC-P), or hosts by name (n1,n2)"
)


class TargetError(Exception):
    """The role names nobody now. The message says why; later it may."""


def check_role(role: str) -> str:
    """The role as given. Raises ValueError when it is neither a role nor could be a list of hosts."""
    if re.fullmatch(_ROLE, role):
        return role
    raise ValueError(f"target {role!r} is no role: use {HELP}")


@dataclass(frozen=True, slots=True)
class Cast:
    """Whom roles may ever name in a run, as its specification says."""

    hosts: tuple[str, ...]
    """Empty: nobody knows them before the run."""
    brokers: int | None
    """None: nobody knows before the run."""
    spares: int
    topic: str
    partitions: int
    replicas: int
    """Of each partition."""


def never(role: str, cast: Cast) -> str | None:
    """Why a role can name nobody in a run with this cast, and what would; None when it can."""
    if found := _OF_PARTITION.fullmatch(role):
        kind, topic, partition = found.groups()
        if topic is not None and topic != cast.topic:
            return f"there is no topic {topic!r}: the run's is {cast.topic!r}, so {kind}({cast.topic}-0)"
        if topic is not None and int(partition) >= cast.partitions:
            return (
                f"{topic} has no partition {partition}: topic.partitions is {cast.partitions}, "
                f"the last is {kind}({topic}-{cast.partitions - 1})"
            )
        if kind != "leader" and cast.replicas < 2:
            return f"a partition with one replica has no {kind}: topic.replication_factor is {cast.replicas}"
    elif role == "minority" and cast.brokers is not None and cast.brokers < 3:
        return f"a minority of {cast.brokers} brokers is nobody: fleet.brokers must be 3 or more"
    elif role == "half" and len(cast.hosts) == 1:
        return "there is one host only, it has no half: fleet.brokers must be more"
    elif role == SPARE and not cast.spares:
        return "there is no spare host: fleet.spares is 0"
    elif role not in PLAIN:
        if not cast.hosts:
            return "no host has a name before the run; name them in system.hosts"
        for host in role.split(","):
            if host not in cast.hosts:
                return f"there is no host {host}; there are {', '.join(cast.hosts)}"
    return None


def needs_metadata(role: str) -> bool:
    return role == "controller" or bool(_OF_PARTITION.fullmatch(role))


def resolve(
    role: str,
    *,
    nodes: Sequence[Node],
    state: ClusterState | None,
    pick: int,
    held: Collection[str] = (),
    topics: Sequence[str] = (),
    spares: Sequence[str] = (),
    idle: Collection[str] = (),
) -> tuple[str, ...]:
    """Host names for a role, sorted.

    ``state`` may be None for roles that do not need metadata. ``pick`` settles every free choice, so a plan
    chooses the same way again in the same situation. Hosts in ``held`` are under another fault that has taken
    their node: they are passed over, or the role is not resolvable now. ``topics``: what a bare ``leader``
    may mean. ``spares``: hosts whose brokers may join. ``idle``: hosts whose brokers have not, hit by name
    only. Raises TargetError.
    """
    brokers = [node.host.name for node in nodes if node.is_broker and node.host.name not in idle]
    free = [host for host in brokers if host not in held]
    chance = random.Random(pick)
    if found := _OF_PARTITION.fullmatch(role):
        kind, topic, partition = found.groups()
        wanted = _partition(state, topic, partition, topics, chance)
        return (_free(_member(kind, wanted, chance), role, nodes, held),)
    if role == "controller":
        if state is None or state.controller < 0:
            raise TargetError("the cluster knows no controller now")
        return (_free(state.controller, role, nodes, held),)
    sizes: dict[str, Callable[[], int]] = {
        "one": lambda: 1,
        "minority": lambda: (len(brokers) - 1) // 2,
        "majority": lambda: len(brokers) // 2 + 1,
        "all": lambda: len(free),
    }
    if role in sizes:
        return _some(free, sizes[role](), role, chance)
    if role == SPARE:
        if not spares:
            raise TargetError("no spare host is left (fleet.spares)")
        return (spares[0],)
    if role == "half":
        every = [node.host.name for node in nodes if node.host.name not in (*held, *idle)]
        return _some(every, len(every) // 2, role, chance)
    return _named(role, nodes, held)


def _some(hosts: Sequence[str], count: int, role: str, chance: random.Random) -> tuple[str, ...]:
    if count < 1 or count > len(hosts):
        raise TargetError(f"{role}: {count} hosts wanted, free are {', '.join(hosts) or 'none'}")
    return tuple(sorted(chance.sample(list(hosts), count)))


def _named(role: str, nodes: Sequence[Node], held: Collection[str]) -> tuple[str, ...]:
    known = [node.host.name for node in nodes]
    hosts = role.split(",")
    for host in hosts:
        if host not in known:
            raise TargetError(f"no host {host!r}: there are {', '.join(known)}")
        if host in held:
            raise TargetError(f"{host} is under another fault")
    return tuple(dict.fromkeys(hosts))


def _partition(
    state: ClusterState | None,
    topic: str | None,
    partition: str | None,
    topics: Sequence[str],
    chance: random.Random,
) -> PartitionState:
    if state is None:
        raise TargetError("no broker answers")
    if topic is None:
        known = [one for one in state.partitions if one.topic in topics]
        if not known:
            raise TargetError(f"no partition of {', '.join(topics) or 'any topic'} is known")
        return chance.choice(known)
    found = state.partition(topic, int(partition or 0))
    if found is None:
        raise TargetError(f"the cluster knows no partition {topic}-{partition}")
    return found


def _member(kind: str, partition: PartitionState, chance: random.Random) -> int:
    name = f"{partition.topic}-{partition.partition}"
    if kind == "leader":
        if partition.leader < 0:
            raise TargetError(f"{name} has no leader now")
        return partition.leader
    if kind == "follower":
        candidates = [one for one in partition.replicas if one in partition.isr and one != partition.leader]
    else:
        candidates = list(partition.isr[-1:] if kind == "isr-last" else partition.elr)
    if not candidates:
        raise TargetError(f"{name} has no {kind} now (ISR {list(partition.isr)}, ELR {list(partition.elr)})")
    return chance.choice(candidates)


def _free(node_id: int, role: str, nodes: Sequence[Node], held: Collection[str]) -> str:
    for node in nodes:
        if node.node_id == node_id:
            if node.host.name in held:
                raise TargetError(f"{role} is {node.host.name}, which is under another fault")
            return node.host.name
    raise TargetError(f"{role} is node {node_id}, which is not one of ours")
