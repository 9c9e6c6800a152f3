"""Clusters of our broker on which faults are sabotaged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.nemesis.sabotage.sabotages import Place
from wrackline.fleets.base import Fleet
from wrackline.systems.base import DeployError, PartitionState, TopicSpec
from wrackline.systems.wrackline.system import WracklineSystem

CONFIG = {
    "session_timeout_ms": 1_500,
    "heartbeat_interval_ms": 200,
    "quorum_election_timeout_ms": 500,
    "quorum_fetch_timeout_ms": 1_000,
}
DEADLINE_S = 60.0


@contextmanager
def cluster(
    fleet: Fleet,
    bundle_cache: Path,
    *,
    brokers: Sequence[str],
    controllers: Sequence[str],
    spares: Sequence[str] = (),
    replicas: int = 3,
    profile: str = "kip966",
) -> Iterator[Place]:
    """A running cluster with the topic ``log``."""
    system = WracklineSystem(
        fleet,
        brokers=brokers,
        controllers=controllers,
        spares=spares,
        cluster_id="test-sabotage",
        profile=profile,
        config=CONFIG,
        bundle_cache=bundle_cache,
    )
    system.install()
    for node in system.nodes:
        if not node.spare:
            system.start(node)
    system.wait_ready()
    system.create_topic(TopicSpec("log", 3, replicas, {"min.insync.replicas": "2"}))
    try:
        yield Place(fleet, system, ("log",))
    finally:
        system.close()


def partitions(place: Place) -> list[PartitionState]:
    return [one for one in place.system.describe().partitions if one.topic == "log"]


def settled(place: Place, holds: Callable[[list[PartitionState]], bool] = bool) -> None:
    """Every node answers, every ISR is full, and whatever else shall hold."""
    deadline = time.monotonic() + DEADLINE_S
    place.system.wait_ready(timeout_s=DEADLINE_S)
    while True:
        try:
            seen = partitions(place)
            if all(one.full_isr and one.leader >= 0 for one in seen) and holds(seen):
                return
            last = str(seen)
        except DeployError as wrong:
            last = str(wrong)
        assert time.monotonic() < deadline, last
        time.sleep(0.1)
