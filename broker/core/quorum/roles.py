"""A voter's role in the quorum, and how it passes from one to another
(docs/protocol.md 2.12, KIP-996 figure).

Every passage writes down what must not be forgotten, ends what the former role had begun, and sets the clock
of the new one. What a role does is in `voter`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from wrackline.broker.core.quorum.context import RAFT, RaftContext
from wrackline.broker.core.quorum.leader import Leadership
from wrackline.broker.core.quorum.log import Entry, MetadataLog
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import Trace, WriteQuorumState
from wrackline.broker.model.messages.requests import LeaderIdAndEpoch
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import NO_LEADER, NodeId, QuorumState
from wrackline.broker.rules.leadership.raft import NOTHING_KNOWN, RaftRole, forgotten
from wrackline.broker.rules.profile import Rules

CLOCK = RAFT
"""The timer of every role but the leader's: without news until then, an election."""
RETRY = f"{RAFT}-retry"
_LEADER: Final = RaftRole.LEADER
_RESIGNED: Final = RaftRole.RESIGNED
PULSE = f"{RAFT}-leader"


class RaftRoles(ABC):
    def __init__(self, config: ControllerConfig, rules: Rules) -> None:
        self.log = MetadataLog(config, rules.snapshots)
        self.role = RaftRole.UNATTACHED
        self.state = NOTHING_KNOWN
        self.committed: list[Entry] = []
        """Newly so, in order, for the controller to take."""
        self.loaded: ClusterImage | None = None
        """What a snapshot says, for the controller to take before what was committed after it."""
        self.leadership: Leadership | None = None
        self._ctx = RaftContext(config)
        self._rules = rules.raft
        self._remembers_vote = rules.switches.remembers_vote
        self._truncation = rules.truncation
        self._written: QuorumState | None = None
        self._turn = 0
        """Goes up with each change of role: answers to questions of a former role are let pass."""
        self._has_fetched = False
        self._misses = 0
        """Fetches that failed since the last one that was answered."""
        self.leader_heard_ms: float | None = None
        """When a leader last answered a fetch of this voter, or when it led itself; None: not in this
        life."""
        self._fetching = False
        self._ending = 0
        """EndQuorumEpoch requests not answered yet."""

    # --- what others see -----------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leads(self) -> bool:
        return self.role is _LEADER

    @property
    def leader_id(self) -> NodeId:
        """Returns the leader of this epoch, as far as known; -1 when nobody leads any more."""
        return NO_LEADER if self.role is _RESIGNED else self.state.leader_id

    @property
    def hint(self) -> LeaderIdAndEpoch:
        return LeaderIdAndEpoch(self.leader_id, self.epoch)

    @property
    def is_quorum_of_one(self) -> bool:
        return not self._ctx.others

    @property
    def has_left(self) -> bool:
        """Every voter that could be told of the resignation has been."""
        return self._ending == 0

    # --- changes of role -----------------------------------------------------------------------------------

    def _become(self, role: RaftRole) -> None:
        if self.leadership is not None and role is not RaftRole.LEADER:
            self.role = role
            self.leader_heard_ms = self._ctx.now_ms
            self.leadership.dismiss(self.hint)
            self.leadership = None
            self._ctx.cancel_timer(PULSE)
        self.role = role
        self._turn += 1
        self._has_fetched = self._fetching = False
        self._ctx.cancel_timer(RETRY)
        fields = {"role": role.value, "epoch": self.epoch, "leo": self.log.leo, "leader": self.leader_id}
        self._ctx.out.append(Trace("raft_role", {**fields, "voted_for": self.state.voted_for}))

    def _remember(self, state: QuorumState) -> None:
        self.state = state
        written = state if self._remembers_vote else forgotten(state)
        if written != self._written:
            self._written = written
            self._ctx.out.append(WriteQuorumState(written))

    def _wait(self, ms: float, then: Callable[[], None]) -> None:
        self._ctx.wait(CLOCK, ms, then)

    def _detach(self, epoch: int) -> None:
        """A newer epoch, and nobody known to lead it."""
        self._remember(QuorumState(epoch, directory_id=self.state.directory_id))
        self._become(RaftRole.UNATTACHED)
        self._wait(self._ctx.election_timeout_ms(), self._ask_around)

    def _follow(self, leader: NodeId, epoch: int) -> None:
        own = self.state
        if epoch > own.epoch:
            own = QuorumState(epoch, directory_id=own.directory_id)
        self._remember(replace(own, leader_id=leader))
        self._become(RaftRole.FOLLOWER)
        self._wait(self._ctx.config.quorum_fetch_timeout_ms, self._ask_around)
        self._fetch()

    def _learn(self, leader: NodeId, epoch: int) -> bool:
        """Takes what another voter says of the quorum. True when it was news, and the role has changed."""
        if epoch < self.epoch:
            return False
        if leader in (NO_LEADER, self._ctx.me):
            if epoch > self.epoch:
                self._detach(epoch)
                return True
            return False
        if epoch == self.epoch and self.role is RaftRole.FOLLOWER and self.state.leader_id == leader:
            return False
        if epoch == self.epoch and self.state.leader_id not in (NO_LEADER, leader):
            fields = {"epoch": epoch, "leaders": [self.state.leader_id, leader]}
            self._ctx.out.append(Trace("raft_conflict", fields, loud=True))
            return False
        if leader not in self._ctx.voters:
            return False
        self._follow(leader, epoch)
        return True

    @abstractmethod
    def _ask_around(self) -> None:
        """Asks whether this voter would win, since no leader was heard for too long."""

    @abstractmethod
    def _fetch(self) -> None:
        """Asks the leader for what comes next."""
