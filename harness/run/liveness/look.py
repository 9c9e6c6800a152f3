"""One look at the cluster: what several promises ask of it is asked once. Every question raises
ProtocolError, DeployError or FleetError where nobody answers, and CannotTell where we cannot read the
answer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar

from wrackline.fleets.base import FleetError
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.coordination import LIST_REASSIGNMENTS, knows
from wrackline.kafka_client.model import Reassignment
from wrackline.kafka_client.transport import ProtocolError, Unreadable
from wrackline.systems.base import (
    ClusterState,
    DeployError,
    Node,
    NodeDied,
    PartitionState,
    Place,
    Reachable,
)
from wrackline.workloads.log.tally import Kind, Tries

NO_ANSWER = (ProtocolError, DeployError, FleetError)
"""What a question raises that got no answer."""
ASK_S = 2.0
"""How long a broker may take over a question."""
START_EVERY_S = 5.0
"""A node that dies is not started more often, and one that runs for so long has not died."""

T = TypeVar("T")


class Watched(Protocol):
    """The part of a system that a look needs. What brokers are asked one by one needs a ``Reachable``."""

    @property
    def name(self) -> str: ...

    @property
    def nodes(self) -> Sequence[Node]: ...

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState: ...

    def is_running(self, node: Node) -> bool: ...

    def last_words(self, node: Node) -> str: ...

    def start(self, node: Node) -> None: ...


class NoReport(Exception):
    """A broker answers, and we cannot read it. None of ``NO_ANSWER``: it is no silence of the cluster, and no
    promise may take it for one."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """What a run has that is promised something."""

    places: Collection[Place]
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    unclean: bool = False
    """A replica that lacks records may be elected."""
    by_hand: bool = False
    """Nobody is elected from outside of ISR and ELR before a person asks for it."""
    tries: Callable[[], Mapping[Kind, Tries]] = dict
    """Counts the operations of its clients until now."""


@dataclass(slots=True)
class Starts:
    """The starts of one node that did not stay up."""

    count: int = 0
    last_s: float = -math.inf
    """When the last one was, by the clock."""
    words: str = ""
    """The last words of the node."""


@dataclass(frozen=True)
class Look:
    system: Watched
    subjects: Subjects
    tries_before: Mapping[Kind, Tries]
    """Counted when the watch began."""
    since_s: float
    """When that was, by the clock."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Host -> the fault of its disk that is in force there."""
    down: Mapping[str, str] = field(default_factory=dict)
    """Host -> the fault under which its node takes no messages, where no other kind is in force."""
    hit: Collection[str] = ()
    """Hosts under any fault."""
    starts: dict[int, Starts] = field(default_factory=dict)
    """Node -> how it was started since healing."""
    clock: Callable[[], float] = time.monotonic
    """Seconds."""

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self.since_s

    @cached_property
    def state(self) -> ClusterState:
        return self.system.describe(timeout_s=ASK_S)

    @cached_property
    def partitions(self) -> Mapping[Place, PartitionState]:
        """Those of the run that the cluster knows."""
        topics = {topic for topic, _ in self.subjects.places}
        return {one.place: one for one in self.state.partitions if one.topic in topics}

    @cached_property
    def nodes(self) -> Mapping[int, Node]:
        return {node.node_id: node for node in self.system.nodes}

    @property
    def brokers(self) -> Sequence[Node]:
        """The brokers that somebody has started."""
        return [node for node in self.system.nodes if node.is_broker and self._is_started(node)]

    def host(self, node_id: int) -> str:
        node = self.nodes.get(node_id)
        return f"node {node_id}" if node is None else node.host.name

    def hosts(self, node_ids: Iterable[int]) -> str:
        return ", ".join(map(self.host, node_ids)) or "nobody"

    def registered(self, node_id: int) -> str:
        return "is registered" if node_id in self.state.brokers else "is not registered"

    # --- who is there -------------------------------------------------------------------------------------

    @cached_property
    def absent(self) -> Mapping[int, str]:
        """Node -> why nothing can be asked of it: it does not run, or does not listen. That it takes
        connections and is silent is no reason."""
        result = {}
        for node in self.system.nodes:
            if self._is_started(node) and (why := self._absence(node)):
                result[node.node_id] = f"{node.host.name} {why}"
        return result

    def start_again(self, node: Node) -> Starts | None:
        """Starts a node that does not run. Returns its starts as long as it has not run for a while after the
        last one; None when it runs, and where nobody can tell on its host."""
        starts = self.starts.get(node.node_id, Starts())
        is_due = self.clock() - starts.last_s >= START_EVERY_S
        try:
            if not self._is_started(node):
                return None
            if self.system.is_running(node):
                if is_due:
                    self.starts.pop(node.node_id, None)
                    return None
            else:
                starts.words = self.system.last_words(node)
                if is_due:
                    self.starts[node.node_id] = starts
                    starts.count, starts.last_s = starts.count + 1, self.clock()
                    self.system.start(node)
        except NodeDied as died:
            starts.words = str(died)
        except (DeployError, FleetError):
            self.starts.pop(node.node_id, None)
            return None
        return starts

    def all_absent(self) -> str:
        """Returns why whoever needs the whole cluster cannot be served; empty when everybody is there."""
        return "; ".join(self.absent.values())

    def _is_started(self, node: Node) -> bool:
        return not node.spare or node.node_id in self.state.brokers

    def _absence(self, node: Node) -> str:
        try:
            if not self.system.is_running(node):
                return f"does not run: {self.system.last_words(node) or 'its log is empty'}"
            if node.is_broker and isinstance(self.system, Reachable):
                self.system.connect(node, timeout_s=ASK_S).close()
        except ProtocolError as error:
            if isinstance(error.__cause__, ConnectionRefusedError):
                return f"does not listen: {error}"
        except (DeployError, FleetError) as error:
            return f"cannot be asked: {error}"
        return ""

    # --- questions ----------------------------------------------------------------------------------------

    def ask(self, node: Node, question: Callable[[Connection], T]) -> T:
        """Asks one broker. Raises CannotTell, and at once also from ``ask_any``."""
        if not isinstance(self.system, Reachable):
            raise DeployError(f"{node.host.name}: brokers of {self.system.name} cannot be asked one by one")
        try:
            with self.system.connect(node, timeout_s=ASK_S) as connection:
                return question(connection)
        except Unreadable as error:
            raise NoReport(f"{node.host.name}: {error}") from error

    def ask_any(self, question: Callable[[Connection], T]) -> T:
        """Asks one broker after another, until one answers."""
        last: Exception = DeployError("there is no broker")
        for node in self.brokers:
            try:
                return self.ask(node, question)
            except NO_ANSWER as error:
                last = error
        raise last

    def by_leader(self, places: Iterable[Place]) -> Mapping[int, Sequence[Place]]:
        """Node -> those of the partitions that it leads; a partition without a leader is left out."""
        result: dict[int, list[Place]] = {}
        for place in sorted(places):
            one = self.partitions.get(place)
            if one is not None and one.leader in self.nodes:
                result.setdefault(one.leader, []).append(place)
        return result

    @cached_property
    def reassignments(self) -> Mapping[Place, Reassignment]:
        """Of the run's partitions those whose replicas are changing."""

        def ask(connection: Connection) -> list[Reassignment]:
            if not knows(connection, LIST_REASSIGNMENTS):
                return []
            return connection.list_reassignments(timeout_s=ASK_S)

        topics = {topic for topic, _ in self.subjects.places}
        if not isinstance(self.system, Reachable):
            return {}  # nobody can be asked
        return {one.place: one for one in self.ask_any(ask) if one.place[0] in topics}
