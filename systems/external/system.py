"""A cluster that runs already: asked over its protocol, broken by its owner's commands, and otherwise left as
it was. Topics of our own are the only thing that is made in it, and they are removed when the run is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from wrackline.fleets.base import Fleet, Host
from wrackline.history.offsets import Offsets
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.model import Broker, ResourceType
from wrackline.kafka_client.security import Security
from wrackline.kafka_client.transport import AuthenticationError, ProtocolError
from wrackline.systems.administration import Administrator, node_settings
from wrackline.systems.base import ClusterState, DeployError, Node, Place, Refusal, ReplicaLog, TopicSpec
from wrackline.systems.cluster_client import ClusterClient, TopicRefused
from wrackline.systems.common import second_reader
from wrackline.systems.common.on_hosts import on_each
from wrackline.systems.external import queries
from wrackline.systems.external.commands.operations import REVIVES, BrokerCommand, Command, Probed, unsafe
from wrackline.systems.external.commands.runner import Commander, Known

ANSWER_S = 8.0
"""How long the cluster may take to answer at all when a run begins."""
LOOK_S = 5.0
"""How long a broker may take to answer whether it is there: a busy one takes its time over TLS and SASL."""
QUORUM_S = 0.5
"""How long it may take to say who is the active controller; asked at most once in `QUORUM_EVERY_S`."""
QUORUM_EVERY_S = 1.0
REMOVE_S = 15.0
FROM_THE_CONTRACT: Mapping[str, str] = {
    "unclean.leader.election.enable": "false",
    "min.insync.replicas": "1",
}
"""Settings of a topic that the contract is taken from, and Kafka's defaults."""


class ExternalSystem:
    """The `System`, and `ExternalCluster`, of a cluster that runs already. Safe to use from several threads
    once it is installed."""

    name = "external"

    def __init__(
        self,
        fleet: Fleet,
        *,
        bootstrap: Sequence[str],
        hosts: Sequence[Known] = (),
        commands: Mapping[BrokerCommand, Command] | None = None,
        security: Callable[[], Security] = Security,
        keep_topics: bool = False,
        start_s: float = 60.0,
        test: str = "",
    ) -> None:
        """``bootstrap``: ``host:port`` each. ``hosts``: every broker, or none: then they are found in the
        cluster's metadata, and called ``n`` and their id. ``security``: asked for when the cluster is, since
        it has secrets. ``start_s``: how long a broker may take to answer after a command has brought it back.
        ``test``: stands for {test} in commands."""
        self._fleet = fleet
        self._bootstrap = tuple(bootstrap)
        self._known = {one.node_id: one for one in hosts}
        self._security_of = security
        self._keep_topics = keep_topics
        self._start_s = start_s
        self._topics: tuple[str, ...] = ()
        """Those of our own that the cluster is asked about."""
        self._made: list[str] = []
        self._security = Security()
        self._commander = Commander(
            dict(commands or {}), self._known, test, lambda text: self._security.hide(text)
        )
        self._client: ClusterClient | None = None
        self._quorum: ClusterClient | None = None
        self._leader = (float("-inf"), -1)
        """When the quorum was asked last, and whom it named."""
        self._mutex = threading.Lock()
        self.nodes: tuple[Node, ...] = tuple(
            self._node(one.node_id, one.name, one.address or "", 0) for one in hosts
        )
        """Before `install`: what the specification says; after: what the cluster does."""

    @staticmethod
    def _node(node_id: int, name: str, address: str, port: int) -> Node:
        return Node(node_id, Host(name, address), frozenset({"broker"}), port)

    def refusals(self, topic: TopicSpec) -> tuple[Refusal, ...]:
        """Returns nothing: only the cluster knows, and it is not asked before a run."""
        del topic
        return ()

    # --- finding the cluster ------------------------------------------------------------------------------

    def install(self) -> None:
        """Find the brokers; nothing is changed. Raises DeployError when nobody answers in time, when we are
        not let in, and for brokers that the specification does not name or that do not answer."""
        self._security = self._security_of()
        members, has_quorum = self._found()
        if self._known and (unknown := [one.node_id for one in members if one.node_id not in self._known]):
            raise DeployError(
                f"the cluster has broker {_listed(unknown)}, which system.hosts does not name: any broker "
                "may lead, so name them all, or none"
            )
        if missing := sorted(set(self._known) - {one.node_id for one in members}):
            raise DeployError(
                f"system.hosts names broker {_listed(missing)}, which the cluster does not know now: there "
                f"are {_listed(sorted(one.node_id for one in members))}; see that it runs, and that its id "
                "is right"
            )
        if strange := unsafe(one.host for one in members):
            raise DeployError(f"the cluster advertises the address {strange[0]!r}, which is none")
        self.nodes = tuple(map(self._member, sorted(members, key=lambda one: one.node_id)))
        dial = self._dial
        self._client = client = ClusterClient(
            self._fleet,
            self.nodes,
            (),
            question=lambda asked: asked.cluster_state((*self._topics, *client.internal)),
            dial=dial,
        )
        if has_quorum:
            self._quorum = ClusterClient(
                self._fleet, self.nodes, (), question=queries.quorum_leader, dial=dial
            )
        self._administrator = Administrator(self.nodes, self._client.connect)

    def _member(self, one: Broker) -> Node:
        known = self._known.get(one.node_id)
        return self._node(one.node_id, known.name if known else f"n{one.node_id}", one.host, one.port)

    def _found(self) -> tuple[tuple[Broker, ...], bool]:
        """The brokers, and whether there is a quorum of controllers."""
        deadline = time.monotonic() + ANSWER_S
        tried: dict[str, str] = {}
        for address in self._bootstrap:
            host, _, port = address.rpartition(":")
            left = max(0.5, deadline - time.monotonic()) / (len(self._bootstrap) - len(tried))
            try:
                with self._dial(host.strip("[]"), int(port), left) as connection:
                    if lacking := queries.too_old(connection):
                        raise DeployError(
                            f"the brokers are older than Apache Kafka 1.1, too old for this kind: {lacking}"
                            "; system.kind: apache-kafka deploys versions from 0.8.2 on"
                        )
                    return connection.metadata(()).brokers, queries.has_quorum(connection)
            except AuthenticationError as error:
                raise DeployError(f"the cluster does not let us in: {error}") from error
            except ProtocolError as error:
                tried[address] = str(error)
        said = "; ".join(tried.values())
        raise DeployError(
            f"no broker of {', '.join(self._bootstrap)} answers: {said} (tried for up to {ANSWER_S:g} s, "
            f"{self._security.protocol}); see that the cluster runs, and that system.bootstrap and "
            "system.security are right"
        )

    def _dial(self, address: str, port: int, timeout_s: float) -> Connection:
        return Connection(address, port, security=self._security, timeout_s=timeout_s)

    # --- brokers ------------------------------------------------------------------------------------------

    def start(self, node: Node) -> None:
        """Checks that the broker, which runs already, answers. Raises DeployError when it does not."""
        if (why := self._silence(node)) is not None:
            raise DeployError(
                f"{node.host.name}: node {node.node_id} does not answer: {why}; see that it runs"
            )

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        del timeout_s
        self.order(node, BrokerCommand.STOP)

    def kill(self, node: Node) -> None:
        self.order(node, BrokerCommand.KILL)

    def is_running(self, node: Node) -> bool:
        return self._silence(node) is None

    def pid(self, node: Node) -> int | None:
        """Nobody can see its process: a number that stays the same as long as it answers. Raises DeployError
        when it does not."""
        if (why := self._silence(node)) is not None:
            raise DeployError(f"node {node.node_id} does not answer: {why}")
        return node.node_id

    def last_words(self, node: Node) -> str:
        return self._silence(node) or ""

    def crash(self, node: Node, pid: int) -> str:  # noqa: ARG002 - of its processes nobody learns more
        return ""

    def _silence(self, node: Node) -> str | None:
        """Returns why a broker does not answer; None when it does."""
        try:
            with self._dial(node.host.address, node.port, LOOK_S) as connection:
                connection.api_versions()
        except ProtocolError as error:
            return str(error)
        return None

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        """Waits until every broker that was found is in the cluster's own metadata."""
        deadline = time.monotonic() + timeout_s
        expected = {node.node_id for node in self.nodes}
        while True:
            there = set(self.describe().brokers)
            if expected <= there:
                return
            if time.monotonic() > deadline:
                raise DeployError(
                    f"of brokers {_listed(sorted(expected))} the cluster shows only {_listed(sorted(there))} "
                    f"after {timeout_s:g} s; see that all of them run"
                )
            time.sleep(0.2)

    # --- asking the cluster -------------------------------------------------------------------------------

    def bootstrap(self) -> str:
        return ",".join(self._bootstrap)

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None:
        """Raises DeployError also when there is one of this name, and when the cluster gives it settings from
        which another contract would follow."""
        client = self._asked()
        others = self._topics
        self._topics = (*others, topic.name)
        if any(one.topic == topic.name for one in client.describe().partitions):
            self._topics = others
            raise DeployError(f"the cluster has a topic {topic.name} already; it is left as it is")
        self._made.append(topic.name)  # also if it is not ready in time
        try:
            client.create_topic(topic, timeout_s=timeout_s)
        except TopicRefused:
            self._made.remove(topic.name)
            self._topics = others
            raise
        self._compare(topic)

    def _compare(self, topic: TopicSpec) -> None:
        """The topic as the cluster made it with what the specification says. Settings that we may not see are
        taken as they were asked for."""
        try:
            result = self.admin.ask(lambda one: one.describe_configs(ResourceType.TOPIC, topic.name), LOOK_S)
        except DeployError:
            return
        there = {one.name: one.value for one in result if one.value is not None}
        for name, usual in FROM_THE_CONTRACT.items():
            asked = topic.configs.get(name, usual)
            given = there.get(name, asked)
            if given.lower() != asked.lower():
                raise DeployError(
                    f"the cluster gave the topic {name}={given}, and the contract would be taken from "
                    f"{name}={asked}: say in topic.configs which it shall have"
                )

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        state = self._asked().describe(timeout_s=timeout_s)
        if self._quorum is None:
            return state
        return ClusterState(self._active_controller(self._quorum), state.brokers, state.partitions)

    def _active_controller(self, quorum: ClusterClient) -> int:
        with self._mutex:
            asked_at, leader = self._leader
            now = time.monotonic()
            if now - asked_at < QUORUM_EVERY_S:
                return leader
            self._leader = (now, leader)
        try:
            leader = quorum.describe(timeout_s=QUORUM_S).controller
        except DeployError:
            leader = -1
        self._leader = (time.monotonic(), leader)
        return leader

    def features(self, *, timeout_s: float = 30.0) -> Mapping[str, int]:
        """Returns the cluster's features; none of a cluster that does not say."""
        try:
            return self.admin.levels(timeout_s=min(timeout_s, LOOK_S))
        except DeployError:
            return {}

    def coordinator(self, what: str, name: str, *, timeout_s: float = 5.0) -> int:
        return self.admin.coordinator(what, name, timeout_s=timeout_s)

    def use_epochs(self, transactional_ids: Sequence[str], epoch: int, *, timeout_s: float) -> None:
        self.admin.use_epochs(transactional_ids, epoch, timeout_s=timeout_s)

    def describe_internal(self, topics: Collection[str]) -> None:
        self._asked().internal = {*self._asked().internal, *topics}

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        del topic, timeout_s
        raise DeployError(f"{node.host.name}: nobody adds brokers to a cluster that is not ours")

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        self._administrator.reassign(targets, timeout_s=timeout_s)

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        return self._administrator.under_way(timeout_s=timeout_s)

    def effective_config(self, node: Node) -> str:
        """Returns what the broker says that it runs with, a line for each setting; secrets it keeps to
        itself."""
        try:
            with self._dial(node.host.address, node.port, LOOK_S) as connection:
                result = node_settings(connection, node)
        except ProtocolError as error:
            raise DeployError(str(error)) from error
        return "".join(f"{one.name}={one.value or ''}\n" for one in result)

    def connect(self, node: Node, *, timeout_s: float) -> Connection:
        """Connects to this broker. Raises ProtocolError, and DeployError before the cluster was found."""
        return self._asked().connect(node, timeout_s)

    def _asked(self) -> ClusterClient:
        if self._client is None:
            raise DeployError("the cluster was not found yet")
        return self._client

    @property
    def admin(self) -> Administrator:
        """Asks any broker of the cluster. Raises DeployError before the cluster was found."""
        self._asked()
        return self._administrator

    # --- the user's commands ------------------------------------------------------------------------------

    def order(self, node: Node, order: BrokerCommand) -> str:
        told = self._commander.do(node, self._others(node), order)
        return told + self._awaited(node) if order in REVIVES else told

    def _awaited(self, node: Node) -> str:
        deadline = time.monotonic() + self._start_s
        while (why := self._silence(node)) is not None:
            if time.monotonic() > deadline:
                return f"; it did not answer within {self._start_s:g} s: {why}"
            time.sleep(0.2)
        return "; it answers"

    def probe(self, node: Node, order: BrokerCommand) -> Probed:
        return self._commander.probe(node, self._others(node), order)

    def _others(self, node: Node) -> tuple[Node, ...]:
        return tuple(one for one in self.nodes if one.node_id != node.node_id)

    def fetch_again(
        self, topic: str, partition: int, wanted: Offsets, *, committed: bool, timeout_s: float = 30.0
    ) -> Offsets:
        return second_reader.fetch_again(
            self._asked(), self.nodes, (topic, partition), wanted, committed=committed, timeout_s=timeout_s
        )

    # --- reading and leaving ------------------------------------------------------------------------------

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        raise DeployError(f"{node.host.name}: nobody of ours reads the files of {topic}-{partition} there")

    def collect(self, into: Path) -> None:
        """``into/<host>/``: effective-config.txt, and broker.log where there is a command for it. What cannot
        be had is told in ``missing.txt``."""
        if self._client is None:
            return
        on_each(self.nodes, lambda node: self._collect(node, into / node.host.name))

    def _collect(self, node: Node, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        try:
            said = self.effective_config(node)
        except DeployError as error:
            said = f"# it did not say: {error}\n"
        (into / "effective-config.txt").write_text(said)
        if problem := self._commander.fetch_log(node, self._others(node), into / "broker.log"):
            (into / "missing.txt").write_text(f"broker.log: {problem}\n")

    def remove_topics(self) -> str:
        if not self._made:
            return ""
        verb, them = ("is", "it") if len(self._made) == 1 else ("are", "them")
        names = f"{_counted(len(self._made), 'topic')} {', '.join(self._made)}"
        if self._keep_topics:
            return f"{names} {verb} kept in the cluster"
        deadline = time.monotonic() + REMOVE_S
        while self._made:
            try:
                self.admin.delete_topic(self._made[0], timeout_s=LOOK_S)
                self._made.pop(0)
            except DeployError as error:
                if time.monotonic() > deadline:
                    raise DeployError(
                        f"{names} could not be removed within {REMOVE_S:g} s: {error}; remove {them} by hand"
                    ) from error
                time.sleep(0.5)
        return f"{names} {verb} removed from the cluster"

    def remove_groups(self, groups: Sequence[str], *, timeout_s: float) -> str:
        if not groups:
            return ""
        names = f"{_counted(len(groups), 'group')} {', '.join(groups)}"
        if not self.admin.ask(queries.deletes_groups, LOOK_S):
            return f"{names}: left in the cluster, whose brokers know no DeleteGroups"
        deadline = time.monotonic() + timeout_s
        for group in groups:
            try:
                self.admin.delete_group(group, timeout_s=max(1.0, deadline - time.monotonic()))
            except DeployError as error:
                raise DeployError(f"{names} could not be removed: {error}; delete by hand") from error
        return f"{names} {'is' if len(groups) == 1 else 'are'} removed from the cluster"

    def close(self) -> None:
        """Hang up."""
        for client in (self._client, self._quorum):
            if client is not None:
                client.close()
        self._client = self._quorum = None


def _counted(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "none"
