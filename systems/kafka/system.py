"""Apache Kafka on a fleet, in KRaft mode: install, configure, start, stop, ask.

No host formats a disk: the files are the same for every node of a kind (wrackline.systems.kafka.server), and
only meta.properties is a node's own.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kio.schema.errors import ErrorCode

from wrackline.fleets.base import Fleet, FleetError
from wrackline.fleets.folders import data_dir, data_dirs
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.log_dirs import describe_log_dirs, move_logs
from wrackline.kafka_client.transport import ProtocolError
from wrackline.plugins.acls import Acls
from wrackline.systems.administration import QUESTION_S, node_settings
from wrackline.systems.base import (
    About,
    DeployError,
    LetIn,
    LogDir,
    Node,
    Place,
    Quorum,
    Refusal,
    ReplicaLog,
    TierTraffic,
    TopicSpec,
    Voter,
)
from wrackline.systems.common.nodes import CONTROLLER_PORT, nodes_on
from wrackline.systems.common.on_hosts import bringing, deploy_error, on_each
from wrackline.systems.jvm.property_file import text
from wrackline.systems.jvm.store import Release, Store
from wrackline.systems.kafka import metadata_log, quorum_log
from wrackline.systems.kafka.nodes import KafkaNodes
from wrackline.systems.kafka.properties import (
    AUTO_JOIN,
    CONTROLLER_LISTENER,
    OURS,
    properties,
    properties_of,
)
from wrackline.systems.kafka.security.passwords import Passwords
from wrackline.systems.kafka.security.settings import (
    BY_SECURITY,
    CLIENTS,
    OWN_KEYS,
    OWNER,
    PASSWORDS,
    ClusterSecurity,
)
from wrackline.systems.kafka.security.throttling import measure
from wrackline.systems.kafka.server import Kind, directory_of, formatted, formatted_voters, meta
from wrackline.systems.kafka.settings import refused
from wrackline.systems.kafka.tier import (
    FOLDER,
    JOURNAL,
    Tier,
    compiled,
    credentials,
    traffic_of,
)
from wrackline.systems.kafka.tier import properties as tier_properties
from wrackline.systems.metadata_changes import Chronicle, QuorumLog
from wrackline.systems.spec import is_true

if TYPE_CHECKING:
    from wrackline.systems.kafka.security.listeners import Listeners

START_S = 40.0
T = TypeVar("T")
JVM_OPTIONS = ("-Xms96m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class KafkaSystem(KafkaNodes):
    """The `System` of Apache Kafka from 3.7 on."""

    def __init__(
        self,
        fleet: Fleet,
        *,
        version: str,
        versions: Mapping[str, str] | None = None,
        brokers: Sequence[str],
        controllers: Sequence[str],
        spares: Sequence[str] = (),
        spare_controllers: Sequence[str] = (),
        dynamic: bool = False,
        cluster_id: str,
        features: Mapping[str, int] | None = None,
        racks: Mapping[str, str] | None = None,
        security: ClusterSecurity | None = None,
        config: Mapping[str, str | int | float | bool] | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        start_s: float = START_S,
        faketime: bool = False,
        tier: Tier | None = None,
        store: Store | None = None,
    ) -> None:
        """Assigns ids to hosts: `wrackline.systems.common.nodes.nodes_on`. A combined node has its
        broker's id in the quorum too. ``cluster_id``: 16 bytes in base64url, 22 characters. ``features``:
        levels that a new cluster is given, by name. ``versions``: of hosts that have another one.
        ``racks``: host -> its rack.
        ``dynamic``: controllers join and leave the quorum while it runs, ``spare_controllers`` too (KIP-853).
        ``faketime``: nodes have clocks of their own. ``tier``: brokers have a remote tier in the folder that
        hosts share. ``security``: plain text by default. Raises DeployError for a host that the fleet does
        not have."""
        self._cluster_id = cluster_id
        self._features = dict(features or {})
        self._security = security or ClusterSecurity()
        self._as_owner = self._security.of(OWNER)
        self._config = dict(config or {})
        self._tier = tier
        self._racks = dict(racks or {})
        self._dynamic = dynamic
        self._disks: Counter[int] = Counter()
        """By node: how often its data folder was formatted."""
        self._first_voters: dict[str, bytes] = {}
        super().__init__(
            fleet,
            nodes_on(
                fleet,
                brokers=brokers,
                controllers=controllers,
                spares=spares,
                one_id=True,
                spare_controllers=spare_controllers,
            ),
            version=version,
            versions=versions or {},
            jvm_options=jvm_options,
            start_s=start_s,
            faketime=faketime,
            store=store or Store(),
        )
        self._voting: frozenset[int] | None = None
        """Who votes, by the last answer of a quorum that can change."""

    def refusals(self, topic: TopicSpec) -> tuple[Refusal, ...]:
        """Settings that are the harness's own and, where the version is installed, what it does not know."""
        release = self._store.find(self.version)
        kept = dict(OURS)
        if self._security != ClusterSecurity():
            kept |= dict.fromkeys(OWN_KEYS, BY_SECURITY)
        own = [Refusal(About.CONFIG, key, kept[key]) for key in self._config if key in kept]
        return (*own, *(refused(release, self._config, topic.configs) if release else ()))

    def _active_controller(self, controller: Connection) -> int:
        return controller.active_controller()

    def _electorate(self) -> Collection[int] | None:
        return self._voting if self._dynamic else None

    # --- installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        # Once, before all hosts want it.
        if self._dynamic:
            self._voting = frozenset(one.node_id for one in self.controllers)
            voters = [
                (one.node_id, f"{one.host.address}:{CONTROLLER_PORT}", directory_of(one.node_id))
                for one in self.controllers
            ]
            self._first_voters = formatted_voters(self._kafka(self.version), self._features, voters)
        else:
            formatted(self._kafka(self.version), self._features)
        if self._tier is not None:
            compiled(self._kafka(self.version), self._tier)
        super().install()

    def _bring(self, node: Node) -> None:
        super()._bring(node)
        if self._security.tls and node.is_broker:
            self._listeners.bring(node)
        if self._tier is not None and self._tier.kind == "s3":
            keys = "\n".join(credentials()).encode()
            self.fleet.remote(node.host).put(keys, self._credentials_path(node), mode=0o600)

    def _credentials_path(self, node: Node) -> str:
        """Of the tier's. It is not among the files that are kept of a run."""
        return f"{self._config_path(node)}.credentials"

    @cached_property
    def _listeners(self) -> Listeners:
        """Who has no certificates does not wait for the library that makes them."""
        from wrackline.systems.kafka.security.listeners import Listeners

        return Listeners(self.fleet, self._security.listener)

    def _release_of(self, node: Node) -> Release:
        return self._kafka(self._version_of(node))

    def _format(self, node: Node) -> None:
        remote, first = self.fleet.remote(node.host), data_dir(node.host)
        disk = self._disks[node.node_id] if self._dynamic and node.is_controller else 0
        for path, content in self._formatted(node, disk).items():
            remote.put(content, f"{first}/{path}")  # the metadata log is in the first directory
        for number, data in enumerate(data_dirs(node.host), start=1):
            properties_of_dir = meta(node.node_id, self._cluster_id, disk if number == 1 else 0, number)
            remote.put(properties_of_dir.encode(), f"{data}/meta.properties")
        self._disks[node.node_id] += 1

    def _formatted(self, node: Node, disk: int) -> Mapping[str, bytes]:
        """The files of a node's data folder, its ``disk`` after so many others."""
        if not self._dynamic:
            return formatted(self._kafka(self.version), self._features)
        if not node.is_controller:
            return formatted(self._release_of(node), self._features, Kind.BROKER)
        if node in self.controllers and not disk:
            return self._first_voters
        return formatted(self._release_of(node), self._features, Kind.OBSERVER)

    def renew_disk(self, node: Node) -> None:
        """Empties the data folder of a controller that is down, and formats it anew: under another id, and as
        one that is no voter yet. What watches the host stays."""
        data = data_dir(node.host)
        kept = "! -name '.wrack-*' ! -name lost+found"
        self._command(node, f"find {data} -mindepth 1 -maxdepth 1 {kept} -exec rm -rf {{}} +")
        with bringing(node, "format"):
            self._format(node)
        self._command(node, f"sync -f {data}", timeout_s=60.0)

    def _main(self, node: Node) -> Sequence[str]:
        return ("kafka.Kafka", self._config_path(node))

    def config_for(self, node: Node) -> str:
        version = self._version_of(node)
        config = dict(self._config)
        if self._tier is not None:  # controllers look at topics' settings by it
            classes = compiled(self._kafka(version), self._tier)
            shared, brokers = str(node.host.shared), len(self.brokers)
            listener, keys = self._security.listener, self._credentials_path(node)
            config = {
                **tier_properties(self._tier, classes, shared, listener, brokers, self._cluster_id, keys),
                **config,
            }
        return text(
            properties(
                version,
                self._placed,
                node,
                config,
                dynamic=self._dynamic,
                rack=self._racks.get(node.host.name, ""),
                security=self._security,
            )
        )

    # --- asking the cluster -------------------------------------------------------------------------------

    def _dial(self, address: str, port: int, timeout_s: float) -> Connection:
        """The listener of controllers is in plain text."""
        if port == CONTROLLER_PORT:
            return super()._dial(address, port, timeout_s)
        return Connection(address, port, timeout_s=timeout_s, security=self._as_owner)

    def admit(self, acls: Acls, topics: Sequence[str], *, timeout_s: float = 30.0) -> None:
        """Rights are on these topics, and on whatever else has a name of the harness's."""
        if self._security.scram is not None:
            self._give_password(PASSWORDS[CLIENTS], timeout_s)
        if self._security.acls:
            self._administrator.grant(CLIENTS, acls, topics, timeout_s=timeout_s)

    def rotate_certificate(self, node: Node, *, timeout_s: float) -> str:
        return self._ask_broker(node, lambda one: self._listeners.rotate(one, node, timeout_s), timeout_s)

    def restore_certificate(self, node: Node, *, timeout_s: float) -> None:
        self._ask_broker(node, lambda one: self._listeners.restore(one, node, timeout_s), timeout_s)

    def served_certificate(self, node: Node, *, timeout_s: float) -> str:
        return self._listeners.served(node, timeout_s)

    def _give_password(self, password: str, timeout_s: float) -> None:
        mechanism = self._security.scram
        assert mechanism is not None
        self._administrator.give_password(CLIENTS, mechanism, password, timeout_s=timeout_s)

    @cached_property
    def _passwords(self) -> Passwords:
        return Passwords(self.fleet, self._security.of(CLIENTS), self._give_password)

    def change_password(self, *, second: bool, timeout_s: float) -> None:
        brokers = [node for node in self.nodes if node.is_broker and not node.spare]
        self._passwords.change(brokers, second=second, timeout_s=timeout_s)

    def lets_in_by(self, node: Node, *, timeout_s: float) -> LetIn:
        return self._passwords.let_in(node, timeout_s)

    def throttle_ms(self, node: Node, quota: str, *, timeout_s: float) -> int:
        return measure(self._client.connect, node, quota, timeout_s)

    def levels(self, *, timeout_s: float) -> Mapping[str, int]:
        return self._administrator.levels(timeout_s=timeout_s)

    def raise_level(self, feature: str, level: int, *, timeout_s: float, unsafe: bool = False) -> str:
        return self._administrator.raise_level(feature, level, timeout_s=timeout_s, unsafe=unsafe)

    def features(self, *, timeout_s: float = 30.0) -> Mapping[str, int]:
        return self._administrator.levels(timeout_s=timeout_s)

    # --- the controller quorum ----------------------------------------------------------------------------

    @property
    def joins_by_itself(self) -> bool:
        return is_true(self._config.get(AUTO_JOIN))

    def quorum(self, *, timeout_s: float) -> Quorum:
        result = self._administrator.quorum(timeout_s=timeout_s)
        self._voting = frozenset(one.node_id for one in result.voters)
        return result

    def voter_on(self, node: Node) -> Voter:
        result = self._command(node, f"sed -n s/^directory.id=//p {data_dir(node.host)}/meta.properties")
        return Voter(node.node_id, result.stdout.strip())

    def add_voter(self, node: Node, *, timeout_s: float) -> None:
        listener = (CONTROLLER_LISTENER, node.host.address, CONTROLLER_PORT)
        self._administrator.add_voter(self.voter_on(node), listener, timeout_s=timeout_s)

    def remove_voter(self, voter: Voter, *, timeout_s: float) -> None:
        self._administrator.remove_voter(voter, timeout_s=timeout_s)

    # --- log directories ----------------------------------------------------------------------------------

    def log_dirs(self, node: Node, *, timeout_s: float) -> Sequence[LogDir]:
        return self._ask_broker(node, describe_log_dirs, timeout_s)

    def move_logs(self, node: Node, targets: Mapping[Place, str], *, timeout_s: float) -> None:
        for done in self._ask_broker(node, lambda one: move_logs(one, targets), timeout_s):
            if done.error is not ErrorCode.none:
                name = f"{done.place[0]}-{done.place[1]}"
                why = f"{name} cannot move to {targets[done.place]}: {done.error.name}"
                raise deploy_error(node, "move a replica", why, "see its log")

    def tier_traffic(self) -> TierTraffic | None:
        """Returns what went through the remote tier, by the journals of all brokers; None: there is no tier.
        Raises DeployError."""
        if self._tier is None:
            return None
        [first, *_] = self.brokers
        journals = f"{first.host.shared}/{FOLDER}/{JOURNAL}"
        return traffic_of(self._command(first, f"cat {journals}/* 2>/dev/null || true").stdout)

    def _ask_broker(self, node: Node, question: Callable[[Connection], T], timeout_s: float) -> T:
        """Asks one broker and no other. Raises DeployError."""
        try:
            with self._client.connect(node, timeout_s) as connection:
                return question(connection)
        except ProtocolError as error:
            raise deploy_error(node, "ask the broker", str(error), "see that it runs") from error

    # --- fetching files -----------------------------------------------------------------------------------

    def chronicle(self, topic: str, collected: Path) -> Chronicle:  # noqa: ARG002
        """Returns the metadata changes by the metadata log of the controllers, on their disks. Raises
        DeployError."""
        logs = on_each(
            self._placed.every_controller,
            lambda node: (node.host.name, self._metadata_log(node)),
        )
        host, log = metadata_log.furthest((host, log) for host, log in logs if log is not None)
        return metadata_log.chronicle(log, host, topic)

    def quorum_logs(self) -> Sequence[QuorumLog]:
        logs = on_each(self._placed.every_controller, self._quorum_log)
        return [log for log in logs if log is not None]

    def _quorum_log(self, node: Node) -> QuorumLog | None:
        """The node's copy of the quorum's history; None of a spare that has none. Raises DeployError."""
        folder = f"{data_dir(node.host)}/{metadata_log.TOPIC}-0"
        with tempfile.TemporaryDirectory(prefix="wrackline-quorum-") as scratch:
            try:
                self.fleet.remote(node.host).get_tree(folder, Path(scratch), patterns=quorum_log.PATTERNS)
            except FleetError as error:
                if node.spare:
                    return None
                why = "see that the controller has one"
                raise deploy_error(node, "read the metadata log", str(error), why) from error
            return quorum_log.read_quorum_log(Path(scratch), node_id=node.node_id, host=node.host.name)

    def _metadata_log(self, node: Node) -> ReplicaLog | None:
        """The node's copy of the metadata log; None of a spare that has none. Raises DeployError."""
        try:
            return self.replica_log(node, metadata_log.TOPIC, 0)
        except DeployError:
            if node.spare:
                return None
            raise

    def effective_config(self, node: Node) -> str:
        """Returns the configuration that the node runs with, as it says itself; of a node that does not
        answer: its file."""
        try:
            with self._client.connect(node, QUESTION_S) as connection:
                return properties_of(node_settings(connection, node))
        except ProtocolError as silent:
            return (
                f"# from the node's file: {silent}\n"
                + self._command(node, f"cat {self._config_path(node)}").stdout
            )
