"""Administration of a running cluster over the Kafka protocol: elections, settings, topics, levels of
features, moves of replicas, and brokers that are gone for good."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from kio.schema.errors import ErrorCode

from wrackline.kafka_client import principals
from wrackline.kafka_client.connection import (
    PREFERRED,
    SAFE_DOWNGRADE,
    UNCLEAN,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Connection,
)
from wrackline.kafka_client.model import Outcome, Quorum, ResourceType, Setting, Voter
from wrackline.kafka_client.retry import RetryUntil, is_passing
from wrackline.kafka_client.transport import ProtocolError, Rejected
from wrackline.plugins.acls import PREFIX, Acls, Resource
from wrackline.systems.base import DeployError, Node, Place, TopicSpec

log = logging.getLogger(__name__)

CHANGE_S = 3.0
"""How long one broker may take over a change."""
QUESTION_S = 2.0
"""How long one broker may take to answer a question."""
_LOOK_S = 0.1
_FEATURE_S = 5.0
_INIT_TXN_S = 60.0
"""``transaction.timeout.ms`` of producers that make no transaction."""
_DYNAMIC_SOURCES = (1, 2, 3)
"""Sources of a setting: given to the topic, to the broker, or to all brokers."""
_NO_ELECTION = (ErrorCode.election_not_needed, ErrorCode.preferred_leader_not_available)
_NOTHING_TO_CANCEL = (ErrorCode.no_reassignment_in_progress, ErrorCode.unknown_topic_or_partition)
_LEVEL_LATER = (
    ErrorCode.not_controller,
    ErrorCode.request_timed_out,
    ErrorCode.coordinator_load_in_progress,
)


class Reassigner:
    """Moves the replicas of partitions over the Kafka protocol, at any broker that answers."""

    def __init__(self, brokers: Sequence[Node], connect: Callable[[Node, float], Connection]) -> None:
        self._change = RetryUntil(
            tuple(brokers), connect, lambda node: node.host.name, DeployError, CHANGE_S, 0.2
        )

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float) -> None:
        """Asks for these reassignments; None cancels one. Raises DeployError when it is refused, or nobody
        took it in time."""

        def begin(connection: Connection) -> None:
            for done in connection.alter_reassignments(targets, timeout_s=CHANGE_S):
                cancelled = targets.get(done.place) is None
                _check(done, _NOTHING_TO_CANCEL if cancelled else ())  # it was through meanwhile

        if targets:
            self._change("reassign", begin, timeout_s)

    def under_way(self, *, timeout_s: float) -> frozenset[Place]:
        """Returns the partitions whose replicas are changing. Raises DeployError when nobody answers in
        time."""

        def look(connection: Connection) -> frozenset[Place]:
            return frozenset(one.place for one in connection.list_reassignments(timeout_s=CHANGE_S))

        return self._change("list reassignments", look, timeout_s)


class Administrator(Reassigner):
    """Asks any broker that answers. Every error is a DeployError. Safe to use from several threads."""

    def __init__(self, brokers: Sequence[Node], connect: Callable[[Node, float], Connection]) -> None:
        super().__init__(brokers, connect)
        self.ask = replace(self._change, ask_s=QUESTION_S, pause_s=0.1).first
        """The first answer to a question, within so many seconds."""

    # --- leaders ------------------------------------------------------------------------------------------

    def elect_preferred(self, places: Sequence[Place], *, timeout_s: float) -> None:
        """Each partition's first replica shall lead. One that cannot, or does already, is no error."""
        if places:
            self._elect("elect preferred leaders", PREFERRED, places, timeout_s)

    def elect_uncleanly(self, places: Sequence[Place], *, timeout_s: float) -> None:
        """Somebody shall lead, whoever is there, at the price of records. One that has a leader is no
        error."""
        self._elect("elect uncleanly", UNCLEAN, places, timeout_s)

    def _elect(self, what: str, kind: int, places: Sequence[Place], timeout_s: float) -> None:
        def elect(connection: Connection) -> None:
            for done in connection.elect_leaders(kind, places, timeout_s=CHANGE_S):
                _check(done, _NO_ELECTION)

        self._change(what, elect, timeout_s)

    # --- settings -----------------------------------------------------------------------------------------

    def topic_settings(self, topic: str, *, timeout_s: float) -> dict[str, str]:
        """Returns the settings that the topic was given; a setting that is not here has its default."""
        return self._settings(f"settings of {topic}", ResourceType.TOPIC, topic, timeout_s)

    def change_topic(self, topic: str, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """Changes settings of the topic; None restores a default."""
        self._alter(topic, ResourceType.TOPIC, topic, values, timeout_s)

    def cluster_settings(self, *, timeout_s: float) -> dict[str, str]:
        """Returns the settings that all brokers were given while they ran."""
        return self._settings("settings of all brokers", ResourceType.BROKER, "", timeout_s)

    def change_cluster(self, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """Changes settings of all brokers; None restores a default."""
        self._alter("all brokers", ResourceType.BROKER, "", values, timeout_s)

    def _settings(self, what: str, kind: ResourceType, name: str, timeout_s: float) -> dict[str, str]:
        result = self._change(what, lambda one: one.describe_configs(kind, name), timeout_s)
        return {
            one.name: one.value for one in result if one.source in _DYNAMIC_SOURCES and one.value is not None
        }

    def _alter(
        self,
        owner: str,
        kind: ResourceType,
        name: str,
        values: Mapping[str, str | None],
        timeout_s: float,
    ) -> None:
        what = f"change {', '.join(values)} of {owner}"
        self._change(what, lambda one: one.alter_configs(kind, name, values), timeout_s)

    # --- topics -------------------------------------------------------------------------------------------

    def create_topic(self, topic: TopicSpec, *, timeout_s: float) -> None:
        """One that is there already is no error."""

        def create(connection: Connection) -> None:
            with _passed_over(ErrorCode.topic_already_exists):
                connection.create_topic(topic, timeout_s=CHANGE_S)

        self._change(f"create {topic.name}", create, timeout_s)

    def delete_topic(self, topic: str, *, timeout_s: float) -> None:
        """One that is not there is no error."""

        def delete(connection: Connection) -> None:
            with _passed_over(ErrorCode.unknown_topic_or_partition):
                connection.delete_topic(topic, timeout_s=CHANGE_S)

        self._change(f"delete {topic}", delete, timeout_s)

    def topic_id(self, topic: str, *, timeout_s: float) -> str | None:
        """The id that this life of the topic has; None when there is no such topic."""

        def look(connection: Connection) -> str | None:
            for one in connection.metadata([topic]).topics:
                if one.error is ErrorCode.none and one.topic_id is not None:
                    return str(one.topic_id)
            return None

        return self._change(f"look for {topic}", look, timeout_s)

    # --- quotas -------------------------------------------------------------------------------------------

    def quotas(self, *, timeout_s: float) -> dict[str, str]:
        """Returns the quotas of every client that has none of its own."""
        result = self._change("quotas of clients", principals.client_quotas, timeout_s)
        return {name: f"{value:g}" for name, value in result.items()}

    def change_quotas(self, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """Changes those quotas; None takes one away. Returns when each broker that answers names them, or the
        time is over."""
        numbers = {name: None if value is None else float(value) for name, value in values.items()}
        self._change(
            f"change {', '.join(values)}",
            lambda one: principals.alter_client_quotas(one, numbers),
            timeout_s,
        )
        deadline = time.monotonic() + timeout_s
        for node in self._change.peers:
            while time.monotonic() < deadline and not self._has_quotas(node, numbers):
                time.sleep(_LOOK_S)

    def _has_quotas(self, node: Node, numbers: Mapping[str, float | None]) -> bool:
        """Of a broker that does not answer: True."""
        try:
            with self._change.connect(node, QUESTION_S) as connection:
                held = principals.client_quotas(connection)
        except ProtocolError:
            return True
        return all(held.get(name) == number for name, number in numbers.items())

    # --- users --------------------------------------------------------------------------------------------

    def give_password(self, user: str, mechanism: str, password: str, *, timeout_s: float) -> None:
        """A user is let in by this password from now on. ``mechanism``: one of SCRAM."""
        self._change(
            f"give {user} a password",
            lambda one: principals.alter_scram_password(one, user, mechanism, password),
            timeout_s,
        )

    def grant(self, user: str, acls: Acls, topics: Sequence[str], *, timeout_s: float) -> None:
        """Gives a user rights on these topics, and on groups and transactional ids of ours."""
        bindings = tuple(_bindings(user, acls, topics))
        self._change(f"give {user} rights", lambda one: principals.create_acls(one, bindings), timeout_s)

    # --- brokers and groups -------------------------------------------------------------------------------

    def unregister(self, node_id: int, *, timeout_s: float) -> None:
        """The cluster forgets a broker that was stopped. One that it does not know is no error."""

        def forget(connection: Connection) -> None:
            with _passed_over(ErrorCode.broker_id_not_registered):
                connection.unregister_broker(node_id)

        self._change(f"unregister broker {node_id}", forget, timeout_s)

    def delete_group(self, group: str, *, timeout_s: float) -> None:
        """Waits until its members are gone. One that is not there is no error."""

        def delete(connection: Connection) -> None:
            try:
                with _passed_over(ErrorCode.group_id_not_found):
                    connection.delete_group(group)
            except Rejected as refused:
                if refused.error is ErrorCode.non_empty_group:
                    raise ProtocolError(f"{group} has members") from refused
                raise

        self._change(f"delete group {group}", delete, timeout_s)

    def coordinator(self, what: str, name: str, *, timeout_s: float) -> int:
        """Returns the node that coordinates this group or, by its transactional id, this transaction
        (``what``); of a share group it is that of one partition: ``GROUP:TOPIC:PARTITION``."""
        if what != "share":
            return self.ask(lambda one: one.find_coordinator(what, name), timeout_s)
        group, topic, partition = name.rsplit(":", 2)
        return self.ask(lambda one: one.find_share_coordinator(group, topic, int(partition)), timeout_s)

    def use_epochs(self, transactional_ids: Sequence[str], epoch: int, *, timeout_s: float) -> None:
        """Asks for one producer after another of each transactional id until one has this epoch. The ids
        have a thread and a connection each."""
        deadline = time.monotonic() + timeout_s
        with ThreadPoolExecutor(max(1, len(transactional_ids)), "epochs") as pool:
            done = [pool.submit(self._use_epochs, one, epoch, deadline) for one in transactional_ids]
        for each in done:
            each.result()

    def _use_epochs(self, name: str, epoch: int, deadline: float) -> None:
        """Where the connection breaks, or the coordinator changes, it goes on with the next."""
        now = -1

        def bump(connection: Connection) -> int:
            return connection.init_producer_id(name, transaction_timeout_s=_INIT_TXN_S)[1]

        while now < epoch:
            remaining = max(deadline - time.monotonic(), 0.01)
            at = self.coordinator("transaction", name, timeout_s=remaining)
            try:
                with self._change.connect(self._node(at), CHANGE_S) as connection:
                    while now < epoch and time.monotonic() < deadline:
                        now = bump(connection)
            except Rejected as refused:
                if not is_passing(refused.error):
                    raise DeployError(f"the cluster refused: {refused}") from refused
            except ProtocolError as broken:
                log.debug("%s", broken)
            if now < epoch and time.monotonic() >= deadline:
                raise DeployError(f"{name}: epoch {now} of {epoch} after the whole time for it")

    def _node(self, node_id: int) -> Node:
        for node in self._change.peers:
            if node.node_id == node_id:
                return node
        raise DeployError(f"node {node_id} coordinates, and is none of the brokers that are known")

    # --- the controller quorum ----------------------------------------------------------------------------

    def quorum(self, *, timeout_s: float) -> Quorum:
        """Returns the quorum as its leader reports it."""
        return self._change("describe the quorum", Connection.describe_quorum, timeout_s)

    def add_voter(self, voter: Voter, listener: tuple[str, str, int], *, timeout_s: float) -> None:
        """Asks for one more voter, as long as the quorum says that it may be one later."""

        def add(connection: Connection) -> None:
            connection.add_voter(voter, listener, timeout_s=CHANGE_S)

        self._change(f"add voter {voter}", add, timeout_s)

    def remove_voter(self, voter: Voter, *, timeout_s: float) -> None:
        self._change(f"remove voter {voter}", lambda one: one.remove_voter(voter), timeout_s)

    # --- features -----------------------------------------------------------------------------------------

    @staticmethod
    def _level(connection: Connection, feature: str) -> int:
        """The level of a feature as this broker knows it; 0 for none."""
        finalized = connection.features().finalized_features
        return max((int(one.max_version_level) for one in finalized if one.name == feature), default=0)

    def levels(self, *, timeout_s: float) -> dict[str, int]:
        """Returns name of each feature -> the level that the cluster runs at; none of a cluster that knows
        none."""
        result = self.ask(Connection.features, timeout_s)
        return {one.name: int(one.max_version_level) for one in result.finalized_features}

    def raise_level(self, feature: str, level: int, *, timeout_s: float, unsafe: bool = False) -> str:
        """Asks for a level of a feature, higher or (by a safe downgrade, or one that may forget metadata)
        lower than it has; returns why the cluster refuses it, in its words, empty when it is done."""
        downgrade = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE

        def update(connection: Connection) -> str:
            try:
                kind = downgrade if level < self._level(connection, feature) else UPGRADE
                connection.update_feature(feature, level, timeout_s=_FEATURE_S, kind=kind)
            except Rejected as refused:
                if refused.error in _LEVEL_LATER:
                    raise
                return f"{refused.error.name}: {refused.message}"
            return ""

        return self._change(f"{feature}={level}", update, timeout_s)


def _bindings(user: str, acls: Acls, topics: Sequence[str]) -> Iterator[principals.Acl]:
    for resource, operations in acls.items():
        names = topics if resource is Resource.TOPIC else (PREFIX,)
        if resource is Resource.CLUSTER:
            names = (principals.THE_CLUSTER,)
        prefixed = resource not in (Resource.TOPIC, Resource.CLUSTER)
        for name in names:
            for operation in operations:
                yield principals.Acl(user, resource.value, name, operation, prefixed=prefixed)


def node_settings(connection: Connection, node: Node) -> list[Setting]:
    """Returns all settings of the node that is asked, by name. Raises ProtocolError."""
    result = connection.describe_configs(ResourceType.BROKER, str(node.node_id))
    return sorted(result, key=lambda one: one.name)


@contextmanager
def _passed_over(*errors: ErrorCode) -> Iterator[None]:
    """Ignores these errors of what is inside."""
    try:
        yield
    except Rejected as rejected:
        if rejected.error not in errors:
            raise


def _check(done: Outcome, passed_over: Sequence[ErrorCode]) -> None:
    """Raises Rejected for an error that is not among these."""
    if done.error is not ErrorCode.none and done.error not in passed_over:
        place = f"{done.place[0]}-{done.place[1]}"
        raise Rejected(place, done.error, done.message, place)
