"""Each drill passes in a cluster that is right, and fails where one line of what it asks for is wrong."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.simulator.deviations import outcome_of_line
from wrackline.simulator.drills.drill import EVERY, do
from wrackline.simulator.drills.ground import Drill
from wrackline.simulator.drills.progress import rest
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.mutants.command import Outcome
from wrackline.simulator.run.session import Run

BROKERS, REGISTRATION = "broker/core/controller/decisions/brokers.py", "draft.rules.registration"
DEVIATIONS = {
    # drill: (file, part of the line, change, seeds)
    "unusable_logs": (
        "broker/core/replication/partitions.py",
        "if image.tp in self._offline and self._may_begin_anew(image):",
        "without 'self._may_begin_anew(image)'",
        1,
    ),
    "silent_broker": (BROKERS, "return min(contacts)", "min becomes max", 4),
    "laggard": (
        "broker/rules/replication/isr.py",
        "return facts.leo != facts.leader_leo",
        "and becomes or",
        2,
    ),
    "controlled_shutdown": (BROKERS, "session.metadata_offset = max(", "is left out", 2),
    "quorum": ("broker/core/quorum/voter.py", "if request.epoch > self.epoch:", "> becomes >=", 2),
    "reassignment": (
        "broker/rules/placement/reassign.py",
        "replicas=None if to.replicas == old.replicas",
        "its first choice always",
        2,
    ),
    "restart_of_all": (
        "broker/core/controller/unclean_recovery.py",
        "return broker in self.present and broker not in self.ends",
        "not in becomes in",
        3,
    ),
    "too_small_isr": (
        "broker/rules/replication/produce.py",
        "if acks == Acks.ALL and isr_size < min_isr:",
        "its branch is never taken",
        1,
    ),
    "late_proposals": ("broker/rules/replication/isr.py", "return item.partition_epoch <", "< becomes >=", 1),
    "late_heartbeats": (
        BROKERS,
        "if broker is None or not rules.has_right_epoch",
        "its branch is never taken",
        1,
    ),
    "late_fetches": (
        "broker/rules/replication/reads.py",
        "if asked in (NO_EPOCH, own):",
        "its branch is always taken",
        1,
    ),
    "followers_answer_nobody": (
        "broker/core/requests/fetch.py",
        "if replica.leader is None or (request.replica_id",
        "its branch is never taken",
        1,
    ),
    "deletion_of_records": (
        "broker/core/requests/delete_records.py",
        "if not 0 <= target <= replica.high_watermark:",
        "its branch is never taken",
        1,
    ),
    "sequences": (
        "broker/rules/replication/produce.py",
        "if epoch < known.producer_epoch:",
        "its branch is never taken",
        1,
    ),
    "producer_ids": (BROKERS, f"if not {REGISTRATION}.has_right_epoch(", "without not", 1),
    "fetch_session": ("broker/core/requests/fetch_sessions.py", "epoch: int = 1", "1 becomes 2", 2),
    "state_of_the_quorum": (
        "broker/core/quorum/leader.py",
        "me = QuorumReplica(self._ctx.me, self._log.leo, directory_id, 0.0, 0.0)",
        "arguments 1 and 2 in the other order",
        1,
    ),
    "settings": (
        "broker/core/requests/describe_configs.py",
        'elif resource.kind == BROKER and resource.name in ("", str(config.node_id)):',
        "in becomes not in",
        1,
    ),
    "life_of_a_topic": (
        "broker/core/controller/decisions/topics.py",
        "if not 1 <= factor <= len(live)",
        "1 becomes 2",
        2,
    ),
    "growth_of_a_topic": (
        "broker/core/controller/decisions/topics.py",
        "if not known < wanted.count <= MAX_PARTITIONS",
        "without not",
        1,
    ),
    "moves_of_replicas": (
        "broker/core/controller/decisions/reassignments.py",
        "if not Assignment.of(partition).moves:",
        "without not",
        1,
    ),
    "alteration_of_settings": (
        "broker/core/controller/decisions/configs.py",
        "if op == AlterOp.DELETE:",
        "its branch is never taken",
        1,
    ),
    "refused_features": (
        "broker/rules/placement/features.py",
        "if wanted.upgrade_type == UpgradeType.UPGRADE:",
        "its branch is never taken",
        2,
    ),
    "refused_elections": (
        "broker/core/controller/forced_elections.py",
        "if partition.leader != NO_LEADER:",
        "!= becomes ==",
        1,
    ),
    "long_poll": (
        "broker/core/requests/fetch.py",
        "if request.max_wait_ms <= 0 or any(faults)",
        "without not",
        1,
    ),
    "refused_batches": (
        "broker/core/replication/fetching/validation.py",
        "if not crc_is_right(header, batch):",
        "its branch is never taken",
        1,
    ),
    "return_by_snapshot": (
        "broker/core/quorum/snapshot_fetching.py",
        "self._ask_piece(download)",
        "is left out",
        4,
    ),
    "leader_epochs": (
        "broker/rules/replication/epoch_end.py",
        "if epoch == cache.latest:",
        "its branch is always taken",
        1,
    ),
    "voters": (
        "broker/core/quorum/votes.py",
        "if cluster_id != ctx.config.cluster_id:",
        "its branch is never taken",
        1,
    ),
    "pieces_of_a_snapshot": (
        "broker/core/quorum/leader.py",
        "elif error is NO_ERROR and not 0 <= request.position",
        "its branch is never taken",
        1,
    ),
    "log_of_metadata": (
        "broker/core/quorum/log.py",
        "if asked in (NO_EPOCH, own):",
        "its branch is always taken",
        1,
    ),
    "reads_of_a_log": (
        "broker/core/requests/offsets.py",
        "if part.timestamp == LATEST:",
        "its branch is never taken",
        1,
    ),
    "state_of_the_cluster": (
        "broker/core/requests/describe.py",
        "offline=tuple(b for b in partition.replicas",
        "without not",
        1,
    ),
    "progress_of_the_quorum": (
        "broker/core/quorum/leader.py",
        "self.leo_then, self.last_fetch_ms, self.fetched =",
        "True becomes False",
        1,
    ),
    "deadlines": (
        "broker/core/requests/delete_records.py",
        "self.deadlines.add(request_id, self._ctx.now_ms + request.timeout_ms)",
        "is left out",
        1,
    ),
    "end_of_a_leadership": (
        "broker/core/dispatcher.py",
        "self._fetch.purgatory.look_at(replica)",
        "is left out",
        1,
    ),
    "large_batches": (
        "broker/core/requests/produce.py",
        "self._unfinished[taken.request_id] = taken",
        "is left out",
        1,
    ),
    "shutdown_unheard": (
        "broker/core/lifecycle.py",
        "self._ctx.now_ms + patience",
        "becomes 'self._ctx.now_ms - patience'",
        1,
    ),
    "writes_without_an_answer": (
        "broker/core/requests/produce.py",
        "if acks == Acks.NONE:",
        "its branch is never taken",
        1,
    ),
    "requests_out_of_place": (
        "broker/core/requests/forwarding.py",
        "if request.transactional_id is not None:",
        "its branch is never taken",
        1,
    ),
    "out_of_range": (
        "broker/core/replication/fetching/following.py",
        "if result.error is ErrorCode.offset_out_of_range:",
        "its branch is never taken",
        3,
    ),
    "shorter_log": (
        "broker/rules/leadership/raft.py",
        "if ballot.epoch != voter.state.epoch or not self.up_to_date(ballot.end, voter.end):",
        "without 'not self.up_to_date(ballot.end, voter.end)'",
        14,
    ),
    "away_from_controllers": (
        "broker/core/requests/forwarding.py",
        "self.deadlines.add(request_id, self._ctx.now_ms + self._uplink.timeout_ms)",
        "is left out",
        1,
    ),
    "loss_of_snapshots": (
        "broker/core/quorum/metadata_replica.py",
        "self._begin_anew(recovered, snapshots)",
        "is left out",
        6,
    ),
    "supported_levels": (
        "broker/core/controller/decisions/features.py",
        "self.known[request.controller_id] = request.levels",
        "is left out",
        1,
    ),
    "registration_of_a_broker": (
        BROKERS,
        "if request.cluster_id != draft.config.cluster_id:",
        "its branch is never taken",
        1,
    ),
    "refused_brokers": (
        "broker/rules/replication/isr.py",
        "len(set(isr)) != len(isr)",
        "without 'len(set(isr)) != len(isr)'",
        1,
    ),
    "replicas_of_a_fenced_broker": (
        "broker/core/controller/decisions/elections.py",
        "if not rules.may_prefer(",
        "its branch is never taken",
        1,
    ),
    "shutdown_of_a_leader": (
        "broker/rules/leadership/registration.py",
        "known = beat.lowest_active_offset is None or",
        ">= becomes <",
        1,
    ),
    "partition_without_a_leader": (
        "broker/core/controller/forced_elections.py",
        "self._counts.timed_out += 1",
        "is left out",
        30,
    ),
    "several_partitions": (
        "broker/core/replication/purgatory.py",
        "if heap and (self._armed_ms is None or heap[0][0]",
        "without 'heap[0][0] < self._armed_ms'",
        1,
    ),
    "settings_in_force": (
        "broker/core/replication/replica.py",
        "self._flush_timer = False",
        "False becomes True",
        3,
    ),
    "progress_of_a_follower": (
        "broker/core/replication/leader.py",
        "elif offset >= state.leader_leo_at_fetch:",
        "its branch is always taken",
        2,
    ),
    "throttled_replicas": (
        "broker/core/replication/throttle.py",
        "added = partition is not None and",
        "in becomes not in",
        1,
    ),
    "producers_that_are_silent": (
        "broker/core/maintenance.py",
        "replica.log.producers.expire(looks)",
        "is left out",
        12,
    ),
    "commitment_of_metadata": (
        "broker/core/quorum/leader.py",
        "if result.error is NO_ERROR and result.diverging is None",
        "without 'result.diverging is None'",
        2,
    ),
    "ballots": (
        "broker/rules/leadership/raft.py",
        "if state.voted_for != NO_LEADER:",
        "its branch is never taken",
        2,
    ),
    "answers_of_a_leader": (
        "broker/core/replication/fetching/following.py",
        "replica.set_high_watermark(max(offset, replica.log.log_start))",
        "is left out",
        1,
    ),
}
"""One line of the broker that is wrong for each drill."""


def whole(seed: int, profile: str) -> Run:
    """A run of a few records, up to its drills."""
    drawn = swarm(Setup(seed, profile=profile, controllers=3))
    session = Run(replace(drawn, seconds=1.0, kinds=(), tcp=True))
    for part in (session.boot, session.main, session.heal):
        part()
    assert not session.found
    return session


@pytest.mark.parametrize("drill", EVERY, ids=lambda drill: drill.__name__)
@pytest.mark.parametrize("profile", ["kip966", "kraft35", "kip101"])
def test_a_cluster_that_is_right_passes(drill: Drill, profile: str) -> None:
    session = whole(1, profile)
    do(session, [drill], Random(1), session.setup.partitions)
    assert not session.found


def test_rest_ends_where_a_broker_does_not_rest() -> None:
    session = whole(1, "kip966")
    world = session.world
    world.at(world.now_ms + 200, lambda: world.kill(2))
    do(session, [rest], Random(1), session.setup.partitions)
    assert [violation.oracle for violation in session.found] == ["drill"]


@pytest.mark.parametrize(
    "drill", [each for each in EVERY if each is not rest], ids=lambda each: each.__name__
)
def test_a_drill_fails_where_a_line_is_wrong(drill: Drill) -> None:
    outcome = mutant(drill.__name__)
    assert outcome.reached
    assert outcome.oracle not in ("", "import", "exit", "hang"), outcome.line


def mutant(drill: str) -> Outcome:
    file, source, change, seeds = DEVIATIONS[drill]
    return outcome_of_line(file, source, change, drill, seeds)
