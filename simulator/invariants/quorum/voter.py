"""One voter as it was after its last step, and what the protocol has it do next (docs/protocol.md 2.12).

Nothing here asks the broker's rules: they may be what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.leader import Leadership
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from wrackline.broker.model.messages.requests import FetchRequest, Request
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.model.types import METADATA, NO_EPOCH, NO_LEADER, NodeId, QuorumState
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.world.disk import Disk

QuorumRequest = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
WINDOW = 1.5
"""Fetch timeouts without a majority after which a leader goes (docs/protocol.md 2.12.6)."""


@dataclass(slots=True)
class Question:
    """A request to another voter that is not answered yet."""

    request: Request
    destination: NodeId
    turn: int


@dataclass(slots=True)
class Poll:
    """A fetch that waits for more, at a leader."""

    offset: int
    votes: bool
    """It is a voter's, who reads what is safe; others read what is committed."""


@dataclass(slots=True)
class Term:
    """One leadership, as those who ask the leader make it."""

    fetched_ms: dict[NodeId, float]
    """Voter -> when it last asked, on the leader's clock; at first when the leadership began."""
    fetched: set[NodeId] = field(default_factory=set)
    acknowledged: set[NodeId] = field(default_factory=set)
    """Who has answered the leader's BeginQuorumEpoch, or has asked it."""
    polls: dict[int, Poll] = field(default_factory=dict)
    """By request id."""


@dataclass(slots=True)
class Voter:
    """A voter after its last step."""

    life: int
    role: RaftRole
    state: QuorumState
    leo: int
    high_watermark: int
    turn: int = 0
    """Goes up with each change of role."""
    answers: bool = False
    """As a follower: its leader has answered a fetch in this turn, and is not given up."""
    misses: int = 0
    questions: dict[int, Question] = field(default_factory=dict)
    """By correlation."""
    granted: set[NodeId] = field(default_factory=set)
    refused: set[NodeId] = field(default_factory=set)
    """In this turn."""
    term: Term | None = None
    leadership: Leadership | None = None
    """Of a leader, both."""
    stored: QuorumState | None = None
    """On its disk."""


def last_epoch(disk: Disk) -> int | None:
    """Returns the epoch of the last record on the disk, be it in a snapshot; None: it does not tell."""
    log = disk.logs.get(METADATA)
    if log is not None and log.batches:
        return log.batches[-1].header.leader_epoch
    end = 0 if log is None else log.leo
    if end == 0:
        return NO_EPOCH
    return next((one.epoch for one in disk.snapshots if one.end_offset == end), None)


def error_of(
    request: QuorumRequest, voter: Voter, me: NodeId, others: tuple[NodeId, ...], cluster_id: str
) -> ErrorCode:
    """Returns the error that a voter owes to a request before it looks at what is asked."""
    sender = request.candidate_id if isinstance(request, VoteRequest) else request.leader_id
    if request.cluster_id != cluster_id:
        return ErrorCode.inconsistent_cluster_id
    if sender not in others:
        return ErrorCode.inconsistent_voter_set
    if isinstance(request, VoteRequest) and request.voter_id != me:
        return ErrorCode.invalid_request
    return ErrorCode.fenced_leader_epoch if request.epoch < voter.state.epoch else ErrorCode.none


def grants(request: VoteRequest, voter: Voter, end: tuple[int, int]) -> bool:
    """Tells whether a voter owes its vote. ``end``: of its log, (epoch of the last record, offset)."""
    if (request.last_epoch, request.last_offset) < end:
        return False
    later, state = request.epoch > voter.state.epoch, voter.state
    if request.pre_vote:
        if later:
            return True
        follows = voter.role is RaftRole.FOLLOWER and voter.answers
        return voter.role is not RaftRole.LEADER and not follows
    if later or state.voted_for == state.leader_id == NO_LEADER:
        return True
    return (state.voted_for, state.voted_directory) == (request.candidate_id, request.candidate_directory)


def is_voters(request: FetchRequest | FetchSnapshotRequest, voters: tuple[NodeId, ...]) -> bool:
    """Tells whether a voter asks: it names its directory."""
    directory: UUID | None
    if isinstance(request, FetchRequest):
        directory = request.partitions[0].directory_id
    else:
        directory = request.directory_id
    return directory is not None and request.replica_id in voters
