"""The outcome of one step for the invariants, and flags of what it touched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.invariants.observed.partition import Mark, ObservedPartition
from wrackline.simulator.world.nodes import StepRecord

REPLICAS, CHANGES, BROKERS, ANSWERS, DISKS, QUORUM, COMMITTED, GROWN, ACKS = (1 << n for n in range(9))
SNAPSHOTS, METADATA_APPENDS, APPENDS, CUTS, DELETES = (1 << n for n in range(9, 14))
"""What a step can touch: each invariant says which of it concerns it, and is left alone by all other
steps."""
PARTITIONS = DISKS | BROKERS | CHANGES | REPLICAS
"""Whatever makes partitions ``concerned``."""


class Before(NamedTuple):
    """A replica as it was after the last step that touched it."""

    life: UUID
    topic_id: UUID
    leads: bool
    leader_epoch: int
    partition_epoch: int
    high_watermark: int
    isr: frozenset[NodeId]
    leo: int
    flushed: int


class Change(NamedTuple):
    """One partition's registration, as committed, before and after a step."""

    before: PartitionImage | None
    after: PartitionImage
    records: int
    """Partition records committed in this step; 0 when the trace does not tell."""


@dataclass(slots=True)
class ObservedStep:
    """The outcome of one step."""

    step: StepRecord
    replicas: list[tuple[Replica, Before | None]] = field(default_factory=list)
    """The replicas on the step's node that it touched, each with its state before."""
    changes: list[Change] = field(default_factory=list)
    registered: list[tuple[BrokerImage | None, BrokerImage]] = field(default_factory=list)
    brokers_changed: bool = False
    grown: list[ObservedPartition] = field(default_factory=list)
    """Partitions of which more is committed than before."""
    acks: list[tuple[TopicPartition, int, Mark | None, int]] = field(default_factory=list)
    """(partition, acks, what the leader's log has there, base offset) of each success sent."""
    answers: list[tuple[Request, Response, int]] = field(default_factory=list)
    """(request, response, committed end of metadata when the request was received) of each reply to what
    ``observer.REQUESTS`` names, but to a ProduceRequest."""
    logs: int = 0
    """The flags of what was done to logs of this node: METADATA_APPENDS (at a broker), APPENDS, CUTS,
    DELETES."""
    quorum: bool = False
    """The voter of this step is not as it was after its last one, has cut its log or answered to a vote."""
    disks: bool = False
    """A disk was changed from outside."""
    voter: Controller | None = None
    """With ``quorum``, the controller of this step. Nothing can be said of a quorum one of whose voters has
    lost its disk or got an old one back."""
    committed: bool = False
    """More metadata is committed than before."""
    snapshots: bool = False
    """A snapshot was written, dropped or loaded, or the start of the metadata log has moved."""
    concerned: list[tuple[PartitionImage, ObservedPartition]] | None = None
    """Partitions of which a log, the registration or the committed end is another than before. None: nobody
    has asked for them yet."""

    @property
    def node(self) -> NodeId:
        return self.step.node

    @property
    def touches(self) -> int:
        """Flags that say what there is to look at; 0 when there is nothing."""
        result = self.logs | (QUORUM if self.quorum else 0)
        if self.replicas:
            result |= REPLICAS | (GROWN if self.grown else 0)
        if self.changes:
            result |= CHANGES
        if self.brokers_changed:
            result |= BROKERS
        if self.answers:
            result |= ANSWERS
        if self.acks:
            result |= ACKS
        if self.disks:
            result |= DISKS
        if self.committed:
            result |= COMMITTED
        if self.snapshots:
            result |= SNAPSHOTS
        return result
