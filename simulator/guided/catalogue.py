"""The catalogue of guided schedules.

A schedule is a function of a ``Stage``. It runs twice, with the defect and without it; with the defect an
oracle must fire, without it none may. ``SCHEDULES`` has them all, by name. In their docstrings the brokers
are 1, 2, 3 (and 4), broker 1 leads the only partition at first unless the text says otherwise, and records
are named by their values (m1, m2, x, y). To isolate a broker is to cut it off from all others until the
controller has fenced it.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.scenarios import SCENES
from wrackline.simulator.guided import (
    isr,
    lifecycle,
    outages,
    quorum,
    requests,
    truncation,
)
from wrackline.simulator.guided.scene import schedules
from wrackline.simulator.guided.schedule import Guided
from wrackline.simulator.world.zookeeper_door import of_zookeeper

_FAMILIES = (truncation, isr, lifecycle, requests, quorum, outages)
SCHEDULES: Mapping[str, Guided] = {
    guided.name: guided
    for guided in (
        *(guided for scene in SCENES.values() for guided in schedules(scene)),
        *(one for family in _FAMILIES for one in vars(family).values() if isinstance(one, Guided)),
        *of_zookeeper("schedules"),
    )
}

_ORDER = "needs the order of single messages"
_RECORD = "needs single records at known offsets"
_DISK = "acts on the simulated disk alone, or needs to say what of a log survives"
_QUORUM = "needs control over each controller of a quorum"
NO_SCENE: Mapping[str, str] = {
    "trunc_hw+no_divergence_check": _DISK,
    "kip101_v0": _RECORD,
    "no_epoch_assign": _RECORD,
    "trunc_hw+hw_ckpt_skip": "needs brokers that start without a controller",
    "drop_begun_batch": _RECORD,
    "hw_before_trunc": _RECORD,
    "elr_not_cleared": "the scene shows the other half, B31",
    "keep_stale_peers": _ORDER,
    "clean_by_presence+keep_clean_file": _DISK,
    "no_broker_epoch": _ORDER,
    "epoch_ckpt_no_fsync": _DISK,
    "no_topic_id": "no scene deletes the topic that is judged",
    "apply_stale_off": _ORDER,
    "apply_stale_resp": _ORDER,
    "keep_told_session": _ORDER,
    "no_client_epoch": "needs a client that names an epoch of its choice",
    "snap_gap": _QUORUM,
    "raft_keep_role": _QUORUM,
    "raft_no_fsync": _QUORUM,
    "raft_forget_vote": _QUORUM,
    "raft_commit_old_epoch": _QUORUM,
    "zombie_ctl_fenced": _QUORUM,
    "no_check_quorum": _QUORUM,
    "acks=0": "no client of a scene takes what it sent for acknowledged",
    "flush_every_write": _DISK,
    "flush_every_n": _DISK,
    "flush_every_ms": _DISK,
    "rack_loses_power": "needs racks",
    "slow_disk": _DISK,
    "zombie_leader": _RECORD,
    "no_idempotence": _ORDER,
    "jepsen_2013": "its schedule on hosts also tells how a checkpoint of that time diverges",
    "migrate_without_fence": "needs ZooKeeper, and a controller that takes over",
    "migrate_early_watermark": "needs ZooKeeper, and a controller that takes over",
}
"""Why a schedule is told for the simulator alone, by its name."""
