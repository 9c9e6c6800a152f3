"""What a leader knows beyond its log: followers, committed and maximal ISR, the proposal in flight.

The rules are those of docs/protocol.md 2.4, 2.5, 2.6, K44-K50: the high watermark, how the ISR shrinks and
expands, and what the answer to a proposal does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wrackline.broker.model.messages import AlterPartitionItem, AlterPartitionResult
from wrackline.broker.model.types import NO_EPOCH, NodeId
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.election import RECOVERING
from wrackline.broker.rules.isr import AfterAlter, JoinFacts, LagFacts
from wrackline.broker.rules.watermark import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from wrackline.broker.core.replication.replica import Replica


@dataclass(slots=True)
class Follower:
    """From its last fetch, never from metadata (K14)."""

    leo: int = UNKNOWN_OFFSET
    last_fetch_ms: float = -math.inf
    leader_leo_at_fetch: int = UNKNOWN_OFFSET
    last_caught_up_ms: float = -math.inf
    broker_epoch: int = NO_EPOCH
    fetched_in_epoch: int = NO_EPOCH
    log_start: int = UNKNOWN_OFFSET


class Leader:
    """One term of leadership, or several in a row on the same broker."""

    def __init__(self, replica: Replica, isr: Iterable[NodeId]) -> None:
        self._replica = replica
        self._ctx = replica.ctx
        self._me = replica.ctx.config.node_id
        self.isr = frozenset(isr)
        self.maximal = self.isr
        self.proposal: AlterPartitionItem | None = None
        self.leso = replica.log.leo
        """Log end at election: what former leaders may have committed (K40, KIP-207)."""
        self.followers: dict[NodeId, Follower] = {}
        self.recovering = False
        """Elected uncleanly, and the controller has not taken it that the recovery is over (KIP-704)."""
        self._assigned()

    # --- role and metadata ---------------------------------------------------------------------------------

    def _assigned(self) -> None:
        """One state per other assigned replica; a newcomer in the ISR has the benefit of the doubt for a
        lag."""
        now = self._ctx.now_ms
        known = self.followers
        self.followers = {}
        for other in self._replica.replicas:
            if other != self._me:
                self.followers[other] = known.get(other) or Follower(
                    last_caught_up_ms=now if other in self.isr else -math.inf
                )

    def reelected(self, isr: Iterable[NodeId], epochs: int) -> None:
        """K50: the same broker leads on, ``epochs`` after the one in which it led."""
        self.isr = self.maximal = frozenset(isr)
        self.proposal = None
        self.leso = self._replica.log.leo
        kept = self._ctx.rules.isr.kept_in_new_epoch(self.followers, self.isr, epochs)
        self.followers = {other: state for other, state in self.followers.items() if other in kept}
        for state in self.followers.values():
            state.last_caught_up_ms = self._ctx.now_ms
        self._assigned()
        self._trace_isr()

    def isr_committed(self, isr: Iterable[NodeId]) -> None:
        """A higher partition epoch, by metadata or by the controller's answer; it settles any proposal
        (K49)."""
        self.isr = self.maximal = frozenset(isr)
        self.proposal = None
        self._assigned()
        self._trace_isr()
        if self._ctx.rules.switches.isr_change_moves_high_watermark:
            self.advance()
        self._replica.touch()

    def recovery_state(self, state: int) -> None:
        """As committed metadata has it."""
        self.recovering = state == RECOVERING
        self._end_recovery()

    def _end_recovery(self) -> None:
        """Whoever leads has nothing more to recover: its log is what the others will take over. The first
        proposal says so, and has this leader alone (an ISR of a recovering partition cannot grow:
        docs/protocol.md 2.6)."""
        if self.recovering and self.proposal is None:
            self._propose(self.isr, {})

    # --- high watermark ------------------------------------------------------------------------------------

    def advance(self) -> None:
        """2.4. Called after follower fetches, appends, flushes, committed ISR changes and role changes."""
        replica, rules = self._replica, self._ctx.rules.high_watermark
        gated = self._ctx.rules.switches.min_isr_gates_high_watermark
        if gated and not rules.may_advance(len(self.isr), len(self.maximal), replica.min_isr):
            return
        log = replica.log
        members = [
            state.leo
            for other, state in self.followers.items()
            if rules.counts(other in self.maximal, self._is_caught_up(state), self._ctx.is_active(other))
        ]
        candidate = rules.candidate(log.leo, members, log.flushed if replica.every_write else None)
        replica.set_high_watermark(rules.at_leader(replica.high_watermark, candidate))

    def _is_caught_up(self, state: Follower) -> bool:
        """At the end of the log within the last lag window."""
        return self._ctx.now_ms - state.last_caught_up_ms <= self._ctx.config.replica_lag_time_max_ms

    # --- followers -----------------------------------------------------------------------------------------

    def log_start_of(self, follower: NodeId, log_start: int) -> None:
        """A follower's own log start, from its fetch: DeleteRecords waits for it."""
        state = self.followers[follower]
        if log_start > state.log_start:
            state.log_start = log_start
            self._replica.touch()

    def fetched(self, follower: NodeId, offset: int, broker_epoch: int) -> None:
        """A valid, non-diverging fetch of a follower: remember it, then let it join and commit what it may
        (docs/protocol.md 2.2.6, 2.2.7; before the answer is made, H06)."""
        state, now = self.followers[follower], self._ctx.now_ms
        log_end = self._replica.log.leo
        if offset >= log_end:
            state.last_caught_up_ms = max(state.last_caught_up_ms, now)
        elif offset >= state.leader_leo_at_fetch:
            state.last_caught_up_ms = max(state.last_caught_up_ms, state.last_fetch_ms)
        moved = offset != state.leo or broker_epoch != state.broker_epoch
        moved = moved or state.fetched_in_epoch != self._replica.leader_epoch
        state.leo = offset
        state.last_fetch_ms = now
        state.leader_leo_at_fetch = log_end
        state.broker_epoch = broker_epoch
        state.fetched_in_epoch = self._replica.leader_epoch
        if moved:
            self._ctx.trace(
                "follower",
                tp=str(self._replica.tp),
                id=follower,
                leo=offset,
                broker_epoch=broker_epoch,
                leader_epoch=self._replica.leader_epoch,
            )
        if follower not in self.maximal:
            self._expand(follower, state)
        if moved:
            self.advance()

    def _expand(self, follower: NodeId, state: Follower) -> None:
        """2.5. One proposal at a time."""
        if self.proposal is not None:
            return
        facts = JoinFacts(
            leo=state.leo,
            high_watermark=self._replica.high_watermark,
            leso=self.leso,
            fetched_in_epoch=state.fetched_in_epoch,
            leader_epoch=self._replica.leader_epoch,
            broker_epoch=state.broker_epoch,
            registered_epoch=self._ctx.registered_epoch(follower),
            active=self._ctx.is_active(follower),
        )
        if self._ctx.rules.isr.may_join(facts):
            self._propose(self.isr | {follower}, {follower: facts.broker_epoch})

    def shrink(self) -> None:
        """By timer: propose to drop the members that lag (docs/protocol.md 2.5)."""
        self._end_recovery()
        if self.proposal is not None:
            return
        rules, lag_max = self._ctx.rules.isr, float(self._ctx.config.replica_lag_time_max_ms)
        leader_leo, now = self._replica.log.leo, self._ctx.now_ms
        late = {
            other
            for other, state in self.followers.items()
            if other in self.isr
            and rules.lags(LagFacts(state.leo, leader_leo, state.last_caught_up_ms, now, lag_max))
        }
        if late:
            self._propose(self.isr - late, {})

    # --- the ISR proposal (docs/protocol.md 2.6) ---------------------------------------------------------

    def _propose(self, isr: frozenset[NodeId], joining: dict[NodeId, int]) -> None:
        """Own epoch for self, -1 for members already committed, the fetch-learned one for those that join."""
        replica = self._replica
        epochs = {self._me: self._ctx.broker_epoch, **joining}
        self.proposal = AlterPartitionItem(
            tp=replica.tp,
            topic_id=replica.topic_id,
            leader_epoch=replica.leader_epoch,
            partition_epoch=replica.partition_epoch,
            isr=tuple((member, epochs.get(member, NO_EPOCH)) for member in sorted(isr)),
        )
        self.maximal = self._ctx.rules.isr.maximal(self.isr, isr)
        self._ctx.proposed[replica.tp] = replica
        self._trace_isr()
        self.advance()
        replica.touch()

    def answered(self, item: AlterPartitionItem, result: AlterPartitionResult) -> None:
        """2.6b. ``proposal`` stays, and is sent again, when the answer leaves everything open."""
        if self.proposal is not item:
            return
        if result.error is NO_ERROR:
            self._accepted(result)
            return
        self._ctx.trace("isr_refused", tp=str(self._replica.tp), error=result.error.name)
        if self._ctx.rules.isr.after_refusal(result.error) is AfterAlter.ROLL_BACK:
            self.proposal = None
            self.maximal = self.isr
            self._trace_isr()
            self.advance()
            self._replica.touch()

    def _accepted(self, result: AlterPartitionResult) -> None:
        """An equal partition epoch says that the proposal was what the controller had already."""
        replica = self._replica
        if result.leader_epoch != replica.leader_epoch or result.leader_id != self._me:
            return
        if result.partition_epoch < replica.partition_epoch:
            return
        replica.partition_epoch = result.partition_epoch
        self.recovering = result.leader_recovery_state == RECOVERING
        self.isr_committed(result.isr)

    def _trace_isr(self) -> None:
        proposed = None if self.proposal is None else [member for member, _ in self.proposal.isr]
        self._ctx.trace(
            "isr",
            tp=str(self._replica.tp),
            committed=sorted(self.isr),
            maximal=sorted(self.maximal),
            pending=proposed,
            partition_epoch=self._replica.partition_epoch,
        )
