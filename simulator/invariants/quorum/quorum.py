"""The voters of a quorum, looked at in each of their steps: what they say, ask, answer and wait for.

``voter``  a voter tells every other one what the protocol demands, and of itself what is so; it answers as
           its state demands, looks at every answer, writes down its state before it speaks, and has a time
           set for what comes next. A leader lets nobody wait for what it has.
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.quorum.leader import FETCH_TIMERS
from wrackline.broker.core.quorum.roles import CLOCK, PULSE, RETRY
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import Reply, Send, SetTimer, Trace, WriteQuorumState
from wrackline.broker.model.events import (
    Boot,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from wrackline.broker.model.messages.requests import FetchRequest, FetchResponse, Response
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    NO_EPOCH,
    NO_LEADER,
    NodeId,
    QuorumState,
    TopicPartition,
)
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.quorum.voter import (
    WINDOW,
    Poll,
    Question,
    Term,
    Voter,
    error_of,
    grants,
    is_voters,
    last_epoch,
)
from wrackline.simulator.invariants.watchers import HAIR_MS, Scope, Watcher
from wrackline.simulator.world.nodes import SimController
from wrackline.simulator.world.world import StepRecord, World

_HANDLED = frozenset({"boot", "handle", "timer", "flushed"})
_POLLS = (RaftRole.PROSPECTIVE, RaftRole.CANDIDATE)


class VoterStep:
    """One step of a voter: what it was before, and what the step has it do and say."""

    def __init__(self, world: World, step: StepRecord, server: SimController, before: Voter) -> None:
        core = server.core
        assert core is not None
        self.step = step
        self.me = step.node
        self.before = before
        self.server = server
        self.raft = core.raft
        self.config: ControllerConfig = core.config
        self.others = tuple(node for node in world.controllers if node != step.node)
        self.now_ms = server.local_ms(step.at_ms)
        self.turn = before.turn
        self.clock_ms: float | None = None
        """In which the voter asks around, where that was set anew."""
        self.sent: list[Send] = []
        self.replies: dict[int, Response] = {}
        self.deadlines: dict[str, float] = {}
        self.writes: list[WriteQuorumState] = []
        self.spoke_first = False
        event = step.event
        self.question: Question | None = None
        """That this step's event answers."""
        if isinstance(event, (ResponseReceived, SendFailed)):
            self.question = before.questions.pop(event.correlation, None)
        for effect in step.effects:
            if isinstance(effect, Trace):
                self.turn += effect.kind == "raft_role"
            elif isinstance(effect, Send):
                if isinstance(effect.request, _QUESTIONS):
                    self.sent.append(effect)
                    before.questions[effect.correlation] = Question(
                        effect.request, effect.destination, self.turn
                    )
            elif isinstance(effect, Reply):
                self.replies[effect.request_id] = effect.response
            elif isinstance(effect, SetTimer):
                if effect.key == CLOCK:
                    self.clock_ms = effect.at_ms - self.now_ms
                else:
                    self.deadlines[effect.key] = effect.at_ms - self.now_ms
            elif isinstance(effect, WriteQuorumState):
                self.writes.append(effect)
                spoken = any(
                    isinstance(response, (VoteResponse, QuorumEpochResponse))
                    for response in self.replies.values()
                )
                self.spoke_first = self.spoke_first or bool(self.sent) or spoken

    @property
    def is_new(self) -> bool:
        """The voter has another role, or the same anew."""
        return self.turn != self.before.turn

    def receivers(self, kind: type) -> list[NodeId]:
        """Returns whom the voter has sent a request of this kind."""
        return sorted(sent.destination for sent in self.sent if isinstance(sent.request, kind))


_QUESTIONS = (
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
)
"""What voters ask each other."""


class Quorum(Watcher):
    """Looks at the steps of controllers."""

    scope = Scope.VOTERS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._voters: dict[NodeId, Voter] = {}

    def __call__(self, world: World, step: StepRecord) -> None:
        if step.kind not in _HANDLED:
            return
        server, event = world.controllers[step.node], step.event
        core, before = server.core, self._voters.pop(step.node, None)
        if step.cut or not isinstance(core, Controller) or server.disk.offline:
            return
        if isinstance(event, Boot):
            stored = event.quorum_state or QuorumState(NO_EPOCH)
            leadership = core.raft.leadership  # of a quorum of one
            end = core.log.leo if leadership is None else leadership.epoch_start
            before = Voter(server.incarnation, RaftRole.UNATTACHED, stored, end, 0)
            before.stored = event.quorum_state
        if before is None or before.life != server.incarnation:
            return
        look = VoterStep(world, step, server, before)
        if isinstance(event, StopRequested):
            if before.role is RaftRole.LEADER:
                self._resigned(look, before)
            return
        self._voters[step.node] = before
        if world.rules_of(step.node).switches.remembers_vote:
            self._look_at_state(look, before)
        for sent in look.sent:
            self._look_at_question(look, sent)
        answers = before.answers and not look.is_new
        if isinstance(event, RequestReceived):
            answers = self._look_at_answer(look, before, event, answers)
        elif isinstance(event, ResponseReceived):
            answers = self._answered(look, before, event.response, answers)
        elif isinstance(event, SendFailed):
            answers = self._answered(look, before, None, answers)
        elif isinstance(event, Boot):
            self._look_at_start(look, event)
        self._look_at_role(look, before)
        self._look_at_leader(look, before)
        self._look_at_timers(look)
        raft = look.raft
        if look.is_new:
            before.granted, before.refused = set(), set()
        before.role, before.state, before.turn, before.answers = raft.role, raft.state, look.turn, answers
        before.leo, before.high_watermark = raft.log.leo, raft.log.high_watermark

    def _find(self, look: VoterStep, text: str) -> None:
        self.find(look.step, "voter", f"controller {look.me}, {look.raft.role.value}: {text}")

    # --- what is kept, and what is stated of oneself -------------------------------------------------------

    def _look_at_state(self, look: VoterStep, before: Voter) -> None:
        stored, last = look.server.disk.quorum_state, before.stored
        for write in look.writes:
            if write.state == last:
                self._find(look, f"writes {write.state}, which is on its disk")
            last = write.state
        before.stored = last
        changed = look.raft.state != before.state and not isinstance(look.step.event, Boot)
        if (look.writes or changed) and stored != look.raft.state:
            self._find(look, f"its state is {look.raft.state}, and on its disk {stored}")
        if look.spoke_first:
            self._find(look, "it speaks before it has written down its state")

    def _look_at_question(self, look: VoterStep, sent: Send) -> None:
        """A question says what its asker is and has."""
        raft, request, disk, config = look.raft, sent.request, look.server.disk, look.config
        log, end = disk.logs.get(METADATA), last_epoch(disk)
        leo = 0 if log is None else log.leo
        if end is None:
            end = raft.log.last_epoch
        most_ms: float = config.quorum_request_timeout_ms
        expected: tuple[object, ...]
        values: tuple[object, ...]
        directory = disk.directory_id
        if isinstance(request, VoteRequest):
            values = (request.voter_id, request.candidate_id, request.epoch, request.candidate_directory)
            values += (request.last_epoch, request.last_offset, request.pre_vote, request.cluster_id)
            expected = (sent.destination, look.me, raft.epoch, directory)
            expected += (end, leo, raft.role is RaftRole.PROSPECTIVE, config.cluster_id)
            right_role = raft.role in _POLLS
        elif isinstance(request, (BeginQuorumEpochRequest, EndQuorumEpochRequest)):
            values = (request.leader_id, request.epoch, request.cluster_id)
            expected = (look.me, raft.epoch, config.cluster_id)
            begins = isinstance(request, BeginQuorumEpochRequest)
            right_role = raft.role is (RaftRole.LEADER if begins else RaftRole.RESIGNED)
        elif isinstance(request, FetchRequest):
            [part] = request.partitions
            values = (sent.destination, part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch)
            values += (part.directory_id, request.replica_id, part.log_start)
            expected = (raft.state.leader_id, raft.epoch, leo, end, directory, look.me, raft.log.log_start)
            right_role = raft.role is RaftRole.FOLLOWER
            most_ms = min(most_ms + request.max_wait_ms, config.quorum_fetch_timeout_ms)
        else:
            assert isinstance(request, FetchSnapshotRequest)
            values = (
                sent.destination,
                request.current_leader_epoch,
                request.directory_id,
                request.replica_id,
            )
            expected = (raft.state.leader_id, raft.epoch, directory, look.me)
            right_role = raft.role is RaftRole.FOLLOWER
            most_ms = min(most_ms, config.quorum_fetch_timeout_ms)
        if values != expected or not right_role or sent.timeout_ms != int(most_ms):
            self._find(look, f"asks {request} for {sent.timeout_ms} ms, and has {expected}")
        if isinstance(request, (FetchRequest, FetchSnapshotRequest)):
            asking = [
                one
                for one in look.before.questions.values()
                if one.turn == look.turn and isinstance(one.request, (FetchRequest, FetchSnapshotRequest))
            ]
            if len(asking) > 1:
                self._find(look, f"asks {request}, and has asked for what comes next already")

    # --- answers -------------------------------------------------------------------------------------------

    def _look_at_answer(self, look: VoterStep, before: Voter, event: RequestReceived, answers: bool) -> bool:
        """Returns whether the voter's leader answers still."""
        request, raft = event.request, look.raft
        response = look.replies.get(event.request_id)
        if isinstance(request, FetchSnapshotRequest):
            if isinstance(response, FetchSnapshotResponse) and request.cluster_id == look.config.cluster_id:
                self._look_at_hint(look, response.leader_id, response.leader_epoch)
            return answers
        if not isinstance(request, (VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest)):
            return answers
        error = error_of(request, before, look.me, look.others, look.config.cluster_id)
        state, right = before.state, error is NO_ERROR
        if right and isinstance(request, BeginQuorumEpochRequest):
            right = request.epoch > state.epoch or state.leader_id in (NO_LEADER, request.leader_id)
            error = NO_ERROR if right else ErrorCode.invalid_request
        if not isinstance(response, (VoteResponse, QuorumEpochResponse)) or response.error is not error:
            self._find(look, f"answers {request} with {response}; the error should be {error.name}")
            return answers
        self._look_at_hint(look, response.leader_id, response.epoch)
        if not right:
            if look.is_new:
                self._find(look, f"it was {before.role.value} before it refused {request}")
            return answers
        if isinstance(request, VoteRequest):
            self._look_at_vote(look, before, request, response)
        elif isinstance(request, BeginQuorumEpochRequest):
            now = raft.role, raft.state.leader_id, raft.epoch
            if now != (RaftRole.FOLLOWER, request.leader_id, request.epoch):
                self._find(look, f"its state is {raft.state} after {request}")
        else:
            # Within an epoch nothing of it is forgotten: neither a vote nor who leads.
            forgets = request.epoch == state.epoch and raft.state != state
            if raft.epoch != request.epoch or forgets:
                self._find(look, f"its state is {raft.state} after {request}")
            follows = before.role is RaftRole.FOLLOWER and state.leader_id == request.leader_id
            if follows or raft.role is RaftRole.UNATTACHED:
                first = request.successors[:1] == (look.me,)
                self._look_at_clock(look, 0, 0 if first else look.config.quorum_election_backoff_max_ms)
                return False
        return answers

    def _look_at_vote(self, look: VoterStep, before: Voter, request: VoteRequest, response: Response) -> None:
        raft, disk = look.raft, look.server.disk
        assert isinstance(response, VoteResponse)
        end = last_epoch(disk)
        log = disk.logs.get(METADATA)
        own = raft.log.last_epoch if end is None else end, 0 if log is None else log.leo
        granted = grants(request, before, own)
        if response.granted is not granted:
            was = f"it was {before.role.value}, {before.state}, its log ended at {own}"
            self._find(look, f"grants {request}: {response.granted}, and {was}")
        later = request.epoch > before.state.epoch
        if later and (raft.role, raft.epoch) != (RaftRole.UNATTACHED, request.epoch):
            self._find(look, f"its state is {raft.state} after {request}")
        vote = raft.state.voted_for, raft.state.voted_directory
        if granted and not request.pre_vote:
            if vote != (request.candidate_id, request.candidate_directory):
                self._find(look, f"its state is {raft.state} after it voted for {request}")
        elif not later and raft.state != before.state:
            self._find(look, f"its state is {raft.state} after {request}, which it has not voted for")

    def _look_at_hint(self, look: VoterStep, leader: NodeId, epoch: int) -> None:
        raft = look.raft
        now = (NO_LEADER if raft.role is RaftRole.RESIGNED else raft.state.leader_id), raft.state.epoch
        if (leader, epoch) != now:
            self._find(look, f"says that (leader, epoch) is {(leader, epoch)}, and knows {now}")

    def _answered(self, look: VoterStep, before: Voter, response: Response | None, answers: bool) -> bool:
        """Returns whether the voter's leader answers now."""
        question = look.question
        if question is None:
            return answers
        config = look.config
        timely = question.turn == before.turn
        if isinstance(response, VoteResponse):
            if (
                response.granted or not self._learns(look, before, response.leader_id, response.epoch)
            ) and timely:
                self._count(look, before, question, granted=response.granted)
        elif isinstance(response, QuorumEpochResponse):
            news = self._learns(look, before, response.leader_id, response.epoch)
            if not news and timely and response.error is NO_ERROR and before.term is not None:
                before.term.acknowledged.add(question.destination)
        elif not timely:
            return answers
        elif isinstance(response, FetchResponse) and response.partitions:
            result = response.partitions[0]
            leader = result.current_leader
            if leader is None or self._learns(look, before, leader.leader_id, leader.leader_epoch):
                return answers
            if leader.leader_epoch == before.state.epoch and result.error is NO_ERROR:
                before.misses = 0
                self._look_at_clock(look, config.quorum_fetch_timeout_ms)
                log = look.raft.log
                safe = min(result.high_watermark, log.leo)
                if result.diverging is None and result.snapshot is None and log.high_watermark < safe:
                    self._find(look, f"its high watermark is {log.high_watermark}, its leader's {safe}")
                return True
        elif isinstance(response, FetchSnapshotResponse):
            if self._learns(look, before, response.leader_id, response.leader_epoch):
                return answers
            if response.error is NO_ERROR and response.leader_epoch == before.state.epoch:
                self._look_at_clock(look, config.quorum_fetch_timeout_ms)
                return True
        elif response is None and isinstance(question.request, FetchRequest):
            before.misses += 1
            if answers and before.misses > 1:
                soon_ms = 2 * config.quorum_retry_backoff_ms
                self._look_at_clock(look, soon_ms, soon_ms + config.quorum_election_backoff_max_ms)
                return False
        return answers

    def _learns(self, look: VoterStep, before: Voter, leader: NodeId, epoch: int) -> bool:
        """Tells whether an answer that names a leader is news; then it must have been taken."""
        state, raft = before.state, look.raft
        follows = before.role is RaftRole.FOLLOWER or state.leader_id not in (NO_LEADER, leader)
        if epoch < state.epoch or (epoch == state.epoch and follows):
            return False
        if leader in (NO_LEADER, look.me):
            expected = RaftRole.UNATTACHED, NO_LEADER, epoch
            if epoch == state.epoch:
                return False
        elif leader in look.others:
            expected = RaftRole.FOLLOWER, leader, epoch
        else:
            return False
        now = raft.role, raft.state.leader_id, raft.epoch
        if now != expected:
            self._find(
                look, f"its state is {raft.state}, and it was informed of leader {leader} in epoch {epoch}"
            )
        return True

    def _count(self, look: VoterStep, before: Voter, question: Question, *, granted: bool) -> None:
        """A vote in the turn in which it was asked for."""
        (before.granted if granted else before.refused).add(question.destination)
        raft, voters = look.raft, len(look.others) + 1
        won = 2 * (len(before.granted) + 1) > voters
        votes = f"has {len(before.granted) + 1} of {voters} votes, {len(before.refused)} were refused"
        if won:
            prospective = before.role is RaftRole.PROSPECTIVE
            expected = RaftRole.CANDIDATE if prospective else RaftRole.LEADER
            if (raft.role, raft.epoch) != (expected, before.state.epoch + prospective):
                self._find(look, f"{votes}, and is in epoch {raft.epoch}")
        elif look.is_new:
            self._find(look, f"{votes}, and was {before.role.value}")
        elif before.role is RaftRole.CANDIDATE and 2 * (voters - len(before.refused)) <= voters:
            self._look_at_clock(look, 0, look.config.quorum_election_backoff_max_ms)

    # --- roles ---------------------------------------------------------------------------------------------

    def _look_at_start(self, look: VoterStep, boot: Boot) -> None:
        raft, stored = look.raft, boot.quorum_state
        if not look.others:
            return
        role = RaftRole.UNATTACHED
        if stored is not None and stored.epoch >= raft.log.latest_epoch and stored.leader_id != NO_LEADER:
            role = RaftRole.RESIGNED if stored.leader_id == look.me else RaftRole.FOLLOWER
        now = raft.state.epoch, raft.state.leader_id, raft.state.voted_for, raft.state.voted_directory
        if stored is not None and stored.epoch >= raft.log.latest_epoch:
            expected = stored.epoch, stored.leader_id, stored.voted_for, stored.voted_directory
            if now != expected:
                self._find(look, f"starts with {raft.state}, and its disk has {stored}")
        if raft.role is not role:
            self._find(look, f"starts with {stored} on its disk")

    def _look_at_role(self, look: VoterStep, before: Voter) -> None:
        role, others = look.raft.role, sorted(look.others)
        event = look.step.event
        if isinstance(event, TimerFired) and event.key == CLOCK and role is not RaftRole.PROSPECTIVE:
            self._find(look, "has no answer of a leader for too long, and does not ask around")
        if not look.is_new:
            return
        if role in _POLLS and look.receivers(VoteRequest) != others:
            self._find(look, f"asks {look.receivers(VoteRequest)} for their votes")
        if role is RaftRole.RESIGNED and before.role is RaftRole.LEADER:
            self._resigned(look, before)
        if role is RaftRole.FOLLOWER:
            self._look_at_clock(look, look.config.quorum_fetch_timeout_ms)
        elif role is not RaftRole.LEADER and not isinstance(event, RequestReceived):
            wait_ms = look.config.quorum_election_timeout_ms
            self._look_at_clock(look, wait_ms, 2 * wait_ms)
        elif role is not RaftRole.LEADER and look.clock_ms is None:
            self._find(look, "has set no time for an election")

    def _resigned(self, look: VoterStep, before: Voter) -> None:
        """Who is longest is to be the next (KIP-595)."""
        if look.receivers(EndQuorumEpochRequest) != sorted(look.others):
            self._find(look, f"resigns, and tells {look.receivers(EndQuorumEpochRequest)} alone")
        if before.leadership is None:
            return
        ends = {node: progress.end for node, progress in before.leadership.voters.items()}
        longest = tuple(sorted(ends, key=lambda node: (-ends[node], node)))
        for sent in look.sent:
            if isinstance(sent.request, EndQuorumEpochRequest) and sent.request.successors != longest:
                self._find(look, f"names {sent.request.successors}, and their logs end at {ends}")

    def _look_at_clock(self, look: VoterStep, least_ms: float, most_ms: float | None = None) -> None:
        set_ms = look.clock_ms
        most_ms = least_ms if most_ms is None else most_ms
        if set_ms is None or not least_ms - HAIR_MS <= set_ms <= most_ms + HAIR_MS:
            self._find(look, f"asks around in {set_ms} ms, not in {least_ms} to {most_ms}")

    def _look_at_timers(self, look: VoterStep) -> None:
        timers, role = look.server.timers, look.raft.role
        if look.server.inbox:
            return
        leads = role is RaftRole.LEADER
        if (CLOCK in timers) is leads or (PULSE in timers) is not (leads and bool(look.others)):
            self._find(look, f"has these times set: {sorted(timers)}")
        if RETRY in timers and role is not RaftRole.FOLLOWER:
            self._find(look, "is about to ask a leader again, and follows none")

    # --- leaders -------------------------------------------------------------------------------------------

    def _look_at_leader(self, look: VoterStep, before: Voter) -> None:
        raft, term = look.raft, before.term
        before.leadership = raft.leadership
        if term is not None:
            for request_id in look.replies:
                term.polls.pop(request_id, None)
        if raft.role is not RaftRole.LEADER or raft.leadership is None:
            if term is not None:
                before.term = None
                timers = [key for key in look.server.timers if key.startswith(FETCH_TIMERS)]
                if term.polls or timers:
                    self._find(look, f"leads no more, and {len(term.polls)} fetches wait, {timers} are set")
            self._look_at_fetches(look)
            return
        if term is None or look.is_new:
            term = before.term = Term(dict.fromkeys(look.others, look.now_ms))
            self._begins(look, before)
        event = look.step.event
        if isinstance(event, RequestReceived):
            if isinstance(event.request, FetchRequest):
                self._receive_fetch(look, term, event.request_id, event.request)
            elif isinstance(event.request, FetchSnapshotRequest):
                here = event.request.current_leader_epoch in (NO_EPOCH, raft.epoch)
                if here and is_voters(event.request, look.others):
                    self._reached(look, term, event.request.replica_id)
        elif isinstance(event, RequestCancelled):
            term.polls.pop(event.request_id, None)
            if f"{FETCH_TIMERS}{event.request_id}" in look.server.timers:
                self._find(look, f"fetch {event.request_id} was cancelled, and its deadline is still set")
        elif isinstance(event, TimerFired):
            if event.key == PULSE:
                self._look_at_pulse(look, term)
            elif event.key.startswith(FETCH_TIMERS) and int(event.key[len(FETCH_TIMERS) :]) in term.polls:
                self._find(look, f"the time of {event.key} is over, and it has no answer")
        self._look_at_fetches(look)
        log = raft.log
        safe = min(log.leo, log.flushed_to)
        for request_id, poll in term.polls.items():
            if poll.offset < (safe if poll.votes else log.high_watermark):
                self._find(look, f"fetch {request_id} waits at {poll.offset}, and there is more")
        ends = [safe, *[progress.end for progress in raft.leadership.voters.values()]]
        end = min(log.leo, sorted(ends, reverse=True)[len(ends) // 2])
        if end > max(log.high_watermark, raft.leadership.epoch_start):
            self._find(
                look, f"{end} records are on a majority's disks, its high watermark is {log.high_watermark}"
            )

    def _begins(self, look: VoterStep, before: Voter) -> None:
        leadership = look.raft.leadership
        assert leadership is not None
        if look.receivers(BeginQuorumEpochRequest) != sorted(look.others):
            self._find(look, f"begins an epoch, and tells {look.receivers(BeginQuorumEpochRequest)} alone")
        if leadership.epoch_start != before.leo or look.raft.log.leo == before.leo:
            self._find(look, f"its epoch begins at {leadership.epoch_start}, its log ended at {before.leo}")
        for node, progress in leadership.voters.items():
            if progress.end or progress.knows or progress.fetched or progress.caught_up_ms is not None:
                self._find(look, f"begins an epoch, and takes {progress} for voter {node}'s")

    def _receive_fetch(self, look: VoterStep, term: Term, request_id: int, request: FetchRequest) -> None:
        raft = look.raft
        if len(request.partitions) != 1 or raft.leadership is None:
            return
        [part] = request.partitions
        if part.topic_id != METADATA_TOPIC_ID or part.tp.partition != METADATA.partition:
            return
        response = look.replies.get(request_id)
        votes = is_voters(request, look.others)
        if response is None:
            term.polls[request_id] = Poll(part.fetch_offset, votes)
            wait_ms = look.deadlines.get(f"{FETCH_TIMERS}{request_id}")
            if request.min_bytes <= 0 or wait_ms is None or abs(wait_ms - request.max_wait_ms) > HAIR_MS:
                self._find(look, f"lets {request} wait for {wait_ms} ms")
        if not votes or part.current_leader_epoch != raft.epoch:
            return
        self._reached(look, term, request.replica_id)
        term.fetched.add(request.replica_id)
        progress = raft.leadership.voters[request.replica_id]
        result = response.partitions[0] if isinstance(response, FetchResponse) else None
        same_log = result is None or (
            result.error is NO_ERROR and result.diverging is None and result.snapshot is None
        )
        if same_log and progress.end != part.fetch_offset:
            self._find(look, f"takes {progress} for that of voter {request.replica_id}, which asks {part}")

    def _reached(self, look: VoterStep, term: Term, voter: NodeId) -> None:
        """A voter has asked for records, or for a piece of a snapshot: it is there."""
        term.fetched_ms[voter] = look.now_ms
        term.acknowledged.add(voter)
        leadership = look.raft.leadership
        assert leadership is not None
        progress = leadership.voters[voter]
        if not progress.knows or progress.last_fetch_ms != look.now_ms:
            self._find(look, f"takes {progress} for that of voter {voter}, which has just asked")

    def _look_at_fetches(self, look: VoterStep) -> None:
        raft = look.raft
        for response in look.replies.values():
            if not isinstance(response, FetchResponse):
                continue
            for result in response.partitions:
                if result.tp.topic != METADATA.topic or result.current_leader is None:
                    continue
                leader = result.current_leader
                self._look_at_hint(look, leader.leader_id, leader.leader_epoch)
                if raft.leadership is None:
                    if result.error is not ErrorCode.not_leader_or_follower:
                        self._find(look, f"answers a fetch with {result}")
                elif result.error is NO_ERROR:
                    log = raft.log
                    if (result.high_watermark, result.log_start) != (log.high_watermark or -1, log.log_start):
                        marks = f"high watermark {log.high_watermark}, log start {log.log_start}"
                        self._find(look, f"answers a fetch with {result}, and has {marks}")

    def _look_at_pulse(self, look: VoterStep, term: Term) -> None:
        """It leads still."""
        informed = set(look.receivers(BeginQuorumEpochRequest))
        if not set(look.others) - term.acknowledged <= informed or informed & term.fetched:
            which = f"{sorted(term.acknowledged)} know it, {sorted(term.fetched)} have asked it"
            self._find(look, f"tells {sorted(informed)} of its epoch; {which}")
        window_ms = WINDOW * look.config.quorum_fetch_timeout_ms + HAIR_MS
        active = sum(look.now_ms - when <= window_ms for when in term.fetched_ms.values())
        if 2 * (active + 1) <= len(look.others) + 1:
            self._find(look, f"{active} other voters have asked it in {window_ms:.0f} ms, and it leads still")
        pulse_ms = look.deadlines.get(PULSE, 0.0)
        if not 0 < pulse_ms <= look.config.quorum_fetch_timeout_ms / 2:
            self._find(look, f"looks again in {pulse_ms} ms")
