"""One voter decides the golden cases of docs/protocol.md 2.12, and the defects get them wrong (B46)."""

from __future__ import annotations

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.core.quorum.voter import Hand
from wrackline.broker.core.quorum.voter import Raft
from wrackline.broker.model.events import Boot
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from wrackline.broker.model.messages.requests import FetchPartition, FetchRequest
from wrackline.broker.model.types import METADATA, QuorumState
from wrackline.broker.rules.leadership.raft import LogEnd, RaftRole, RaftRules


def test_a_vote_is_given_once_in_an_epoch_and_is_on_disk_before_the_answer() -> None:
    voter = Hand()
    assert voter.vote_of(2, 4)
    assert voter.state is not None
    assert (voter.state.epoch, voter.state.voted_for) == (4, 2)
    assert voter.vote_of(2, 4), "the same candidate asks again: its answer was lost"
    assert not voter.vote_of(3, 4)
    assert voter.vote_of(3, 5)


@pytest.mark.parametrize(("defects", "twice"), [((), False), (("raft_forget_vote",), True)])
def test_a_vote_outlives_a_restart(defects: tuple[str, ...], twice: bool) -> None:
    voter = Hand(defects=defects)
    assert voter.vote_of(2, 4)
    voter.boot()
    assert voter.vote_of(3, 4) is twice


def test_an_older_epoch_is_fenced_and_told_the_newer() -> None:
    voter = Hand()
    voter.ask(BeginQuorumEpochRequest("c", 3, 4))
    said = voter.ask(VoteRequest("c", 1, 3, 2, voter.state.directory_id, 9, 9))  # type: ignore[union-attr]
    assert said == VoteResponse(ErrorCode.fenced_leader_epoch, 4, 3)
    assert voter.ask(BeginQuorumEpochRequest("c", 2, 3)) == QuorumEpochResponse(
        ErrorCode.fenced_leader_epoch, 4, 3
    )


def test_vote_requests_of_another_cluster_or_a_non_voter_are_refused() -> None:
    voter = Hand()
    nobody = VoteRequest("other", 1, 9, 2, voter.raft.state.directory_id, 9, 9)
    said = voter.ask(nobody)
    assert isinstance(said, VoteResponse)
    assert said.error is ErrorCode.inconsistent_cluster_id
    stranger = VoteRequest("c", 1, 9, 77, voter.raft.state.directory_id, 9, 9)
    said = voter.ask(stranger)
    assert isinstance(said, VoteResponse)
    assert said.error is ErrorCode.inconsistent_voter_set
    assert voter.raft.epoch == -1


def test_a_pre_vote_writes_nothing_and_is_refused_while_the_leader_answers() -> None:
    """KIP-996."""
    voter = Hand()
    before = voter.state
    assert voter.vote_of(2, -1, pre=True)
    assert voter.vote_of(3, -1, pre=True), "a pre-vote binds nobody"
    assert voter.state == before
    leader = Hand(3)
    leader.win()
    assert not leader.vote_of(2, leader.raft.epoch, log=(9, 9), pre=True)


def test_a_leader_that_restarts_has_resigned_from_its_epoch() -> None:
    """KAFKA-10527."""
    voter = Hand()
    voter.win()
    epoch = voter.raft.epoch
    voter.boot()
    assert voter.raft.role is RaftRole.RESIGNED
    assert voter.raft.leader_id == -1
    voter.win()
    assert voter.raft.epoch > epoch


@pytest.mark.parametrize(("defects", "committed"), [((), 0), (("raft_commit_old_epoch",), 3)])
def test_figure_8_a_majority_for_a_record_of_a_former_epoch_commits_nothing(
    defects: tuple[str, ...], committed: int
) -> None:
    """Voter 1 wrote offset 2 in epoch 2 and reached voter 2 alone. Voter 5, elected in epoch 3 without it,
    has a record of epoch 3 there. Voter 1 leads again, in epoch 4, and voter 3 takes offset 2 from it: three
    of five have it now. But voter 5 can still win and cut it off."""
    voter = Hand(5, log=[1, 1, 2], state=QuorumState(3), defects=defects)
    voter.win()
    assert voter.raft.epoch == 4
    voter.fetch(2, 3, 2)
    voter.fetch(3, 2, 1)
    assert voter.raft.log.high_watermark == max(0, committed - 1)
    voter.fetch(3, 3, 2)
    assert voter.raft.log.high_watermark == committed
    # Voter 2 and 3 would still vote for voter 5, whose last epoch is 3.
    assert RaftRules().up_to_date(LogEnd(3, 3), LogEnd(2, 3))
    voter.flush()
    voter.fetch(2, 4, 4)
    voter.fetch(3, 4, 4)
    assert voter.raft.log.high_watermark == 4, "with the first record of the own epoch everything before it"


@pytest.mark.parametrize(("defects", "committed"), [((), False), (("raft_no_fsync",), True)])
def test_a_leader_counts_itself_only_for_what_is_on_its_disk(
    defects: tuple[str, ...], committed: bool
) -> None:
    """KAFKA-10533."""
    voter = Hand(1, defects=defects)
    assert (voter.raft.log.high_watermark == 1) is committed
    voter.flush()
    assert voter.raft.log.high_watermark == 1


def test_nobody_is_shown_more_than_the_leader_has_flushed() -> None:
    leader = Hand(3)
    leader.win()
    assert leader.fetch(2, 0, -1) is None, "waits"
    leader.flush()
    assert len(leader.replies) >= 1


def test_a_leader_that_leaves_tells_its_successor_which_stands_at_once() -> None:
    voter = Hand(3)
    voter.ask(BeginQuorumEpochRequest("c", 3, 4))
    voter.ask(EndQuorumEpochRequest("c", 3, 4, (1, 2)))
    voter.fire()
    assert voter.raft.role is RaftRole.PROSPECTIVE


def test_the_quorum_state_of_another_disk_is_refused() -> None:
    voter = Hand(3)
    boot = Boot(
        UUID(int=1),
        {},
        quorum_state=QuorumState(4, voted_for=2, directory_id=UUID(int=7)),
        directory_id=UUID(int=8),
    )
    with pytest.raises(ValueError, match="of another disk"):
        Raft(voter.config, voter.rules).boot(boot, 0.0)


def test_a_leader_tells_how_far_everyone_is_and_since_when() -> None:
    """DescribeQuorum: a voter that was never heard of, one that lags, an observer that is let go when it is
    silent."""
    hand = Hand(log=(0, 0, 0))
    hand.win()
    hand.flush()
    end = hand.raft.log.leo
    told = hand.raft.describe(hand.now_ms)
    assert [(each.node_id, each.leo) for each in told.voters] == [(1, end), (2, -1), (3, -1)]
    assert told.observers == ()
    hand.fetch(2, end, hand.raft.log.last_epoch)
    hand.fetch(3, 1, 0)
    hand.ask(FetchRequest(0, 1, 1 << 20, (FetchPartition(METADATA, 2, 1 << 20, -1, 0),), replica_id=7))
    hand.now_ms += 500
    told = hand.raft.describe(hand.now_ms)
    assert told.leader_id == 1
    assert told.high_watermark == end, "1 and 2 are a majority"
    _, level, lags = told.voters
    assert (level.leo, level.fetched_ago_ms, level.caught_up_ago_ms) == (end, 500, 500)
    assert (lags.leo, lags.fetched_ago_ms, lags.caught_up_ago_ms) == (1, 500, None)
    assert [(each.node_id, each.leo) for each in told.observers] == [(7, 2)]
    hand.fetch(3, end, hand.raft.log.last_epoch)
    hand.now_ms += 300_001
    told = hand.raft.describe(hand.now_ms)
    assert told.voters[2].caught_up_ago_ms == 300_001
    assert told.observers == ()
