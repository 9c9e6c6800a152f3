"""Invariants of the controller quorum (docs/invariants.md; Kafka's RaftEventSimulationTest).

Nothing is said of a quorum one of whose voters has lost its disk or got an old one back. Those of
snapshots are in invariants_snapshots.py.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.effects import Truncate
from wrackline.broker.model.messages.quorum import VoteRequest, VoteResponse
from wrackline.broker.model.types import METADATA, NO_LEADER, NodeId
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.invariant import Invariant, Violation
from wrackline.simulator.invariants.observed.cluster import ObservedCluster
from wrackline.simulator.invariants.observed.step import COMMITTED, DISKS, QUORUM, ObservedStep

_LEADER: Final = RaftRole.LEADER
_FOLLOWER: Final = RaftRole.FOLLOWER
_CANDIDATE: Final = RaftRole.CANDIDATE
_NO_LIFE = UUID(int=0)


class ElectionSafety(Invariant):
    id = "Q01"
    name = "election safety"
    reference = "ElectionSafety, KAFKA-10527"
    looks_at = QUORUM

    def __init__(self) -> None:
        self._leaders: dict[int, tuple[NodeId, UUID]] = {}

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        """One node in one life: a leader that restarts has lost its epoch."""
        controller = seen.voter
        if controller is None or not controller.raft.leads:
            return None
        boot = cluster.boots.get(seen.node)
        me = (seen.node, _NO_LIFE if boot is None else boot.incarnation_id)
        epoch = controller.raft.epoch
        first = self._leaders.setdefault(epoch, me)
        if first == me:
            return None
        return self.violated(
            seen, None, f"{first[0]} and {seen.node} (or a later life of it) both lead in {epoch}"
        )


class QuorumLogMatching(Invariant):
    id = "Q02"
    name = "quorum log matching"
    reference = "LogMatching, ConsistentCommittedData"
    looks_at = QUORUM

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        """Checks up to each voter's own high watermark; and nothing below it is ever cut."""
        controller, log = seen.voter, cluster.log(seen.node, METADATA)
        if controller is None or log is None:
            return None
        known, high_watermark = cluster.metadata, controller.raft.log.high_watermark
        bound = min(high_watermark, known.committed_end)
        match = known.match.get(seen.node, 0)
        if match < bound and (match := known.extend(seen.node, log)) < bound:
            return self.violated(
                seen, None, f"it is as committed up to {match}, its high watermark is {high_watermark}"
            )
        for effect in seen.step.effects:
            if isinstance(effect, Truncate) and effect.tp == METADATA and effect.to_offset < high_watermark:
                return self.violated(
                    seen, None, f"cut to {effect.to_offset}, below its high watermark {high_watermark}"
                )
        return None


class QuorumLeaderCompleteness(Invariant):
    id = "Q03"
    name = "quorum leader completeness"
    reference = "LeaderCompleteness"
    looks_at = QUORUM

    def __init__(self) -> None:
        self._newest = -1

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        controller, log = seen.voter, cluster.log(seen.node, METADATA)
        if controller is None or log is None or not controller.raft.leads:
            return None
        if controller.raft.epoch < self._newest:
            return None
        self._newest = controller.raft.epoch
        end = cluster.metadata.committed_end
        match = cluster.metadata.match.get(seen.node, 0)
        if match < end and (match := cluster.metadata.extend(seen.node, log)) < end:
            return self.violated(
                seen, None, f"the leader of {self._newest} has {match} of {end} committed records"
            )
        return None


class CommittedOnMajority(Invariant):
    id = "Q04"
    name = "committed on a majority's disks"
    reference = "Durability, MajorityReachedHighWatermark, KAFKA-10533"
    looks_at = COMMITTED | DISKS

    def __init__(self) -> None:
        self._checked = 0

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:
        end = cluster.metadata.committed_end
        lost = seen.disks and seen.node in cluster.world.controllers
        if not lost and end == self._checked:
            return None
        self._checked = end
        if cluster.replaced.intersection(cluster.world.controllers):
            return None
        holders = []
        for node in cluster.world.controllers:
            log = cluster.log(node, METADATA)
            if log is not None and log.synced >= end and cluster.metadata.extend(node, log) >= end:
                holders.append(node)
        if 2 * len(holders) > len(cluster.world.controllers):
            return None
        return self.violated(
            seen, None, f"{end} records are committed, flushed by {holders or 'nobody'} only"
        )


class MonotonicEpoch(Invariant):
    id = "Q05"
    name = "monotonic epoch"
    reference = "MonotonicEpoch"
    looks_at = QUORUM

    def __init__(self) -> None:
        self._epochs: dict[NodeId, int] = {}

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:  # noqa: ARG002
        controller = seen.voter
        if controller is None:
            return None
        epoch, was = controller.raft.epoch, self._epochs.get(seen.node, -1)
        self._epochs[seen.node] = epoch
        return self.violated(seen, None, f"from epoch {was} back to {epoch}") if epoch < was else None


class MonotonicHighWatermark(Invariant):
    id = "Q06"
    name = "monotonic high watermark"
    reference = "MonotonicHighWatermark"
    looks_at = QUORUM

    def __init__(self) -> None:
        self._marks: dict[NodeId, tuple[Controller, int]] = {}

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:  # noqa: ARG002
        controller = seen.voter
        if controller is None:
            return None
        now = controller.raft.log.high_watermark
        core, was = self._marks.get(seen.node, (controller, now))
        self._marks[seen.node] = (controller, now)
        if core is controller and now < was:
            return self.violated(seen, None, f"the high watermark went from {was} to {now}")
        if not now <= controller.raft.log.leo:
            return self.violated(seen, None, f"high watermark {now} past the end {controller.raft.log.leo}")
        return None


class OneVotePerEpoch(Invariant):
    id = "Q07"
    name = "one vote per epoch"
    reference = "docs/protocol.md 2.12.2"
    looks_at = QUORUM

    def __init__(self) -> None:
        self._votes: dict[tuple[NodeId, int], NodeId] = {}

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:  # noqa: ARG002
        """Across restarts: of answers that left, and of a candidate's own vote."""
        controller = seen.voter
        if controller is None:
            return None
        given = [
            (request.epoch, request.candidate_id)
            for request, response, _ in seen.answers
            if isinstance(request, VoteRequest) and isinstance(response, VoteResponse)
            if response.granted and not request.pre_vote
        ]
        if controller.raft.role is _CANDIDATE:
            given.append((controller.raft.epoch, seen.node))
        for epoch, candidate in given:
            first = self._votes.setdefault((seen.node, epoch), candidate)
            if first != candidate:
                return self.violated(seen, None, f"voted for {first} and for {candidate} in epoch {epoch}")
        return None


class ValidRoles(Invariant):
    id = "Q08"
    name = "valid roles and states"
    reference = "ValidRolesAndStates"
    looks_at = QUORUM

    def check(self, cluster: ObservedCluster, seen: ObservedStep) -> Violation | None:  # noqa: ARG002
        controller = seen.voter
        if controller is None:
            return None
        raft, me = controller.raft, seen.node
        leader, role = raft.state.leader_id, raft.role
        if role is _LEADER:
            wrong = leader != me or raft.leadership is None
        elif role is _FOLLOWER:
            wrong = leader in (me, NO_LEADER)
        else:
            wrong = role is _CANDIDATE and raft.state.voted_for != me
        if wrong or (raft.leadership is not None and role is not _LEADER):
            return self.violated(seen, None, f"{role.value}, and its state is {raft.state}")
        return None
