"""The made-up run of `synthetic_run`: its hosts, its faults, and when they were."""

from __future__ import annotations

from typing import Any

from wrackline.history.model import RunInfo, TopicInfo

S = 1_000_000_000
MS = 1_000_000
TEST_ID = "20260311T101502Z-power-cut-5f0a"
NODES = {"1": "n1", "2": "n2", "3": "n3"}
LEADERS = {0: "n1", 1: "n2", 2: "n3"}
CUT_AT = 36 * S
LOST = 42
"""Records of log-1 that the power cut takes."""

INFO = RunInfo(
    test_id=TEST_ID,
    name="acks all, power cut of the leader",
    seed=8_675_309,
    started_at="2026-03-11T10:15:02Z",
    system="wrackline",
    workload="log",
    acks="all",
    idempotence=False,
    topics=(TopicInfo("log", 3, 3, 2),),
    profile="kip966",
    defects=("truncate_to_hw",),
    rate=100.0,
    concurrency=13,
    nodes=NODES,
    harness_version="0.1.0",
)

FAULTS: list[dict[str, Any]] = [
    {
        "id": "f1", "fault": "partition-isolate", "targets": ["n1"], "role": "leader(log-0)",
        "begin_ns": 12 * S, "active_ns": 12 * S + 140 * MS, "undo_ns": 18 * S, "ended_ns": 18 * S + 210 * MS,
        "proved": True, "lossy": [], "lost": {},
        "proof": "chain WRACK-f1 on n1 dropped 1,932 packets; 10 of 10 pings from n2 and n3 were lost",
    },
    {
        "id": "f2", "fault": "kill", "targets": ["n3"], "role": "isr-last",
        "begin_ns": 24 * S, "active_ns": 24 * S + 60 * MS, "undo_ns": 27 * S, "ended_ns": 29 * S + 300 * MS,
        "proved": False, "lossy": [], "lost": {},
        "proof": "pid 4121 was still running 2 s after SIGKILL",
    },
    {
        "id": "f3", "fault": "power-cut", "targets": ["n2"], "role": "leader(log-1)",
        "begin_ns": CUT_AT, "active_ns": CUT_AT + 22 * MS, "undo_ns": 41 * S, "ended_ns": 44 * S + 500 * MS,
        "proved": True, "lossy": ["n2"],
        "lost": {"n2": {"log-1/00000000000000000000.log": 45_056, "log-1/00000000000000000000.index": 96,
                        "log-0/00000000000000000000.log": 12_288}},
        "proof": "n2 lost 57,440 bytes that were never synced; link down, processes gone, disk shut down in "
            "22 ms",
    },
]  # fmt: skip

HEADLINE = (
    "42 acknowledged writes of log-1 were lost and two replicas of log-2 diverged; the configuration "
    "promises neither with one lossy shutdown."
)
REASONS = ["lost-write: 42 findings, forbidden", "replica-divergence: 1 finding, forbidden always"]
