"""The leader's decisions on what it knows beyond its log: followers, committed and maximal ISR, the proposal.

The rules are those of docs/protocol.md 2.4, 2.5, 2.6, K44-K50: the high watermark, how the ISR shrinks and
expands, and what the answer to a proposal does. The state is the replica's ``LeaderState``; every function
here but ``begin`` is for a replica that leads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from wrackline.broker.core.replication.replica import Follower, LeaderState, Replica
from wrackline.broker.model.messages.controller import AlterPartitionItem, AlterPartitionResult
from wrackline.broker.model.types import NO_EPOCH, NodeId
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.election import RECOVERING
from wrackline.broker.rules.replication.isr import AfterAlter, JoinFacts, LagFacts

# --- role and metadata -------------------------------------------------------------------------------------


def begin(replica: Replica, isr: Iterable[NodeId]) -> None:
    """The replica leads from here on."""
    committed = frozenset(isr)
    replica.leader = LeaderState(committed, maximal=committed, leso=replica.log.leo)
    assigned(replica, replica.leader)


def assigned(replica: Replica, state: LeaderState) -> None:
    """One state per other assigned replica; a newcomer in the ISR has the benefit of the doubt for a lag."""
    me, now = replica.ctx.config.node_id, replica.ctx.now_ms
    known = state.followers
    state.followers = {}
    for other in replica.replicas:
        if other != me:
            state.followers[other] = known.get(other) or Follower(
                last_caught_up_ms=now if other in state.isr else -math.inf
            )


def reelected(replica: Replica, isr: Iterable[NodeId], epochs: int) -> None:
    """K50: the same broker leads on, ``epochs`` after the one in which it led."""
    ctx, state = replica.ctx, replica.leading
    state.isr = state.maximal = frozenset(isr)
    state.proposal = None
    state.leso = replica.log.leo
    kept = ctx.rules.isr.kept_in_new_epoch(state.followers, state.isr, epochs)
    state.followers = {other: follower for other, follower in state.followers.items() if other in kept}
    for follower in state.followers.values():
        follower.last_caught_up_ms = ctx.now_ms
    assigned(replica, state)
    _trace_isr(replica, state)


def isr_committed(replica: Replica, isr: Iterable[NodeId]) -> None:
    """A higher partition epoch, by metadata or by the controller's answer; it settles any proposal (K49)."""
    state = replica.leading
    state.isr = state.maximal = frozenset(isr)
    state.proposal = None
    assigned(replica, state)
    _trace_isr(replica, state)
    if replica.ctx.rules.switches.isr_change_moves_high_watermark:
        advance(replica)
    replica.touch()


def recovery_state(replica: Replica, recovery: int) -> None:
    """Returns the partition's recovery state as committed metadata has it."""
    replica.leading.recovering = recovery == RECOVERING
    _end_recovery(replica)


def _end_recovery(replica: Replica) -> None:
    """Ends the recovery of a partition: whoever leads has nothing more to recover, since its log is what the
    others will take over. The first proposal says so, and has this leader alone (an ISR of a recovering
    partition cannot grow: docs/protocol.md 2.6)."""
    state = replica.leading
    if state.recovering and state.proposal is None:
        propose(replica, state.isr, {})


# --- high watermark ----------------------------------------------------------------------------------------


def advance(replica: Replica) -> None:
    """2.4. Called after follower fetches, appends, flushes, committed ISR changes and role changes."""
    ctx, state, log = replica.ctx, replica.leading, replica.log
    rules = ctx.rules.high_watermark
    switches = ctx.rules.switches
    gated = switches.min_isr_gates_high_watermark
    if gated and not rules.may_advance(len(state.isr), len(state.maximal), replica.min_isr):
        return
    since = ctx.now_ms - ctx.config.replica_lag_time_max_ms
    joining = switches.waits_for_joining
    awaited = [
        each.leo
        for other, each in state.followers.items()
        if other in state.maximal
        or (joining and rules.waits_for(each.last_caught_up_ms >= since, is_eligible(replica, other, each)))
    ]
    candidate = rules.candidate(log.leo, awaited, log.flushed if replica.every_write else None)
    replica.set_high_watermark(rules.at_leader(replica.high_watermark, candidate))


def is_eligible(replica: Replica, other: NodeId, follower: Follower) -> bool:
    """The life of the broker that has fetched is the one that may be in an ISR (KIP-841, KIP-903)."""
    ctx = replica.ctx
    return ctx.is_active(other) and follower.broker_epoch == ctx.registered_epoch(other)


# --- followers ---------------------------------------------------------------------------------------------


def log_start_of(replica: Replica, follower: NodeId, log_start: int) -> None:
    """A follower's own log start, from its fetch: DeleteRecords waits for it."""
    state = replica.leading.followers[follower]
    if log_start > state.log_start:
        state.log_start = log_start
        replica.touch()


def fetched(replica: Replica, follower: NodeId, offset: int, broker_epoch: int) -> None:
    """A valid, non-diverging fetch of a follower: remember it, then let it join and commit what it may
    (docs/protocol.md 2.2.6, 2.2.7; before the answer is made, H06)."""
    leading, now, log_end = replica.leading, replica.ctx.now_ms, replica.log.leo
    state = leading.followers[follower]
    if offset >= log_end:
        state.last_caught_up_ms = max(state.last_caught_up_ms, now)
    elif offset >= state.leader_leo_at_fetch:
        state.last_caught_up_ms = max(state.last_caught_up_ms, state.last_fetch_ms)
    moved = offset != state.leo or broker_epoch != state.broker_epoch
    moved = moved or state.fetched_in_epoch != replica.leader_epoch
    state.leo = offset
    state.last_fetch_ms = now
    state.leader_leo_at_fetch = log_end
    state.broker_epoch = broker_epoch
    state.fetched_in_epoch = replica.leader_epoch
    if moved:
        replica.ctx.trace(
            "follower",
            tp=str(replica.tp),
            id=follower,
            leo=offset,
            broker_epoch=broker_epoch,
            leader_epoch=replica.leader_epoch,
        )
    if follower not in leading.maximal:
        _expand(replica, follower, state)
    if moved:
        if not leading.open:
            replica.touch()  # a leader that waits for its followers opens, though nothing is committed
        advance(replica)


def _expand(replica: Replica, follower: NodeId, state: Follower) -> None:
    """2.5. One proposal at a time."""
    ctx, leading = replica.ctx, replica.leading
    if leading.proposal is not None or not leading.open:
        return
    facts = JoinFacts(
        leo=state.leo,
        high_watermark=replica.high_watermark,
        leso=leading.leso,
        fetched_in_epoch=state.fetched_in_epoch,
        leader_epoch=replica.leader_epoch,
        broker_epoch=state.broker_epoch,
        registered_epoch=ctx.registered_epoch(follower),
        active=ctx.is_active(follower),
        lag=_lag(replica, state),
    )
    if ctx.rules.isr.may_join(facts):
        propose(replica, leading.isr | {follower}, {follower: facts.broker_epoch})


def shrink(replica: Replica) -> None:
    """Proposes, by timer, to drop the members that lag (docs/protocol.md 2.5). One that was about to join and
    has not come is waited for no more."""
    _end_recovery(replica)
    advance(replica)
    ctx, state = replica.ctx, replica.leading
    if state.proposal is not None:
        return
    late = {
        other
        for other, follower in state.followers.items()
        if other in state.isr and ctx.rules.isr.lags(_lag(replica, follower))
    }
    if late:
        propose(replica, state.isr - late, {})


def _lag(replica: Replica, follower: Follower) -> LagFacts:
    ctx = replica.ctx
    lag_max_ms = float(ctx.config.replica_lag_time_max_ms)
    return LagFacts(follower.leo, replica.log.leo, follower.last_caught_up_ms, ctx.now_ms, lag_max_ms)


# --- the ISR proposal (docs/protocol.md 2.6) ---------------------------------------------------------------


def propose(replica: Replica, isr: frozenset[NodeId], joining: dict[NodeId, int]) -> None:
    """Own epoch for self, -1 for members already committed, the fetch-learned one for those that join."""
    ctx, state = replica.ctx, replica.leading
    epochs = {ctx.config.node_id: ctx.broker_epoch, **joining}
    state.proposal = AlterPartitionItem(
        tp=replica.tp,
        topic_id=replica.topic_id,
        leader_epoch=replica.leader_epoch,
        partition_epoch=replica.partition_epoch,
        isr=tuple((member, epochs.get(member, NO_EPOCH)) for member in sorted(isr)),
    )
    state.maximal = ctx.rules.isr.maximal(state.isr, isr)
    replica.changes.proposed[replica.tp] = replica
    _trace_isr(replica, state)
    advance(replica)
    replica.touch()


def answered(replica: Replica, item: AlterPartitionItem, result: AlterPartitionResult) -> None:
    """2.6b. The proposal stays, and is sent again, when the answer leaves everything open."""
    ctx, state = replica.ctx, replica.leading
    if state.proposal is not item:
        return
    if result.error is NO_ERROR:
        _accepted(replica, result)
        return
    ctx.trace("isr_refused", tp=str(replica.tp), error=result.error.name)
    if ctx.rules.isr.after_refusal(result.error) is AfterAlter.ROLL_BACK:
        state.proposal = None
        state.maximal = state.isr
        _trace_isr(replica, state)
        advance(replica)
        replica.touch()


def _accepted(replica: Replica, result: AlterPartitionResult) -> None:
    """An equal partition epoch says that the proposal was what the controller had already."""
    if result.leader_epoch != replica.leader_epoch or result.leader_id != replica.ctx.config.node_id:
        return
    if result.partition_epoch < replica.partition_epoch:
        return
    replica.partition_epoch = result.partition_epoch
    replica.leading.recovering = result.leader_recovery_state == RECOVERING
    isr_committed(replica, result.isr)


def _trace_isr(replica: Replica, state: LeaderState) -> None:
    proposed = None if state.proposal is None else [member for member, _ in state.proposal.isr]
    replica.ctx.trace(
        "isr",
        tp=str(replica.tp),
        committed=sorted(state.isr),
        maximal=sorted(state.maximal),
        pending=proposed,
        partition_epoch=replica.partition_epoch,
    )
