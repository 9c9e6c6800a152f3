"""B46, B47, B48: schedules of the controller quorum. There are three controllers; the brokers play no
part."""

from __future__ import annotations

from uuid import UUID

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.quorum_messages import VoteRequest
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.schedule import Guided
from wrackline.simulator.guided.setting import Setting
from wrackline.simulator.guided.stage import Stage

THREE = Setting(controllers=3)
QUORUM = {"controllers": 3}


def active(s: Stage) -> NodeId:
    s.until(lambda: s.world.active_controller() is not None, "an active controller")
    found = s.world.active_controller()
    return 0 if found is None else found.id


def core(s: Stage, node: NodeId) -> Controller | None:
    found = s.world.controllers[node].core
    return found if isinstance(found, Controller) else None


def leader_restarts(s: Stage) -> None:
    """KAFKA-10527. The active controller is killed and is back before any other has missed it."""
    leader = active(s)
    s.kill(leader)
    s.start(leader)
    s.run(3_000)


def metadata_changes(s: Stage) -> None:
    """KAFKA-10533. Broker 3 is killed and comes back. At every commit of that an invariant asks whether the
    record is on the disks of a majority."""
    active(s)
    s.kill(3)
    s.until(lambda: s.fenced(3), "3 fenced")
    s.start(3)
    s.until(lambda: not s.fenced(3), "3 unfenced")


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


SNAPSHOTS = THREE.but(
    controller={
        "metadata_log_max_records_between_snapshots": 10,
        "noop_interval_ms": 20,
        "quorum_fetch_snapshot_max_bytes": 500,
    }
)

WITH_SNAPSHOTS = {"controllers": 3, "controller": tuple(SNAPSHOTS.controller.items())}

SCHEDULES = (
    Guided(
        "snap_gap",
        "B48",
        ("snap_gap",),
        away_past_snapshots,
        frozenset({"Q09"}),
        SNAPSHOTS,
        hunted=WITH_SNAPSHOTS,
    ),
    Guided(
        "raft_keep_role",
        "B46",
        ("raft_keep_role",),
        leader_restarts,
        frozenset({"Q01"}),
        THREE,
        hunted=QUORUM,
    ),
    Guided(
        "raft_no_fsync", "B46", ("raft_no_fsync",), metadata_changes, frozenset({"Q04"}), THREE, hunted=QUORUM
    ),
    Guided(
        "raft_forget_vote",
        "B46",
        ("raft_forget_vote",),
        asked_twice,
        frozenset({"Q07"}),
        THREE,
        hunted=QUORUM,
    ),
    Guided(
        "no_check_quorum",
        "B47",
        ("no_check_quorum",),
        deaf_leader,
        frozenset({"liveness"}),
        THREE,
        hunted=QUORUM,
    ),
)
