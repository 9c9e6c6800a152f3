"""Shapes of a partition and flows between hosts: pure functions of the context.

A partition has a *shape* (pairs of hosts that are on different sides), a *direction*, and may be limited to
some *links* (the traffic between brokers, say) or *ports*. What comes out are flows: what one host sends to
another, with the ports that matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, zip_longest

from wrackline.nemesis.faults.steps import FaultContext, FaultError, Target

Pair = tuple[Target, Target]


class Shape(StrEnum):
    """The shape of a partition: which hosts it cuts off from which."""

    HALVES = "halves"
    """Two sides, each whole: the targets and the rest."""
    ISOLATE = "isolate"
    """The targets from the rest: what `halves` does, aimed by role."""
    CLIENTS = "clients"
    """Clients (everything outside of the system) from the targets; the brokers still see each other."""
    LINK = "link"
    """Exactly between two named hosts."""
    MAJORITIES_RING = "majorities-ring"
    """Every host sees a majority of all hosts, and no two the same: on a ring, in which targets and others
    take turns, each sees its nearest neighbours only."""
    BRIDGE = "bridge"
    """The others are cut into two halves that do not see each other; the targets see both."""


class Direction(StrEnum):
    """Packets to the targets, packets from them, or both."""

    BOTH = "both"
    IN = "in"
    """Only what comes to the targets is dropped."""
    OUT = "out"
    """Only what the targets send is dropped."""


class Link(StrEnum):
    """A kind of connection, by who opens it and what answers. Where brokers and controllers share hosts the
    port tells the two apart, but not who asks: a host that is both asks a controller as both."""

    BROKER_BROKER = "broker-broker"
    """From brokers to the brokers' port for other nodes: replicas that fetch, markers of transactions."""
    BROKER_CONTROLLER = "broker-controller"
    """From brokers to the controllers' port: heartbeats, metadata, changes of the ISR."""
    CONTROLLER_CONTROLLER = "controller-controller"
    """From controllers to the controllers' port: votes, and the metadata log's replication."""
    BROKER_ZOOKEEPER = "broker-zookeeper"
    """From brokers to ZooKeeper's port for clients: sessions, and all that is kept there."""
    ZOOKEEPER_ZOOKEEPER = "zookeeper-zookeeper"
    """From one ZooKeeper server to another: votes, and what the leader makes the others write."""
    CLIENT_BROKER = "client-broker"
    """From everybody outside of the system to the brokers' port for clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The packets that a fault of the network matches, of those that come to the targets or leave them."""

    at_clients: bool = False
    """The clients' machine is the target: what goes between it and the port of the brokers that the context
    names as targets."""

    direction: Direction = Direction.BOTH
    links: tuple[Link, ...] = ()
    """Only these kinds of connections; empty: whatever is between hosts of the system."""
    ports: tuple[int, ...] = ()
    """Only TCP from or to these ports; empty: all."""

    def flow(self, sender: Target, receiver: Target) -> Flow | None:
        """Returns the matching flow from one host to another; None when nothing matches."""
        return flow(sender, receiver, self.links, self.ports)

    def ways(self, mine: Target, other: Target) -> list[Pair]:
        """The (sender, receiver) that the direction means, of a target and another host."""
        ways = [(mine, other)] if self.direction is not Direction.IN else []
        return [*ways, (other, mine)] if self.direction is not Direction.OUT else ways

    def with_clients(self, context: FaultContext) -> list[Flow]:
        """Returns the matching flows between the clients' machine and brokers. Raises FaultError when nothing
        is."""
        brokers = [one for one in context.targets if one.is_broker]
        if context.clients is None:
            raise FaultError("this fleet gives nobody the network that the clients are in")
        if not brokers:
            raise FaultError(
                f"clients ask brokers, and {', '.join(one.host for one in context.targets)} is none"
            )
        flows = []
        for broker in brokers:
            for sender, receiver in self.ways(context.clients, broker):
                asked = receiver is broker
                port = (broker.port,)
                flows.append(Flow(sender, receiver, port if asked else (), () if asked else port))
        return flows


ZOOKEEPER_PEERS = (2888, 3888)
"""Where servers of an ensemble listen for each other: the leader, and each for votes."""
SMALLEST_RING = 4
"""Three hosts have no such ring: each would see all, or two of three links would be cut for one."""


@dataclass(frozen=True, slots=True)
class Flow:
    """The flow from one host to another."""

    sender: Target
    receiver: Target
    asked: tuple[int, ...] | None = None
    """Ports of the receiver that are meant; None: every packet is, whatever its ports."""
    answered: tuple[int, ...] = ()
    """Ports of the sender that are meant: its answers to those who asked there."""

    @property
    def way(self) -> str:
        """``n1>n2``."""
        return f"{self.sender.host}>{self.receiver.host}"

    def matches(self) -> Sequence[str]:
        """Returns the matches of iptables, behind the addresses: one for each rule."""
        if self.asked is None:
            return ("",)
        to = [f" -p tcp --dport {port}" for port in self.asked]
        return (*to, *(f" -p tcp --sport {port}" for port in self.answered))


def is_controller(host: Target) -> bool:
    return host.controller_port is not None or not (host.is_broker or host.is_zookeeper)


def ports_of(host: Target, *, controller: bool = True) -> tuple[int, ...]:
    """Returns the ports of a host's broker and, besides, of its controller."""
    ports = (host.port, host.replication_port, host.controller_port if controller else None)
    return tuple(port for port in ports if port is not None)


def asked_ports(asker: Target, server: Target, links: Iterable[Link]) -> tuple[int, ...]:
    """The ports of a server that another host of the system asks for these kinds of connections."""
    ports: list[int] = []
    controller_port = server.controller_port if server.is_broker else server.port
    if server.is_zookeeper:
        controller_port = None
    for link in links:
        match link:
            case Link.BROKER_BROKER if asker.is_broker and server.is_broker:
                ports.append(server.replication_port or server.port)
            case Link.BROKER_CONTROLLER if asker.is_broker and controller_port is not None:
                ports.append(controller_port)
            case Link.BROKER_ZOOKEEPER if server.is_zookeeper and not asker.is_zookeeper:
                ports.append(server.port)
            case Link.ZOOKEEPER_ZOOKEEPER if server.is_zookeeper and asker.is_zookeeper:
                ports += ZOOKEEPER_PEERS
            case Link.CONTROLLER_CONTROLLER if is_controller(asker) and controller_port is not None:
                ports.append(controller_port)
            case _:
                pass
    return tuple(sorted(set(ports)))


def flow(sender: Target, receiver: Target, links: Sequence[Link], ports: Sequence[int]) -> Flow | None:
    """Returns the matching flow from one host to another; None when nothing matches. Without links and ports
    everything is."""
    if ports:
        return Flow(sender, receiver, tuple(ports), tuple(ports))
    if not links:
        return Flow(sender, receiver)
    asked, answered = asked_ports(sender, receiver, links), asked_ports(receiver, sender, links)
    return Flow(sender, receiver, asked, answered) if asked or answered else None


def cut_flows(
    context: FaultContext, shape: Shape, traffic: Traffic, *, controllers: bool = True
) -> list[Flow]:
    """Returns the flows that a partition drops between hosts of the system. Raises FaultError when the shape
    does not fit."""
    return [
        one
        for mine, other in _sides(context, shape, controllers)
        for way in traffic.ways(mine, other)
        if (one := traffic.flow(*way))
    ]


def _sides(context: FaultContext, shape: Shape, controllers: bool) -> list[Pair]:
    """Pairs of hosts on different sides; of each the first is a target, where targets are one side."""
    others = [other for other in context.others if controllers or other.is_broker]
    match shape:
        case Shape.LINK:
            if len(context.targets) != 2:
                raise FaultError(f"partition link: needs two hosts, not {len(context.targets)}")
            first, second = context.targets
            return [(first, second)]
        case Shape.MAJORITIES_RING:
            return _ring([one for one in context.targets if controllers or one.is_broker], others)
        case Shape.BRIDGE:
            return _bridge(context.targets, others)
        case _:
            return [(mine, other) for mine in context.targets for other in others]


def _ring(targets: Sequence[Target], others: Sequence[Target]) -> list[Pair]:
    """Returns the pairs that Jepsen's ring cuts: n hosts on a ring see k neighbours on each side, the fewest
    that make 2k+1 a majority. (For an even majority Jepsen takes one neighbour less on one side, which cuts
    links one way only.)"""
    turns = zip_longest(targets, others)
    ring = [host for turn in turns for host in turn if host is not None]
    count = len(ring)
    if count < SMALLEST_RING:
        raise FaultError(f"partition majorities-ring: needs {SMALLEST_RING} hosts or more, not {count}")
    reach = (count // 2 + 1) // 2
    return [
        (ring[here], ring[there])
        for here, there in combinations(range(count), 2)
        if min(there - here, count - (there - here)) > reach
    ]


def _bridge(targets: Sequence[Target], others: Sequence[Target]) -> list[Pair]:
    """The first half are those that come behind the target, in the order of their ids, and round."""
    behind = sorted(others, key=lambda one: (one.node_id < targets[0].node_id, one.node_id))
    half = len(behind) // 2
    if not half:
        raise FaultError(f"partition bridge: {len(behind)} other hosts have no two halves")
    return [(one, other) for one in behind[:half] for other in behind[half:]]
