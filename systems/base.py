"""The interface of a system, which is deployed onto a fleet (docs/architecture.md section 3: system,
node)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from wrackline.errors import InfrastructureError
from wrackline.fleets.base import Host
from wrackline.kafka_client.model import ClusterState as ClusterState
from wrackline.kafka_client.model import LogDir as LogDir
from wrackline.kafka_client.model import PartitionState as PartitionState
from wrackline.kafka_client.model import Place as Place
from wrackline.kafka_client.model import Quorum as Quorum
from wrackline.kafka_client.model import TopicSpec as TopicSpec
from wrackline.kafka_client.model import Voter as Voter
from wrackline.plugins.acls import Acls
from wrackline.systems.metadata_changes import Chronicle, QuorumLog

if TYPE_CHECKING:  # a command that needs no history does not wait for what reads one
    from wrackline.history.offsets import Offsets
    from wrackline.kafka_client.connection import Connection


class DeployError(InfrastructureError):
    """Deployment or control of a system failed. The message names host, node, command and the way out."""


class NodeDied(DeployError):
    """A node was started on a host that is well, and ended by itself before it listened. The message has
    ``history.model.NODE_DIED``, also where it has become a fault's error in a history."""


@dataclass(frozen=True, slots=True)
class Node:
    """A system's process on a host."""

    node_id: int
    host: Host
    roles: frozenset[str]
    """``broker``, ``controller`` or both; or ``zookeeper``."""
    port: int
    """Of a broker: where clients ask."""
    controller_port: int | None = None
    """Where the controller of a combined node listens."""
    spare: bool = False
    """It is installed and not started: it joins while the run goes on, if it does."""
    replication_port: int | None = None
    """Where other nodes ask a broker; None: where clients do."""

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def is_zookeeper(self) -> bool:
        return "zookeeper" in self.roles


class About(StrEnum):
    """The subject of a refusal."""

    CONFIG = "config"
    PROFILE = "profile"
    DEFECTS = "defects"
    TOPIC = "topic"
    """Its name."""
    TOPIC_CONFIG = "topic config"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A setting that the system would not start with, or a topic that it would not create. ``key``: the
    setting that it is about."""

    about: About
    key: str
    problem: str
    """What is wrong and what would be right, in one line."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record in a replica's own segments."""

    offset: int
    leader_epoch: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class ReplicaLog:
    """One replica's log, read from its own files."""

    node_id: int
    topic: str
    partition: int
    log_start: int
    leo: int
    high_watermark: int
    """The one in the replica's checkpoint file; -1 when there is none."""
    records: Sequence[StoredRecord]
    problem: str | None = None
    """What was wrong with the files (bad CRC, offsets that go back); the records before it are still here."""
    epochs: Sequence[tuple[int, int]] | None = None
    """(leader epoch, the offset where it begins) of the replica's own file of leader epochs; None: there is
    none that can be read."""
    hole: str | None = None
    """The first place where offsets are missing between batches. The cleaner of a compacted topic leaves
    such; in another topic something is gone. The records behind it are here, too."""
    log_dirs: Sequence[str] = ()
    """The log directories of the node that have the partition, where several do: this is the log of one."""


class System(Protocol):
    """A system that is deployed on a fleet: it is started, stopped, asked and read. Every error is a
    DeployError."""

    name: str
    nodes: tuple[Node, ...]

    def refusals(self, topic: TopicSpec) -> Sequence[Refusal]:
        """Returns what the program itself would refuse of its settings and of this topic: asked here,
        without any host. Raises DeployError when it cannot be asked."""

    def install(self) -> None:
        """Bring the software and the configuration to every host and start nothing."""

    def start(self, node: Node) -> None: ...

    def stop(self, node: Node, *, timeout_s: float = 30.0) -> None:
        """Clean shutdown (SIGTERM), waited for."""

    def kill(self, node: Node) -> None:
        """kill -9."""

    def is_running(self, node: Node) -> bool: ...

    def pid(self, node: Node) -> int | None: ...

    def last_words(self, node: Node) -> str:
        """The last line of the node's log: of a node that is down, why. Empty when it has none."""

    def crash(self, node: Node, pid: int) -> str:
        """How a process that is over ended by a bug of its own, as ``exit code 70``. Empty where it ended
        otherwise, where its host lacks something, and where nobody knows."""

    def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        """Waits until every node runs, is unfenced, and the cluster answers. Says what it last saw when it
        gives up."""

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None: ...

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        """Asks any broker that answers; raises DeployError when none does."""

    def growth_plan(self, node: Node, topic: str, *, timeout_s: float = 30.0) -> dict[Place, tuple[int, ...]]:
        """The replicas that give a broker that has just joined its share of a topic, of those partitions that
        change."""

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float = 30.0) -> None:
        """Begin to move partitions to these replicas; None cancels. Does not wait until they are there."""

    def reassignments(self, *, timeout_s: float = 5.0) -> frozenset[Place]:
        """Partitions whose replicas are changing now."""

    def bootstrap(self) -> str:
        """``host:port,...`` for clients."""

    def effective_config(self, node: Node) -> str: ...

    def replica_log(self, node: Node, topic: str, partition: int) -> ReplicaLog:
        """The node's own segments, fetched over SSH."""

    def collect(self, into: Path) -> None:
        """Logs, traces, effective configuration and data-directory listings of every node, by host."""


@runtime_checkable
class Fetchable(Protocol):
    """A system whose leaders can be read by a second way, which shares nothing with clients' libraries,
    besides all else."""

    def fetch_again(
        self, topic: str, partition: int, wanted: Offsets, *, committed: bool, timeout_s: float = 30.0
    ) -> Offsets:
        """Returns at which of the ``wanted`` offsets the leader gives a record. ``committed``: without
        those of aborted transactions. Raises DeployError."""


@runtime_checkable
class Scannable(Protocol):
    """A system whose nodes' segments can be read by a second way, besides all else."""

    def scan_again(self, node: Node, topic: str, partition: int) -> Offsets:
        """The offsets at which the node's files have records. Raises DeployError."""


@runtime_checkable
class Closable(Protocol):
    """A system with connections or threads of its own, besides all else."""

    def close(self) -> None:
        """End them; the hosts may be gone afterwards. Idempotent."""


@runtime_checkable
class Featured(Protocol):
    """A system whose cluster can be asked for the levels of its features, besides all else."""

    def features(self, *, timeout_s: float = 30.0) -> Mapping[str, int]:
        """Name of each feature -> its finalised level, as the cluster reports them. Raises DeployError."""


@runtime_checkable
class Chronicled(Protocol):
    """A system that writes down every change of its partitions, besides all else."""

    def chronicle(self, topic: str, collected: Path) -> Chronicle:
        """Returns the metadata changes of a topic that the system has written down. ``collected``: where
        ``collect`` has put its files. Raises DeployError."""


@runtime_checkable
class QuorumLogged(Protocol):
    """A system whose controllers write down who leads and votes among them, besides all else."""

    def quorum_logs(self) -> Sequence[QuorumLog]:
        """The history of the quorum by the copy of each controller that has one. Raises DeployError."""


@runtime_checkable
class Coordinated(Protocol):
    """A system whose groups or transactions have coordinators, besides all else."""

    def coordinator(self, what: str, name: str, *, timeout_s: float = 5.0) -> int:
        """The node that coordinates this group or, by its transactional id, this transaction (``what``), or
        keeps the state of a share group in a partition (``GROUP:TOPIC:PARTITION``). Raises DeployError when
        nobody answers in time, or it has none now."""

    def use_epochs(self, transactional_ids: Sequence[str], epoch: int, *, timeout_s: float) -> None:
        """Asks for one producer after another of each transactional id until one has this epoch. Raises
        DeployError."""


@runtime_checkable
class Reachable(Protocol):
    """A system whose brokers can be asked anything one by one, besides all else."""

    def connect(self, node: Node, *, timeout_s: float) -> Connection:
        """Connects to this broker. Raises ProtocolError."""


@runtime_checkable
class Internal(Protocol):
    """A system that keeps its coordinators' state in internal topics, besides all else."""

    def describe_internal(self, topics: Collection[str]) -> None:
        """From now on ``describe`` has the partitions of these internal topics, too, once they exist; besides
        those that it was told before."""


class Admin(Protocol):
    """The administration of a cluster (`wrackline.systems.administration`). Every error is a DeployError."""

    def elect_preferred(self, places: Sequence[Place], *, timeout_s: float) -> None: ...

    def elect_uncleanly(self, places: Sequence[Place], *, timeout_s: float) -> None:
        """Somebody shall lead, whoever is there, at the price of records."""

    def topic_settings(self, topic: str, *, timeout_s: float) -> dict[str, str]:
        """Returns the settings that the topic was given; a setting that is not here has its default."""

    def change_topic(self, topic: str, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """Changes settings of the topic; None restores a default."""

    def cluster_settings(self, *, timeout_s: float) -> dict[str, str]:
        """Returns the settings that all brokers were given while they ran."""

    def change_cluster(self, values: Mapping[str, str | None], *, timeout_s: float) -> None: ...

    def create_topic(self, topic: TopicSpec, *, timeout_s: float) -> None: ...

    def delete_topic(self, topic: str, *, timeout_s: float) -> None: ...

    def topic_id(self, topic: str, *, timeout_s: float) -> str | None: ...

    def unregister(self, node_id: int, *, timeout_s: float) -> None: ...


@runtime_checkable
class Administered(Protocol):
    """A system that can be told what an administrator tells a cluster, besides all else."""

    @property
    def admin(self) -> Admin: ...


@runtime_checkable
class LogDirectories(Protocol):
    """A system whose brokers can be asked about their log directories, besides all else. Every error is a
    DeployError."""

    def log_dirs(self, node: Node, *, timeout_s: float) -> Sequence[LogDir]:
        """The log directories of a broker, and the logs in each."""

    def move_logs(self, node: Node, targets: Mapping[Place, str], *, timeout_s: float) -> None:
        """Begin to move replicas of a broker to other log directories of it, by path."""


@dataclass(frozen=True, slots=True)
class TierTraffic:
    """The segments that went through a remote tier."""

    copied: int
    """How many it has got."""
    fetched: int
    """Of how many it gave records."""
    fetches: int


@runtime_checkable
class Tiered(Protocol):
    """A system that may have a remote tier of ours, besides all else."""

    def tier_traffic(self) -> TierTraffic | None:
        """Returns what went through the remote tier; None: there is none. Raises DeployError."""


@runtime_checkable
class Guarded(Protocol):
    """A system that may ask clients who they are, besides all else."""

    def admit(self, acls: Acls, topics: Sequence[str], *, timeout_s: float = 30.0) -> None:
        """Lets clients in, and gives them these rights where there are ACLs. Raises DeployError."""


@runtime_checkable
class Certified(Protocol):
    """A system whose brokers have certificates that can be rotated, besides all else. Certificates are named
    by their serial numbers. Every error is a DeployError."""

    def rotate_certificate(self, node: Node, *, timeout_s: float) -> str:
        """The node gets a certificate of another authority; returns when it serves it."""

    def restore_certificate(self, node: Node, *, timeout_s: float) -> None:
        """The node gets its first certificate again; returns when it serves it."""

    def served_certificate(self, node: Node, *, timeout_s: float) -> str:
        """Returns the certificate that a new client is shown."""


class LetIn(StrEnum):
    """The passwords by which a broker lets clients in, of the one that they use and the one that takes its
    place for a while."""

    FIRST = "the password that clients use"
    SECOND = "the new password"
    BOTH = "both passwords"
    NEITHER = "neither password"


@runtime_checkable
class Passworded(Protocol):
    """A system whose clients have a password that can be changed while it runs, besides all else. Every error
    is a DeployError."""

    def change_password(self, *, second: bool, timeout_s: float) -> None:
        """Clients are let in by the second password, or by the one that they use, and by no other; returns
        when each broker that answers knows it, or the time is over."""

    def lets_in_by(self, node: Node, *, timeout_s: float) -> LetIn:
        """Returns by which password a broker lets a new client in."""


@runtime_checkable
class QuotaAdmin(Protocol):
    """The administration of a cluster that has quotas of clients, besides all else."""

    def quotas(self, *, timeout_s: float) -> Mapping[str, str]:
        """Returns the quotas of every client that has none of its own."""

    def change_quotas(self, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """Changes them; None takes one away."""


@runtime_checkable
class Throttling(Protocol):
    """A system whose brokers throttle clients that exceed a quota, besides all else."""

    def throttle_ms(self, node: Node, quota: str, *, timeout_s: float) -> int:
        """Returns for how long the broker throttles requests that count for this quota; 0: not at all. Raises
        DeployError."""


@runtime_checkable
class Furnished(Protocol):
    """A system whose nodes need more than an empty data folder, besides all else."""

    def furnish(self, node: Node) -> None:
        """Lay the node's data folder out as the installation did; one with anything in it is left alone.
        Raises DeployError."""


@runtime_checkable
class OnZooKeeper(Protocol):
    """A system that keeps its metadata in ZooKeeper, besides all else."""

    def ensemble(self, *, timeout_s: float = 5.0) -> Mapping[int, str]:
        """Node of each ZooKeeper server that answers -> what it is: ``leader``, ``follower`` or, where there
        is one only, ``standalone``."""

    def expire_session(self, node: Node, *, timeout_s: float = 30.0) -> SessionEnd:
        """End the session that this broker has with ZooKeeper, as if it had expired, and wait until the
        broker has another. Raises DeployError."""


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The end of a broker's session with ZooKeeper, by the owner of the broker's own node there."""

    node: str
    """``/brokers/ids/2``."""
    before: int
    after: int
    """Another session; 0: the broker did not come back in time."""
    absent_s: float
    """So long the node was not there."""


@runtime_checkable
class Levelled(Protocol):
    """A system whose cluster does some things only from a level on that an administrator gives it, besides
    all else. Every error is a DeployError."""

    def levels(self, *, timeout_s: float) -> Mapping[str, int]:
        """Name of each feature -> the level that the cluster has."""

    def raise_level(self, feature: str, level: int, *, timeout_s: float, unsafe: bool = False) -> str:
        """Asks for another level of a feature, a lower one by a safe downgrade or by one that may forget
        metadata. Why the cluster refuses it, in its words; empty: it is done."""


@runtime_checkable
class Voting(Protocol):
    """A system whose controllers can join and leave the quorum while it runs (KIP-853), besides all else.
    Every error is a DeployError."""

    @property
    def joins_by_itself(self) -> bool:
        """Tells whether a controller that runs becomes a voter without being asked for (KIP-1186)."""

    def quorum(self, *, timeout_s: float) -> Quorum:
        """Returns the quorum as its leader reports it."""

    def voter_on(self, node: Node) -> Voter:
        """Returns the voter that the node is, or would be, by its own disk."""

    def add_voter(self, node: Node, *, timeout_s: float) -> None:
        """Asks the quorum to take the node, which must run, and asks again while it refuses for now."""

    def remove_voter(self, voter: Voter, *, timeout_s: float) -> None: ...

    def renew_disk(self, node: Node) -> None:
        """Empties the data folder of a controller that is down, and formats it anew: under another id, and as
        one that is no voter yet."""


@runtime_checkable
class Upgradable(Protocol):
    """A system whose nodes can become another version one by one, besides all else."""

    def upgrade(self, node: Node, version: str) -> None:
        """Sets the version that a stopped node is started as from now on. Raises DeployError."""

    def running_version(self, node: Node) -> str:
        """The version of the process that runs there; empty when none does. Raises DeployError."""
