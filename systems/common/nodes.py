"""The assignment of nodes to hosts, and the id that each has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wrackline.fleets.base import Fleet
from wrackline.systems.base import DeployError, Node

BROKER_PORT = 9092
CONTROLLER_PORT = 9093
REPLICATION_PORT = 9094
FIRST_CONTROLLER = 101
ZOOKEEPER_PORT = 2181
FIRST_ZOOKEEPER = 201


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of a deployment."""

    all: tuple[Node, ...]
    voters: Mapping[str, int]
    """Host of each controller -> its id in the quorum."""

    @property
    def brokers(self) -> tuple[Node, ...]:
        """Returns the brokers that run from the beginning."""
        return tuple(node for node in self.all if node.is_broker and not node.spare)

    @property
    def spares(self) -> tuple[Node, ...]:
        return tuple(node for node in self.all if node.is_broker and node.spare)

    @property
    def controllers(self) -> tuple[Node, ...]:
        """Returns the controllers that run from the beginning."""
        return tuple(node for node in self.every_controller if not node.spare)

    @property
    def every_controller(self) -> tuple[Node, ...]:
        """Returns the controllers, those among them that may join."""
        return tuple(node for node in self.all if node.is_controller)

    @property
    def zookeepers(self) -> tuple[Node, ...]:
        return tuple(node for node in self.all if node.is_zookeeper)

    def zookeeper_connect(self) -> str:
        """``host:port,...`` of the ZooKeeper servers."""
        return ",".join(f"{one.host.address}:{one.port}" for one in self.zookeepers)

    @property
    def started(self) -> tuple[Node, ...]:
        return tuple(node for node in self.all if not node.spare)

    def voter_list(self) -> list[str]:
        """``101@198.18.0.21:9093`` and so on, by id, of those that vote from the beginning."""
        by_id = sorted((self.voters[node.host.name], node.host.address) for node in self.controllers)
        return [f"{number}@{address}:{CONTROLLER_PORT}" for number, address in by_id]

    def quorum_bootstrap(self) -> str:
        """``host:port,...`` where whoever looks for the quorum asks."""
        return ",".join(f"{node.host.address}:{CONTROLLER_PORT}" for node in self.every_controller)

    def bootstrap(self) -> str:
        """``host:port,...`` for clients."""
        return ",".join(f"{node.host.address}:{node.port}" for node in self.brokers)


def nodes_on(
    fleet: Fleet,
    *,
    brokers: Sequence[str],
    controllers: Sequence[str],
    spares: Sequence[str] = (),
    one_id: bool = False,
    zookeepers: Sequence[str] = (),
    controller_port: int = CONTROLLER_PORT,
    replication_port: int | None = None,
    spare_controllers: Sequence[str] = (),
) -> Nodes:
    """Brokers get the node ids 1, 2, ... in the order given, controllers 101, 102, ... A host named in both
    runs a broker and a controller in one process: a node with the broker's id and both roles. In the quorum
    such a node has the controller's id or, with ``one_id``, the broker's. ``spares`` are brokers too, with
    the ids after. ``zookeepers`` get 201, 202, ... ``controller_port``: where a controller on a host of its
    own listens. ``replication_port``: where brokers listen for other nodes, when that is a port of its own.
    ``spare_controllers``: hosts of their own whose controllers may join, with the ids after.

    Raises DeployError for a host that the fleet does not have, or that is named twice.
    """
    known = {host.name: host for host in fleet.hosts}
    everybody = (*brokers, *spares, *controllers, *spare_controllers, *zookeepers)
    if missing := [name for name in everybody if name not in known]:
        raise DeployError(f"fleet {fleet.name} has no host {', '.join(missing)}: it has {', '.join(known)}")
    carriers = (*brokers, *spares)
    if len(set(carriers)) < len(carriers) or len(set(controllers)) < len(controllers):
        raise DeployError("a host can carry one broker and one controller: name each host once in each list")
    of_quorum = enumerate((*controllers, *spare_controllers), FIRST_CONTROLLER)
    voters = {name: number for number, name in of_quorum}
    broker_ids = {name: number for number, name in enumerate(carriers, 1)}
    if one_id:
        voters |= {name: number for name, number in broker_ids.items() if name in voters}
    carrying = (
        Node(
            number,
            known[name],
            frozenset({"broker", "controller"} if name in voters else {"broker"}),
            BROKER_PORT,
            CONTROLLER_PORT if name in voters else None,
            spare=name in spares,
            replication_port=replication_port,
        )
        for name, number in broker_ids.items()
    )
    alone = (
        Node(number, known[name], frozenset({"controller"}), controller_port, spare=name in spare_controllers)
        for name, number in voters.items()
        if name not in broker_ids
    )
    ensemble = (
        Node(number, known[name], frozenset({"zookeeper"}), ZOOKEEPER_PORT)
        for number, name in enumerate(zookeepers, FIRST_ZOOKEEPER)
    )
    return Nodes((*carrying, *alone, *ensemble), voters)
