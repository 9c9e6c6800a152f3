"""The words that a target may be: roles, a number of those who have a role, hosts by name, or the clients of
any of these."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from wrackline.fleets.base import CLIENTS

OF_PARTITION = re.compile(r"(leader|previous-leader|follower|isr-last|elr|replicas)(?:\((.+)-(\d+)\))?")
INTERNAL_TOPICS = {
    "__consumer_offsets": "group",
    "__transaction_state": "transaction",
    "__share_group_state": "share",
}
"""Topics in which a cluster keeps the state of groups, transactions and share groups, and what a run must
have of these."""
COORDINATED = {"group": "group", "transaction": "transaction", "share": "share group"}
"""What has a coordinator, and its name in sentences."""
_PLACE = re.compile(r"\((.+)-(\d+)\)$")
COORDINATOR = re.compile(rf"coordinator\(({'|'.join(COORDINATED)})\)|coordinator\(group ([\w.-]+)\)")
OF_ENSEMBLE = re.compile(r"(leader|follower)\(zookeeper\)")
"""A ZooKeeper server, by what it is among the others."""
SOME_OF = re.compile(r"([1-9]) of (.+)")
_CLIENTS_OF = re.compile(rf"{CLIENTS}(?: of (.+))?")
_HOST = r"(?=[a-z0-9.-]*[0-9.-])[a-z][a-z0-9.-]*"
"""A word without a digit, dot or dash is rather a role that is spelt wrongly."""
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*")
SPARE, SPARE_CONTROLLER = "spare", "spare-controller"
SPARES = (SPARE, SPARE_CONTROLLER)
LAST = "last"
CONTROLLERS = ("controller", "follower-controller", "follower-controllers")
ZOOKEEPERS = "zookeepers"
SUBJECT, BYSTANDERS = "subject", "bystanders"
OF_STATE = (SUBJECT, BYSTANDERS)
"""Of a fault that follows a state of the cluster (``nemesis.follow``): the nodes that the state is about, and
the other replicas of its partition."""
BY_SEED = ("one", "minority", "majority", "half", "all", ZOOKEEPERS, *SPARES)
"""Roles that need nothing of the cluster's own metadata."""
PLAIN = (*BY_SEED, *CONTROLLERS, "primaries", LAST, *OF_STATE)
_GROUPS = f"all|{BYSTANDERS}|{ZOOKEEPERS}|primaries|follower-controllers"
_MANY = rf"(?:{_GROUPS}|replicas(?:\(.+-\d+\))?|{_HOSTS.pattern})"
_OTHERS = "|".join(one.pattern for one in (OF_PARTITION, COORDINATOR, OF_ENSEMBLE, _HOSTS))
_ONE = f"(?:{'|'.join(PLAIN)}|{_OTHERS})"
_ROLE = f"(?:[1-9] of {_MANY}|{_ONE})"
_CLIENTS = f"{CLIENTS}(?: of (?!{SPARE}(?:-controller)?$){_ROLE})?"
ROLE = f"^{_ROLE}$"
"""What `check_role` takes, as a JSON schema says it."""
ROLE_OR_CLIENTS = f"^(?:{_CLIENTS}|{_ROLE})$"
"""What `check_any` takes."""
HELP = (
    "one, minority, majority, half, all, primaries, controller, follower-controller, "
    "follower-controllers, spare, spare-controller, last, leader(TOPIC-P), likewise "
    "previous-leader, follower, isr-last, elr and replicas, coordinator(group), likewise (group G), "
    "(transaction) and (share), zookeepers, leader(zookeeper), follower(zookeeper), "
    "hosts by name (n1,n2), or a number of those: 2 of all, 1 of primaries, 2 of n1,n2,n3; TOPIC is the "
    f"run's, {' or '.join(INTERNAL_TOPICS)}, G one of workload.groups"
)
HELP_CLIENTS = "clients, or the clients of any of these: clients of n1, clients of leader(TOPIC-P)"


def check_role(role: str) -> str:
    """The role as given. Raises ValueError when it is neither a role nor could be a list of hosts."""
    if re.fullmatch(_ROLE, role):
        return role
    if is_clients(role):
        raise ValueError(
            f"target {role!r}: of clients the network alone can be hit, by packets and partition; aim this "
            "fault at hosts"
        )
    raise ValueError(f"target {role!r} is no role: use {HELP}")


def check_any(role: str) -> str:
    """The same, and the clients of such a role."""
    if re.fullmatch(_CLIENTS, role) or re.fullmatch(_ROLE, role):
        return role
    raise ValueError(f"target {role!r} is no role: use {HELP}; or {HELP_CLIENTS}")


def is_clients(role: str) -> bool:
    """Tells whether the role is the clients' machine, and not hosts of the system."""
    return bool(_CLIENTS_OF.fullmatch(role))


def without_clients(role: str) -> str:
    """The role that ``clients of ROLE`` is about, or the role itself; ``clients`` are those of all."""
    match = _CLIENTS_OF.fullmatch(role)
    return (match[1] or "all") if match else role


def plain(role: str) -> str:
    """The role that ``2 of ROLE``, or ``clients of ROLE``, is about, or the role itself."""
    role = without_clients(role)
    match = SOME_OF.fullmatch(role)
    return match[2] if match else role


def hosts_named(role: str) -> tuple[str, ...]:
    """The hosts that a target names itself; empty for a role."""
    role = plain(role)
    if role in PLAIN or any(one.fullmatch(role) for one in (OF_PARTITION, COORDINATOR, OF_ENSEMBLE)):
        return ()
    return tuple(dict.fromkeys(role.split(",")))


def coordinator_of(role: str) -> str | None:
    """``group``, ``transaction`` or ``share`` where a coordinator is meant."""
    match = COORDINATOR.fullmatch(plain(role))
    return match[1] or "group" if match else None


def group_of(role: str) -> str | None:
    """Returns the name of the one group whose coordinator is meant; None for every other role."""
    match = COORDINATOR.fullmatch(plain(role))
    return match[2] if match else None


def internal_topic_of(role: str) -> str | None:
    """The internal topic whose partition is meant; None for every other role."""
    match = OF_PARTITION.fullmatch(plain(role))
    return match[2] if match and match[2] in INTERNAL_TOPICS else None


def retold(role: str, names: Mapping[str, str]) -> str:
    """The role where topics are called otherwise (name here -> name there)."""

    def place(match: re.Match[str]) -> str:
        return f"({names.get(match[1], match[1])}-{match[2]})"

    return _PLACE.sub(place, role)


def needs_metadata(role: str) -> bool:
    """Tells whether the cluster must be asked who has the role."""
    role = plain(role)
    return role in CONTROLLERS or role == "primaries" or bool(OF_PARTITION.fullmatch(role))


def needs_ensemble(role: str) -> bool:
    """Tells whether the ZooKeeper servers must be asked what they are."""
    return bool(OF_ENSEMBLE.fullmatch(plain(role)))


def needs_memory(role: str) -> bool:
    """Tells whether the leaders must have been recorded before."""
    return plain(role).startswith("previous-leader")


def settled_by_seed(role: str) -> bool:
    """Tells whether the seed alone settles who has the role, if no other fault is in the way."""
    role = plain(role)
    return role in BY_SEED


@dataclass(frozen=True, slots=True)
class CastTopic:
    """What a topic is made of."""

    partitions: int
    replicas: int
    """Of each partition."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The nodes that roles may ever name in a run, as its specification says."""

    hosts: tuple[str, ...]
    """Empty: nobody knows them before the run."""
    brokers: int | None
    """None: nobody knows before the run."""
    spares: int
    topics: Mapping[str, CastTopic]
    controllers: int | None = None
    """None: nobody knows before the run."""
    coordinated: Collection[str] = tuple(COORDINATED)
    """What the workload has a coordinator for."""
    zookeepers: int = 0
    spare_controllers: int = 0
    groups: Collection[str] = ()
    """Those that the workload gives names."""


def never(role: str, cast: Cast) -> str | None:
    """Returns why a role can name nobody in a run with this cast, and what would; None when it can."""
    role = without_clients(role)
    if plain(role) in OF_STATE:
        return "it is whom a state is about: such a fault belongs to nemesis.follow"
    if match := SOME_OF.fullmatch(role):
        return never(match[2], cast) or _too_many(int(match[1]), match[2], cast)
    if match := OF_PARTITION.fullmatch(role):
        return _no_partition(cast, *match.groups())
    if (what := coordinator_of(role)) is not None and what not in cast.coordinated:
        return f"the workload has no {COORDINATED[what]} that could have a coordinator"
    if (group := group_of(role)) is not None and group not in cast.groups:
        names = ", ".join(cast.groups) or "none: coordinator(group) is that of the only one"
        return f"there is no group {group!r}; workload.groups has {names}"
    if (role == ZOOKEEPERS or OF_ENSEMBLE.fullmatch(role)) and not cast.zookeepers:
        return "there is no ZooKeeper server: fleet.zookeeper is 0"
    if role == "follower(zookeeper)" and cast.zookeepers < 2:
        return "there is one ZooKeeper server only, so none follows: fleet.zookeeper must be 3 or 5"
    if role in CONTROLLERS[1:] and cast.controllers is not None and cast.controllers < 2:
        return "there is one controller only, so none follows: fleet.controllers must be 3 or 5"
    if role == "minority" and cast.brokers is not None and cast.brokers < 3:
        return f"a minority of {cast.brokers} brokers is nobody: fleet.brokers must be 3 or more"
    if role == "half" and len(cast.hosts) == 1:
        return "there is one host only, it has no half: fleet.brokers must be more"
    if role == SPARE and not cast.spares:
        return "there is no spare host: fleet.spares is 0"
    if role == SPARE_CONTROLLER and not cast.spare_controllers:
        return "there is no spare controller: fleet.spare_controllers is 0"
    named = hosts_named(role)
    if named and not cast.hosts:
        return "no host has a name before the run; name them in system.hosts"
    for host in named:
        if host not in cast.hosts:
            return f"there is no host {host}; there are {', '.join(cast.hosts)}"
    return None


def _too_many(count: int, role: str, cast: Cast) -> str | None:
    known = {"follower-controllers": (cast.controllers or 99) - 1, ZOOKEEPERS: cast.zookeepers}
    if role.startswith("replicas") and (match := OF_PARTITION.fullmatch(role)):
        known[role] = max(one.replicas for one in _matched(cast, match[2]).values())
    most = len(hosts_named(role)) or known.get(role, cast.brokers or 99)
    return f"there are {most} of them at most" if count > most else None


def _no_partition(cast: Cast, kind: str, topic: str | None, partition: str | None) -> str | None:
    if topic in INTERNAL_TOPICS:
        what = INTERNAL_TOPICS[topic]
        missing = f"the workload has no {COORDINATED[what]}, so there is no {topic}"
        return None if what in cast.coordinated else missing
    matched = _matched(cast, topic)
    if topic is not None and not matched:
        quoted = " and ".join(map(repr, cast.topics))
        verb = "is" if len(cast.topics) == 1 else "are"
        like = " or ".join(f"{kind}({name}-0)" for name in cast.topics)
        return f"there is no topic {topic!r}: the run's {verb} {quoted}, so {like}"
    most = max(one.partitions for one in matched.values())
    if topic is not None and int(partition or 0) >= most:
        return (
            f"{topic} has no partition {partition}: topic.partitions is {most}, "
            f"the last is {kind}({topic}-{most - 1})"
        )
    replicas = max(one.replicas for one in matched.values())
    if kind not in ("leader", "replicas") and replicas < 2:
        return f"a partition with one replica has no {kind}: topic.replication_factor is {replicas}"
    return None


def _matched(cast: Cast, topic: str | None) -> Mapping[str, CastTopic]:
    """The topics that a role may be of: all where it names none."""
    return cast.topics if topic is None else {topic: cast.topics[topic]} if topic in cast.topics else {}
