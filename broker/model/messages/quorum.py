"""Messages between the voters of the controller quorum beside fetches (docs/protocol.md 2.12).

Part of the unions of `wrackline.broker.model.messages.requests`.
"""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class VoteRequest:
    cluster_id: str
    voter_id: NodeId
    epoch: int
    candidate_id: NodeId
    candidate_directory: UUID
    last_epoch: int
    """Of the last record in the candidate's log."""
    last_offset: int
    """The end of it, exclusive."""
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class VoteResponse:
    error: ErrorCode
    epoch: int = -1
    """The answering voter's; with ``leader_id``, -1 when unknown, what it knows of the quorum."""
    leader_id: NodeId = -1
    granted: bool = False


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest:
    cluster_id: str
    leader_id: NodeId
    epoch: int


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest:
    cluster_id: str
    leader_id: NodeId
    epoch: int
    successors: tuple[NodeId, ...] = ()
    """The one with the longest log first."""


@dataclass(frozen=True, slots=True)
class QuorumEpochResponse:
    """Answers both."""

    error: ErrorCode
    epoch: int = -1
    leader_id: NodeId = -1
