"""Votes: counting those one gets, answering those one is asked for (docs/protocol.md 2.12.1, 2.12.2)."""

from __future__ import annotations

from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.context import RaftContext
from wrackline.broker.model.messages.quorum import VoteRequest
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.leadership.raft import Ballot, LogEnd, RaftRules, Voter


class Tally:
    def __init__(self, voters: Sequence[NodeId], me: NodeId, rules: RaftRules) -> None:
        self._voters = len(voters)
        self._rules = rules
        self._granted = {me}
        self._refused: set[NodeId] = set()

    def count(self, voter: NodeId, *, granted: bool) -> None:
        (self._granted if granted else self._refused).add(voter)

    @property
    def won(self) -> bool:
        return self._rules.is_majority(len(self._granted), self._voters)

    @property
    def lost(self) -> bool:
        """Even if everyone else says yes."""
        return not self._rules.is_majority(self._voters - len(self._refused), self._voters)


def refuse(ctx: RaftContext, cluster_id: str, sender: NodeId, receiver: NodeId | None = None) -> ErrorCode:
    """Returns what makes a request of the quorum void, whatever it asks."""
    if cluster_id != ctx.config.cluster_id:
        return ErrorCode.inconsistent_cluster_id
    if sender not in ctx.others:
        return ErrorCode.inconsistent_voter_set
    if receiver not in (None, ctx.me):
        return ErrorCode.invalid_request
    return ErrorCode.none


def answer_vote(rules: RaftRules, request: VoteRequest, voter: Voter) -> bool:
    ballot = Ballot(
        candidate=request.candidate_id,
        directory=request.candidate_directory,
        epoch=request.epoch,
        end=LogEnd(request.last_epoch, request.last_offset),
        pre_vote=request.pre_vote,
    )
    return rules.grants(ballot, voter)
