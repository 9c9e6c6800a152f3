"""Nodes as their traces show them: with as much of a broker, a replica and a world as the invariants look at.

These stand in for ``Broker``, ``Replica``, ``Controller`` and ``World`` where ``simulator/invariants`` takes
one: the attributes have the same names and meanings. What a trace does not tell is not here, and the
invariants that ask for it are named in ``undecided``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from wrackline.broker.core.replication.replica import Follower, LeaderState
from wrackline.broker.model.batches.batch import BatchHeader
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import (
    NO_EPOCH,
    NO_LEADER,
    FlushMode,
    NodeId,
    QuorumState,
    TopicPartition,
)
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.world.disk_log import SimLog, Stored
from wrackline.simulator.world.nodes import WorldOptions


class TracedLog(SimLog):
    """The log that a trace shows to be on a disk: headers, no records."""

    def wrote(self, base: int, last: int, epoch: int, crc: int) -> None:
        """A batch, at the log's end."""
        delta = last - base
        header = BatchHeader(base, 0, epoch, 2, crc, 0, delta, -1, -1, -1, -1, -1, delta + 1)
        self.batches.append(Stored(header, b""))
        self.leo = last + 1
        self.ends.append(self.leo)


@dataclass
class TracedConfig:
    flush_mode: FlushMode


@dataclass
class TracedContext:
    incarnation: UUID
    config: TracedConfig


@dataclass
class Offsets:
    """The offsets of ``PartitionLog``, from a trace."""

    log_start: int = 0
    leo: int = 0
    flushed: int = 0


@dataclass(eq=False)
class TracedReplica:
    """The part of ``Replica`` that a trace shows."""

    ctx: TracedContext
    tp: TopicPartition
    topic_id: UUID
    log: Offsets
    high_watermark: int = 0
    leader_id: NodeId = NO_LEADER
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    replicas: tuple[NodeId, ...] = ()
    min_isr: int = 1
    leader: LeaderState | None = None
    failed: bool = False
    isr: tuple[NodeId, ...] = ()
    """By the metadata that its role comes from."""

    @property
    def leading(self) -> LeaderState:
        assert self.leader is not None
        return self.leader

    def leads(self) -> None:
        """Makes the replica the leader from here on, or in another epoch."""
        committed = frozenset(self.isr)
        former = self.leader
        self.leader = LeaderState(committed, maximal=committed, leso=self.log.leo)
        if former is not None:
            self.leader.followers = former.followers

    def follower(self, node: NodeId) -> Follower:
        leader = self.leader
        assert leader is not None
        return leader.followers.setdefault(node, Follower())


@dataclass
class TracedBroker:
    """The part of ``Broker`` that a trace shows: one life of a process."""

    node: NodeId
    ctx: TracedContext
    broker_epoch: int = NO_EPOCH
    replicas: dict[TopicPartition, TracedReplica] = field(default_factory=dict)
    image: ClusterImage = field(default_factory=ClusterImage)
    """Empty: of the metadata a broker tells only what it does with them."""

    def replica(self, tp: TopicPartition) -> TracedReplica | None:
        return self.replicas.get(tp)


@dataclass
class TracedDisk:
    logs: dict[TopicPartition, SimLog] = field(default_factory=dict)


@dataclass
class TracedServer:
    """The part of ``SimServer`` that a trace shows. ``core`` is None before the first line of a life and
    after its last."""

    core: TracedBroker | None = None
    disk: TracedDisk = field(default_factory=TracedDisk)
    incarnation: int = 0
    """How many lives its process has had."""
    paused: bool = False
    """No trace tells: a process that is paused does nothing, and writes nothing."""

    @property
    def up(self) -> bool:
        return self.core is not None


@dataclass
class MetadataOffsets:
    """The offsets of ``MetadataLog``, as far as a trace tells."""

    leo: int
    high_watermark: int = 0


@dataclass
class TracedVoter:
    """The part of ``Voter`` that a trace shows: the role that it came to last."""

    role: RaftRole
    state: QuorumState
    log: MetadataOffsets

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leads(self) -> bool:
        return self.role is RaftRole.LEADER

    @property
    def leadership(self) -> object | None:
        """A leader's; of another role no trace tells that it is there still."""
        return self if self.leads else None


@dataclass
class TracedController:
    """The part of ``Controller`` and its server that traces show: what all controllers have committed, as
    far as any has told."""

    committed: ClusterImage
    disk: TracedDisk = field(default_factory=TracedDisk)
    raft: TracedVoter | None = None
    """None: it has told of no role in this life."""
    incarnation: str = ""
    """Of its life."""

    @property
    def core(self) -> TracedController:
        return self


@dataclass
class TracedWorld:
    """The part of ``World`` that traces show."""

    options: WorldOptions
    brokers: dict[NodeId, TracedServer] = field(default_factory=dict)
    controllers: dict[NodeId, TracedController] = field(default_factory=dict)
