"""The broker's settings: which role each belongs to, which are ours to give, and what the broker says to
them.

The harness does not know the broker (it only deploys it), so the program that would be deployed is asked, in
a process of its own and before there is any host: `python -m wrackline.broker.check`.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from wrackline.systems.base import About, DeployError, Refusal, TopicSpec

CONTROLLER_KEYS = frozenset(
    {
        "session_timeout_ms",
        "default_partitions",
        "default_replication_factor",
        "min_insync_replicas",
        "unclean_leader_election",
        "unclean_recovery_strategy",
        "unclean_recovery_window_ms",
        "noop_interval_ms",
        "producer_id_block",
        "placement",
        "reassign_rule",
        "auto_leader_rebalance",
        "leader_imbalance_check_interval_ms",
        "leader_imbalance_per_broker_percent",
        "quorum_election_timeout_ms",
        "quorum_fetch_timeout_ms",
        "quorum_election_backoff_max_ms",
        "quorum_request_timeout_ms",
        "quorum_retry_backoff_ms",
        "quorum_fetch_wait_max_ms",
        "topic_defaults",
    }
)
"""Settings that only a controller knows; any other is given to brokers only."""
BOTH_KEYS = frozenset(
    {
        "metrics_port",
        "log_level",
        "segment_bytes",
        "index_interval_bytes",
        "socket_request_max_bytes",
        "max_connections",
        "connections_max_idle_ms",
        "fetch_max_bytes",
        "connect_timeout_ms",
        "rack",
        "damaged_max_entries",
        "damaged_max_bytes",
        "zookeeper_session_timeout_ms",
        "metadata_log_max_record_bytes_between_snapshots",
        "metadata_log_max_records_between_snapshots",
        "metadata_log_max_snapshot_interval_ms",
        "metadata_log_segment_bytes",
        "quorum_fetch_snapshot_max_bytes",
    }
)
_BY_HARNESS = "the harness gives it to each node; leave it out"
OURS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "role",
            "node_id",
            "controller_id",
            "cluster_id",
            "host",
            "listen",
            "port",
            "replication_port",
            "secret_file",
            "data_dir",
            "controllers",
            "trace_file",
            "zookeeper_connect",
        ),
        _BY_HARNESS,
    ),
    "profile": "give it as system.profile",
    "defects": "give them as system.defects",
}
"""Settings that every node has from us already, and where else they belong."""
LEVEL_ON_ZOOKEEPER: Mapping[str, int | None] = {"zk08": None, "zk08-kip101": 11}
"""Profiles without controllers, and the level that a new cluster of them is given in ZooKeeper."""
FROM_ZOOKEEPER = "kip101"
"""The profile whose controllers take a cluster over from ZooKeeper."""
UPGRADES = (
    ("kraft35", "kip966"),
    ("kip966", "kraft35"),
    ("zk08", "zk08-kip101"),
    ("zk08", FROM_ZOOKEEPER),
    ("zk08-kip101", FROM_ZOOKEEPER),
)
"""From which profile to which nodes can go one by one (docs/rolling-upgrades.md)."""
SESSION_MS = "zookeeper_session_timeout_ms"
GRANTED_MS = (1_000, 10_000)
"""The sessions that our ZooKeeper servers grant: 2 to 20 ticks of 500 ms."""
NOT_ON_ZOOKEEPER: Mapping[str, str] = dict.fromkeys(
    (
        "change-config",
        "elect-preferred",
        "recreate-topic",
        "remove-broker",
        "transfer-leadership",
    ),
    "its brokers serve no such request of an administrator",
) | {
    "controller-failover": "it has no controller",
}
"""Faults that cannot be done to these profiles, and why."""
ASK_S = 60.0
"""The deadline of a process that takes half a second on a machine that does nothing else."""


def of_roles(config: Mapping[str, object], *, broker: bool, controller: bool) -> dict[str, object]:
    """The settings that concern a node with these roles. One that nobody knows goes to brokers, which refuse
    it."""
    return {
        key: value
        for key, value in config.items()
        if key in BOTH_KEYS or (controller if key in CONTROLLER_KEYS else broker)
    }


def not_ours(config: Mapping[str, object]) -> tuple[Refusal, ...]:
    """Settings that would take the place of our own."""
    return tuple(Refusal(About.CONFIG, key, OURS[key]) for key in config if key in OURS)


def refused(nodes: tuple[str, ...], topic: TopicSpec) -> tuple[Refusal, ...]:
    """Returns what the broker would refuse of these configuration files and of the topic. Raises
    DeployError when it does not answer."""
    asked = {"nodes": nodes, "topic": {"name": topic.name, "configs": dict(topic.configs)}}
    return _answer(json.dumps(asked))


@functools.cache
def _answer(question: str) -> tuple[Refusal, ...]:
    command = [sys.executable, "-P", "-m", "wrackline.broker.check"]
    try:
        answer = subprocess.run(
            command,
            input=question,
            capture_output=True,
            text=True,
            timeout=ASK_S,
            check=True,
            env={**os.environ, "PYTHONPATH": _beside_the_broker()},
        ).stdout
        return tuple(
            Refusal(About(one["about"]), one["key"], " ".join(one["problem"].split()))
            for one in json.loads(answer)
        )
    except subprocess.CalledProcessError as died:
        words = (died.stderr.strip().splitlines() or [f"exit code {died.returncode}"])[-1]
        raise DeployError(
            f"control node: the broker cannot be asked ({' '.join(command)}): {words}"
        ) from died
    except (OSError, subprocess.TimeoutExpired, KeyError, ValueError) as error:
        raise DeployError(
            f"control node: the broker cannot be asked ({' '.join(command)}): {error}"
        ) from error


def _beside_the_broker() -> str:
    """Returns the folder of the very package that `wrackline.systems.wrackline.bundle` packs, before
    anything else."""
    result = importlib.util.find_spec("wrackline.broker")
    if result is None or not result.submodule_search_locations:
        raise DeployError("control node: the package wrackline.broker is not installed beside the harness")
    beside = str(Path(result.submodule_search_locations[0]).parents[1])
    return os.pathsep.join(filter(None, (beside, os.environ.get("PYTHONPATH"))))
