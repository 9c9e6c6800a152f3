"""B46, B47, B48: schedules of the controller quorum. There are three controllers; the brokers play no
part."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.messages.admin import (
    AlterPartitionReassignmentsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
)
from wrackline.broker.model.messages.quorum import VoteRequest
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.guided.schedule import guided
from wrackline.simulator.guided.setting import Setting, T
from wrackline.simulator.guided.stage import Stage

THREE = Setting(controllers=3)
QUORUM = {"controllers": 3}
of_quorum = partial(guided, setting=THREE, hunted=QUORUM)
IDLE = Setting(
    controllers=3, lag_ms=1_000, controller={"noop_interval_ms": 600_000, "session_timeout_ms": 60_000}
)
"""Controllers that write nothing of their own for a while: what one of them that was replaced has written and
cannot commit, its answers wait for."""
SNAPSHOTS = THREE.but(
    controller={
        "metadata_log_max_records_between_snapshots": 10,
        "noop_interval_ms": 20,
        "quorum_fetch_snapshot_max_bytes": 500,
    }
)
WITH_SNAPSHOTS = {"controllers": 3, "controller": tuple(SNAPSHOTS.controller.items())}


def active(s: Stage) -> NodeId:
    s.until(lambda: s.world.active_controller() is not None, "an active controller")
    result = s.world.active_controller()
    return 0 if result is None else result.id


def core(s: Stage, node: NodeId) -> Controller | None:
    result = s.world.controllers[node].core
    return result if isinstance(result, Controller) else None


def _leads(s: Stage, node: NodeId) -> bool:
    controller = core(s, node)
    return controller is not None and controller.raft.role is RaftRole.LEADER


def _end(s: Stage, node: NodeId) -> int:
    controller = core(s, node)
    return 0 if controller is None else controller.log.leo


def is_active(s: Stage, node: NodeId) -> bool:
    controller = core(s, node)
    return controller is not None and controller.is_active


@guided("snap_gap", "B48", "Q09", setting=SNAPSHOTS, hunted=WITH_SNAPSHOTS)
def away_past_snapshots(s: Stage) -> None:
    """KAFKA-14238. One voter is down while the others replace the beginning of the metadata log by snapshots;
    when it comes back it must catch up with them."""
    leader = active(s)
    away = next(node for node in s.world.controllers if node != leader)
    s.world.kill(away)
    s.say(f"kill controller {away}")

    def begins_later() -> bool:
        known = core(s, leader)
        return known is not None and known.log.log_start > 0

    s.must(begins_later, "a log that snapshots replace in part")
    s.world.start(away)
    s.say(f"start controller {away}")

    def is_level() -> bool:
        one, other = core(s, leader), core(s, away)
        return one is not None and other is not None and other.log.high_watermark >= one.log.log_start

    s.must(is_level, f"controller {away} level with the others")


@of_quorum("raft_keep_role", "B46", "Q01")
def leader_restarts(s: Stage) -> None:
    """KAFKA-10527. The active controller is killed and is back before any other has missed it."""
    leader = active(s)
    s.kill(leader)
    s.start(leader)
    s.run(3_000)


@of_quorum("raft_no_fsync", "B46", "Q04")
def metadata_changes(s: Stage) -> None:
    """KAFKA-10533. Broker 3 is killed and comes back. At every commit of that an invariant asks whether the
    record is on the disks of a majority."""
    active(s)
    s.kill(3)
    s.until(lambda: s.fenced(3), "3 fenced")
    s.start(3)
    s.until(lambda: not s.fenced(3), "3 unfenced")


@of_quorum("raft_forget_vote", "B46", "Q07")
def asked_twice(s: Stage) -> None:
    """A voter that has voted restarts, and another candidate of the same epoch asks for its vote."""
    active(s)
    voter, *candidates = sorted(s.world.controllers)

    def ask(candidate: NodeId) -> None:
        request = VoteRequest("simulated", voter, 50, candidate, UUID(int=candidate), 50, 10_000)
        s.world.asked(voter, request)

    ask(candidates[0])
    s.kill(voter)
    s.start(voter)
    ask(candidates[1])


@of_quorum("raft_commit_old_epoch", "B46", "Q03")
def figure_8(s: Stage) -> None:
    """Figure 8 of the Raft paper. The active controller is cut off and writes on; another is elected, has a
    record of its own epoch, and is killed. The first leads again, on a slow disk: the third takes the records
    of the old epoch before the first's new one is flushed. The first loses power, and the second, whose last
    epoch is newer, leads."""
    first = active(s)
    others = [node for node in s.world.controllers if node != first]
    s.cut(first, *others)
    s.kill(3)
    deaf = [s.hold("MetadataFetchRequest", source=a, to=b) for a, b in (others, others[::-1])]
    s.until(lambda: any(_leads(s, node) for node in others), "another leads")
    second, third = sorted(others, key=lambda node: not _leads(s, node))
    s.run(200)
    s.kill(second)
    for hold in deaf:
        s.drop(hold)
    s.until(lambda: not _leads(s, first), f"the resignation of {first}")
    s.run(100)
    s.world.controllers[first].disk.slow_ms = 3_000
    s.mend(first, third)
    s.until(lambda: _leads(s, first), f"{first} leads again", 30_000)
    own = _end(s, first) - 1
    s.until(lambda: _end(s, third) >= own, f"what {first} wrote before, on {third}")
    s.run(600)
    s.world.power(first, {})
    s.say(f"power cut at {first}")
    s.start(second)
    s.until(lambda: _leads(s, second) or _leads(s, third), "another leads again", 30_000)
    s.run(500)


@guided(
    "zombie_ctl_fenced",
    "B42",
    "liveness",
    defects=("zombie_ctl_fenced", "no_check_quorum"),
    setting=IDLE,
    harmless=("no_check_quorum",),
    hunted=QUORUM,
)
def asks_who_was_replaced(s: Stage) -> None:
    """KAFKA-14154. The active controller is cut from the others and goes on; another makes broker 2 the
    leader, in an epoch that the first does not know. 2 is cut off from those that do, and asks the first to
    take 3 out of the ISR."""
    old = active(s)
    others = [node for node in s.world.controllers if node != old]
    s.commit(b"m1")
    s.cut(old, *others)
    s.cut(old, *s.world.brokers)
    s.until(lambda: any(is_active(s, node) for node in others), "another controller")
    new = next(node for node in others if is_active(s, node))
    s.run(1_000)
    moved = AlterPartitionReassignmentsRequest((Reassignment(T, (2, 1, 3)),), 10_000)
    s.world.asked(new, moved)
    s.world.asked(new, ElectLeadersRequest(ElectionType.PREFERRED, (T,), 10_000))
    s.until(lambda: s.leader == 2, "2 leads")
    s.cut(2, *others)
    s.mend(2, old)
    late = s.hold("FetchRequest", source=3, to=2)
    s.run(6_000)
    s.cut(2, old)
    s.mend(2, *others)
    s.must(lambda: s.isr == {1, 2}, "3 out of the ISR", 20_000)
    s.release(late)


@of_quorum("no_check_quorum", "B47", "liveness")
def deaf_leader(s: Stage) -> None:
    """KAFKA-15489. The active controller receives nothing from the other voters; what it sends reaches
    them."""
    leader = active(s)
    for other in s.world.controllers:
        if other != leader:
            s.world.cut(other, leader, one_way=True)
    controller = core(s, leader)
    s.must(
        lambda: controller is not None and not controller.is_active,
        f"the resignation of {leader}, which hears nobody",
    )
