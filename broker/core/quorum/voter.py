"""One voter of the controller quorum: pull-based Raft (docs/protocol.md 2.12; KIP-595, KIP-996).

It holds the metadata log and says what of it is committed; what the records mean is the controller's
business. After each event the controller takes ``committed`` and looks whether it ``leads``. A quorum of one
goes the same way: it elects itself at start and commits what is flushed.

Methods return the effects, in order. What must be on disk before an answer leaves comes before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.context import RAFT
from wrackline.broker.core.quorum.follower import RaftFollower
from wrackline.broker.core.quorum.leader import FETCH_TIMERS, Leadership, not_leader
from wrackline.broker.core.quorum.roles import CLOCK, PULSE, RETRY
from wrackline.broker.core.quorum.votes import Tally, answer_vote, refuse
from wrackline.broker.model.effects import Effect, Reply, Trace
from wrackline.broker.model.events import Boot
from wrackline.broker.model.messages.admin import DescribeQuorumResponse
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from wrackline.broker.model.messages.requests import FetchRequest, Response
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.model.metadata.records import LeaderChangeRecord, MetadataRecord
from wrackline.broker.model.types import METADATA, NO_LEADER, NodeId, QuorumState
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.raft import LogEnd, RaftRole, Voter

RAFT_TIMERS = (RAFT, FETCH_TIMERS)
"""What the keys of the quorum's timers begin with."""

RaftRequest = (
    VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest | FetchRequest | FetchSnapshotRequest
)


class Raft(RaftFollower):
    """A voter of the quorum: its actions in each role, and its answers."""

    # --- events --------------------------------------------------------------------------------------------

    def boot(self, boot: Boot, now_ms: float) -> list[Effect]:
        """Raises ValueError when what is on disk cannot be used."""
        ctx = self._ctx
        out = ctx.begin(now_ms)
        ctx.chance = type(ctx.chance)(boot.incarnation_id, ctx.me)
        self.loaded = self.log.restore(boot.logs.get(METADATA), boot.metadata, boot.snapshots, now_ms, out)
        self._restore_state(boot)
        role = self._rules.role_at_start(self.state, ctx.me)
        if not ctx.others and role is not RaftRole.LEADER:
            self._stand()
        elif role is RaftRole.LEADER:
            self._lead()
        elif role is RaftRole.FOLLOWER:
            self._follow(self.state.leader_id, self.epoch)
        else:
            self._become(role)
            self._wait(ctx.election_timeout_ms(), self._ask_around)
        return out

    def _restore_state(self, boot: Boot) -> None:
        result = boot.quorum_state
        nobody = UUID(int=0)
        named = result is not None and nobody not in (result.directory_id, boot.directory_id)
        if result is not None and named and result.directory_id != boot.directory_id:
            raise ValueError(
                f"the quorum state is of directory {result.directory_id}, this one is {boot.directory_id}: "
                "a vote of another disk is worth nothing here"
            )
        self._written = result
        self.state = result or QuorumState(self.log.latest_epoch)
        if self.state.epoch < self.log.latest_epoch:
            self.state = QuorumState(self.log.latest_epoch)
        self.state = replace(self.state, directory_id=boot.directory_id)

    def request(self, request_id: int, request: RaftRequest, now_ms: float) -> list[Effect]:
        out = self._ctx.begin(now_ms)
        response: Response
        match request:
            case FetchRequest():
                if self.leadership is None:
                    out.append(Reply(request_id, not_leader(request, self.hint)))
                else:
                    self.leadership.note(request)
                    self._advance()
                    self.leadership.fetch(request_id, request)
                return out
            case VoteRequest():
                response = self._vote(request)
            case BeginQuorumEpochRequest():
                response = self._begins(request)
            case EndQuorumEpochRequest():
                response = self._ends(request)
            case FetchSnapshotRequest():
                response = self._answer_snapshot(request)
        out.append(Reply(request_id, response))
        return out

    def describe(self, now_ms: float) -> DescribeQuorumResponse:
        """Describes the quorum, as a leader only."""
        assert self.leadership is not None, "only a leader knows"
        self._ctx.begin(now_ms)
        return self.leadership.describe(self.state.directory_id)

    def cancelled(self, request_id: int, now_ms: float) -> list[Effect]:
        out = self._ctx.begin(now_ms)
        if self.leadership is not None:
            self.leadership.forget(request_id)
        return out

    def is_mine(self, correlation: int) -> bool:
        return self._ctx.is_mine(correlation)

    def answered(self, correlation: int, response: Response | None, now_ms: float) -> list[Effect]:
        out = self._ctx.begin(now_ms)
        self._ctx.answered(correlation, response)
        return out

    def timer(self, key: str, now_ms: float) -> list[Effect]:
        out = self._ctx.begin(now_ms)
        if key in (CLOCK, RETRY, PULSE):
            self._ctx.fired(key)
        elif self.leadership is not None:
            self.leadership.timer(key)
        return out

    def flushed(self, upto: int, now_ms: float) -> list[Effect]:
        out = self._ctx.begin(now_ms)
        if self.log.flushed(upto, out):
            if self.leadership is not None:
                self._advance()
                self.leadership.wake()
            elif self.role is RaftRole.FOLLOWER:
                self._fetch()
        return out

    def append(self, records: Sequence[MetadataRecord], now_ms: float) -> list[Effect]:
        """Appends records, as the leader only. The records are committed, or lost, later."""
        assert self.leadership is not None, "only a leader appends"
        out = self._ctx.begin(now_ms)
        self._append(records)
        return out

    def leave(self, now_ms: float) -> list[Effect]:
        """A controlled end: a leader tells the others, so that they need not wait for it."""
        out = self._ctx.begin(now_ms)
        if self.leads:
            self._resign("asked to stop")
        self._turn += 1
        self._ctx.cancel_timer(CLOCK)
        return out

    # --- elections (docs/protocol.md 2.12.1, 2.12.2) -----------------------------------------------------

    @property
    def _end(self) -> LogEnd:
        return LogEnd(self.log.last_epoch, self.log.leo)

    def _ask_around(self) -> None:
        """Would I win? Nothing is written and no epoch begins (KIP-996)."""
        self._become(RaftRole.PROSPECTIVE)
        self._poll(pre_vote=True)

    def _stand(self) -> None:
        me = self._ctx.me
        directory = self.state.directory_id
        self._remember(QuorumState(self.epoch + 1, NO_LEADER, me, directory, directory))
        self._become(RaftRole.CANDIDATE)
        self._poll(pre_vote=False)

    def _poll(self, *, pre_vote: bool) -> None:
        ctx, turn = self._ctx, self._turn
        tally = Tally(ctx.voters, ctx.me, self._rules)
        if tally.won:
            self._won(pre_vote)
            return
        self._wait(ctx.election_timeout_ms(), self._ask_around)

        def ask(voter: NodeId) -> None:
            request = VoteRequest(
                cluster_id=ctx.config.cluster_id,
                voter_id=voter,
                epoch=self.epoch,
                candidate_id=ctx.me,
                candidate_directory=self.state.directory_id,
                last_epoch=self._end.epoch,
                last_offset=self._end.offset,
                pre_vote=pre_vote,
            )
            ctx.ask(
                voter,
                request,
                ctx.config.quorum_request_timeout_ms,
                lambda response: answered(voter, response),
            )

        def answered(voter: NodeId, response: Response | None) -> None:
            if not isinstance(response, VoteResponse):
                return
            # Who grants a pre-vote has given its leader up, even when it still names it.
            if not response.granted and self._learn(response.leader_id, response.epoch):
                return
            if turn != self._turn:
                return
            tally.count(voter, granted=response.granted)
            if tally.won:
                self._won(pre_vote)
            elif tally.lost and not pre_vote:
                self._wait(ctx.chance.below(ctx.config.quorum_election_backoff_max_ms), self._ask_around)

        for voter in ctx.others:
            ask(voter)

    def _won(self, pre_vote: bool) -> None:
        if pre_vote:
            self._stand()
        else:
            self._lead()

    def _vote(self, request: VoteRequest) -> VoteResponse:
        error = refuse(self._ctx, request.cluster_id, request.candidate_id, request.voter_id)
        if error is NO_ERROR and request.epoch < self.epoch:
            error = ErrorCode.fenced_leader_epoch
        if error is not NO_ERROR:
            return VoteResponse(error, self.epoch, self.leader_id)
        if request.epoch > self.epoch:
            self._detach(request.epoch)
        voter = Voter(self.role, self.state, self._end, self._has_fetched)
        granted = answer_vote(self._rules, request, voter)
        fields = {"candidate": request.candidate_id, "epoch": request.epoch, "granted": granted}
        self._ctx.out.append(Trace("raft_vote", {**fields, "pre_vote": request.pre_vote}))
        if granted and not request.pre_vote and self.state.voted_for != request.candidate_id:
            voted = replace(
                self.state, voted_for=request.candidate_id, voted_directory=request.candidate_directory
            )
            self._remember(voted)
            self._become(RaftRole.UNATTACHED)
            self._wait(self._ctx.election_timeout_ms(), self._ask_around)
        return VoteResponse(NO_ERROR, self.epoch, self.leader_id, granted)

    # --- leading (docs/protocol.md 2.12.3, 2.12.5, 2.12.6) -----------------------------------------------

    def _lead(self) -> None:
        ctx = self._ctx
        ctx.cancel_timer(CLOCK)
        self._remember(replace(self.state, leader_id=ctx.me))
        self.leadership = Leadership(ctx, self._rules, self.log, self.epoch)
        self._become(RaftRole.LEADER)
        self._append([LeaderChangeRecord(ctx.me, ctx.voters)])
        if ctx.others:
            self._pulse()

    def _append(self, records: Sequence[MetadataRecord]) -> None:
        self.log.append(records, self.epoch, self._ctx.now_ms, self._ctx.out)
        self._advance()
        if self.leadership is not None:
            self.leadership.wake()

    def _advance(self) -> None:
        assert self.leadership is not None
        entries = self.leadership.commit()
        if entries:
            self._committed(entries)
            self.leadership.wake()

    def _pulse(self) -> None:
        """Tell those who do not know yet; look whether a majority still asks."""
        leadership, ctx, turn = self.leadership, self._ctx, self._turn
        assert leadership is not None
        if leadership.lost_quorum():
            self._resign("no majority fetches from this leader")
            return
        request = BeginQuorumEpochRequest(ctx.config.cluster_id, ctx.me, self.epoch)

        def answered(voter: NodeId, response: Response | None) -> None:
            if not isinstance(response, QuorumEpochResponse) or self._learn(
                response.leader_id, response.epoch
            ):
                return
            if turn == self._turn and response.error is NO_ERROR:
                leadership.voters[voter].knows = True

        for voter, progress in leadership.voters.items():
            if not progress.knows:
                ctx.ask(
                    voter,
                    request,
                    ctx.config.quorum_request_timeout_ms,
                    lambda response, voter=voter: answered(voter, response),  # type: ignore[misc]
                )
        ctx.wait(PULSE, ctx.config.quorum_fetch_timeout_ms / 4, self._pulse)

    def _resign(self, why: str) -> None:
        ctx, leadership = self._ctx, self.leadership
        assert leadership is not None
        ctx.out.append(Trace("raft_resign", {"epoch": self.epoch, "why": why}))
        successors = leadership.successors()
        self._become(RaftRole.RESIGNED)
        self._wait(ctx.election_timeout_ms(), self._ask_around)
        request = EndQuorumEpochRequest(ctx.config.cluster_id, ctx.me, self.epoch, successors)

        def answered(response: Response | None) -> None:
            self._ending -= 1
            if isinstance(response, QuorumEpochResponse):
                self._learn(response.leader_id, response.epoch)

        for voter in ctx.others:
            self._ending += 1
            ctx.ask(voter, request, ctx.config.quorum_request_timeout_ms, answered)

    # --- following (docs/protocol.md 2.12.4) -------------------------------------------------------------

    def _begins(self, request: BeginQuorumEpochRequest) -> QuorumEpochResponse:
        error = refuse(self._ctx, request.cluster_id, request.leader_id)
        if error is NO_ERROR and request.epoch < self.epoch:
            error = ErrorCode.fenced_leader_epoch
        if error is NO_ERROR:
            self._learn(request.leader_id, request.epoch)
            if self.state.leader_id != request.leader_id:
                error = ErrorCode.invalid_request
        return QuorumEpochResponse(error, self.epoch, self.leader_id)

    def _ends(self, request: EndQuorumEpochRequest) -> QuorumEpochResponse:
        error = refuse(self._ctx, request.cluster_id, request.leader_id)
        if error is NO_ERROR and request.epoch < self.epoch:
            error = ErrorCode.fenced_leader_epoch
        if error is not NO_ERROR:
            return QuorumEpochResponse(error, self.epoch, self.leader_id)
        if request.epoch > self.epoch:
            self._detach(request.epoch)
        following = self.role is RaftRole.FOLLOWER and self.state.leader_id == request.leader_id
        if following or self.role is RaftRole.UNATTACHED:
            self._has_fetched = False
            first = bool(request.successors) and request.successors[0] == self._ctx.me
            backoff_ms = self._ctx.chance.below(self._ctx.config.quorum_election_backoff_max_ms)
            self._wait(0.0 if first else backoff_ms, self._ask_around)
        return QuorumEpochResponse(NO_ERROR, self.epoch, self.leader_id)
