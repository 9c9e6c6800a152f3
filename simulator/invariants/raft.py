"""Invariants of the controller quorum (docs/invariants.md; Kafka's RaftEventSimulationTest).

Nothing is said of a quorum one of whose voters has lost its disk or got an old one back. Those of
snapshots are in invariants_snapshots.py.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from wrackline.broker.model.effects import Truncate, WriteQuorumState
from wrackline.broker.model.events import RequestReceived
from wrackline.broker.model.messages.quorum import VoteRequest, VoteResponse
from wrackline.broker.model.types import METADATA, NO_LEADER
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.invariant import Wrong, invariant
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import COMMITTED, DISKS, QUORUM, ObservedStep

_LEADER: Final = RaftRole.LEADER
_FOLLOWER: Final = RaftRole.FOLLOWER
_CANDIDATE: Final = RaftRole.CANDIDATE
_NO_LIFE = UUID(int=0)


@invariant("Q01", "election safety", "ElectionSafety, KAFKA-10527", QUORUM)
def election_safety(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    """One node in one life: a leader that restarts has lost its epoch."""
    controller = seen.voter
    if controller is None or not controller.raft.leads:
        return
    boot = cluster.boots.get(seen.node)
    me = (seen.node, _NO_LIFE if boot is None else boot.incarnation_id)
    epoch = controller.raft.epoch
    first = cluster.noted.setdefault(("Q01", epoch), me)
    if first != me:
        yield None, f"{first[0]} and {seen.node} (or a later life of it) both lead in {epoch}"


@invariant("Q02", "quorum log matching", "LogMatching, ConsistentCommittedData", QUORUM)
def quorum_log_matching(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    """Up to each voter's own high watermark; and nothing below it is ever cut."""
    controller, log = seen.voter, cluster.log(seen.node, METADATA)
    if controller is None or log is None:
        return
    known, high_watermark = cluster.metadata, controller.raft.log.high_watermark
    bound = min(high_watermark, known.committed_end)
    match = known.match.get(seen.node, 0)
    if match < bound and (match := known.extend(seen.node, log)) < bound:
        yield None, f"it is as committed up to {match}, its high watermark is {high_watermark}"
    for effect in seen.step.effects:
        if isinstance(effect, Truncate) and effect.tp == METADATA and effect.to_offset < high_watermark:
            yield None, f"cut to {effect.to_offset}, below its high watermark {high_watermark}"


@invariant("Q03", "quorum leader completeness", "LeaderCompleteness", QUORUM)
def quorum_leader_completeness(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    controller, log = seen.voter, cluster.log(seen.node, METADATA)
    if controller is None or log is None or not controller.raft.leads:
        return
    epoch = controller.raft.epoch
    if epoch < cluster.noted.get(("Q03",), -1):
        return
    cluster.noted["Q03",] = epoch
    end = cluster.metadata.committed_end
    match = cluster.metadata.match.get(seen.node, 0)
    if match < end and (match := cluster.metadata.extend(seen.node, log)) < end:
        yield None, f"the leader of {epoch} has {match} of {end} committed records"


@invariant(
    "Q04",
    "committed on a majority's disks",
    "Durability, MajorityReachedHighWatermark, KAFKA-10533",
    COMMITTED | DISKS,
)
def committed_on_majority(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    end = cluster.metadata.committed_end
    lost = seen.disks and seen.node in cluster.world.controllers
    if not lost and end == cluster.noted.get(("Q04",), 0):
        return
    cluster.noted["Q04",] = end
    if cluster.replaced.intersection(cluster.world.controllers):
        return
    holders = []
    for node in cluster.world.controllers:
        log = cluster.log(node, METADATA)
        if log is not None and log.synced >= end and cluster.metadata.extend(node, log) >= end:
            holders.append(node)
    if 2 * len(holders) <= len(cluster.world.controllers):
        yield None, f"{end} records are committed, flushed by {holders or 'nobody'} only"


@invariant("Q05", "monotonic epoch", "MonotonicEpoch", QUORUM)
def monotonic_epoch(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    controller = seen.voter
    if controller is None:
        return
    epoch, was = controller.raft.epoch, cluster.noted.get(("Q05", seen.node), -1)
    cluster.noted["Q05", seen.node] = epoch
    if epoch < was:
        yield None, f"from epoch {was} back to {epoch}"


@invariant("Q06", "monotonic high watermark", "MonotonicHighWatermark", QUORUM)
def monotonic_high_watermark(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    controller = seen.voter
    if controller is None:
        return
    now = controller.raft.log.high_watermark
    core, was = cluster.noted.get(("Q06", seen.node), (controller, now))
    cluster.noted["Q06", seen.node] = (controller, now)
    if core is controller and now < was:
        yield None, f"the high watermark went from {was} to {now}"
    if not now <= controller.raft.log.leo:
        yield None, f"high watermark {now} past the end {controller.raft.log.leo}"


@invariant("Q07", "one vote per epoch", "docs/protocol.md 2.12.2", QUORUM)
def one_vote_per_epoch(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:
    """Across restarts: of answers that left, and of a candidate's own vote. A pre-vote is none (KIP-996)."""
    controller = seen.voter
    if controller is None:
        return
    event = seen.step.event
    if type(event) is RequestReceived and type(event.request) is VoteRequest and event.request.pre_vote:
        for effect in seen.step.effects:
            if type(effect) is WriteQuorumState and effect.state.voted_for != NO_LEADER:
                yield None, f"a pre-vote of {event.request.candidate_id} was written as a vote"
    given = [
        (request.epoch, request.candidate_id)
        for request, response, _ in seen.answers
        if isinstance(request, VoteRequest) and isinstance(response, VoteResponse)
        if response.granted and not request.pre_vote
    ]
    if controller.raft.role is _CANDIDATE:
        given.append((controller.raft.epoch, seen.node))
    for epoch, candidate in given:
        first = cluster.noted.setdefault(("Q07", seen.node, epoch), candidate)
        if first != candidate:
            yield None, f"voted for {first} and for {candidate} in epoch {epoch}"


@invariant("Q08", "valid roles and states", "ValidRolesAndStates", QUORUM)
def valid_roles(cluster: ObservedCluster, seen: ObservedStep) -> Wrong:  # noqa: ARG001
    controller = seen.voter
    if controller is None:
        return
    raft, me = controller.raft, seen.node
    leader, role = raft.state.leader_id, raft.role
    if role is _LEADER:
        error = leader != me or raft.leadership is None
    elif role is _FOLLOWER:
        error = leader in (me, NO_LEADER)
    else:
        error = role is _CANDIDATE and raft.state.voted_for != me
    if error or (raft.leadership is not None and role is not _LEADER):
        yield None, f"{role.value}, and its state is {raft.state}"
