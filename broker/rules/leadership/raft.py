"""The controller quorum's decisions (docs/protocol.md 2.12; KIP-595, KIP-996): who gets a vote, what is
committed, when a leader has to go. Majorities are of the voters, the node itself among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import Enum
from uuid import UUID

from wrackline.broker.model.types import NO_EPOCH, NO_LEADER, NodeId, QuorumState
from wrackline.broker.model.values import dataclass


class RaftRole(Enum):
    UNATTACHED = "unattached"
    """Knows an epoch and no leader of it."""
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"
    """Asks whether it could win, before it disturbs anybody with a new epoch (KIP-996)."""
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"
    """Led this epoch and never will again in it."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log: the epoch of its last record, and the offset after it."""

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Ballot:
    """A candidate's ballot."""

    candidate: NodeId
    directory: UUID
    epoch: int
    end: LogEnd
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class Voter:
    """The asked voter's knowledge when it decides. Its epoch is not below the ballot's."""

    role: RaftRole
    state: QuorumState
    end: LogEnd
    has_fetched: bool = False
    """As a follower: from the leader it follows, since it began to."""


class RaftRules:
    """Every profile but zk08 has these."""

    # --- elections -----------------------------------------------------------------------------------------

    def up_to_date(self, candidate: LogEnd, own: LogEnd) -> bool:
        """docs/protocol.md 2.12.2: the later last epoch wins, then the longer log. Leader completeness rests
        on it."""
        return (candidate.epoch, candidate.offset) >= (own.epoch, own.offset)

    def grants(self, ballot: Ballot, voter: Voter) -> bool:
        if ballot.epoch != voter.state.epoch or not self.up_to_date(ballot.end, voter.end):
            return False
        return self.grants_pre_vote(voter) if ballot.pre_vote else self.grants_vote(ballot, voter)

    def grants_vote(self, ballot: Ballot, voter: Voter) -> bool:
        """One vote per epoch, and none once its leader is known (docs/protocol.md 2.12.2)."""
        state = voter.state
        if state.voted_for != NO_LEADER:
            return (state.voted_for, state.voted_directory) == (ballot.candidate, ballot.directory)
        return state.leader_id == NO_LEADER

    def grants_pre_vote(self, voter: Voter) -> bool:
        """Refuses a pre-vote while there is a leader that answers: a node that came back must not disturb it
        (KIP-996)."""
        if voter.role is RaftRole.LEADER:
            return False
        return not (voter.role is RaftRole.FOLLOWER and voter.has_fetched)

    def is_majority(self, votes: int, voters: int) -> bool:
        return votes > voters // 2

    # --- what must outlive the process ----------------------------------------------------------------------

    def role_at_start(self, state: QuorumState, node_id: NodeId) -> RaftRole:
        """A leader that restarts may lack records it had acknowledged: it has resigned
        (docs/protocol.md 2.12.6, KAFKA-10527)."""
        if state.leader_id == node_id:
            return RaftRole.RESIGNED
        return RaftRole.FOLLOWER if state.leader_id != NO_LEADER else RaftRole.UNATTACHED

    def held(self, leo: int, flushed: int) -> int:
        """Returns up to where a voter may say that it has the log: only what survives a power cut
        (KAFKA-10533)."""
        return min(leo, flushed)

    # --- what is committed ----------------------------------------------------------------------------------

    def majority_end(self, ends: Collection[int]) -> int:
        """The largest offset that a majority of the voters has reached; ``ends``: of every voter."""
        return sorted(ends, reverse=True)[len(ends) // 2]

    def may_commit(self, end: int, epoch_start: int) -> bool:
        """Records of former epochs are committed only under one of the own
        (docs/protocol.md 2.12.5; figure 8 of the Raft paper)."""
        return end > epoch_start

    # --- a leader without followers -------------------------------------------------------------------------

    def lost_quorum(self, silences_ms: Sequence[float], window_ms: float) -> bool:
        """``silences_ms``: since the last fetch of each other voter. True: nothing can be committed, so the
        leader resigns, and the brokers look for another (docs/protocol.md 2.12.6, KAFKA-15489)."""
        fetching = 1 + sum(1 for silence_ms in silences_ms if silence_ms < window_ms)
        return not self.is_majority(fetching, len(silences_ms) + 1)


def forgotten(state: QuorumState) -> QuorumState:
    """A state without its vote."""
    return replace(state, voted_for=NO_LEADER, voted_directory=UUID(int=0))


NOTHING_KNOWN = QuorumState(NO_EPOCH)
