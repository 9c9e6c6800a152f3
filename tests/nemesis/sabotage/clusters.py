"""Clusters of our broker on which faults are sabotaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.nemesis.load import DEADLINE_S, started, wait_until
from tests.nemesis.sabotage.sabotages import Place
from wrackline.fleets.base import Fleet
from wrackline.systems.base import PartitionState, TopicSpec


@contextmanager
def cluster(fleet: Fleet, bundle_cache: Path, *, replicas: int = 3, **settings: Any) -> Iterator[Place]:
    """A running cluster with the topic ``log``."""
    topic = TopicSpec("log", 3, replicas, {"min.insync.replicas": "2"})
    with started(fleet, bundle_cache, topic, **settings) as system:
        yield Place(fleet, system, ("log",))


def partitions(place: Place) -> list[PartitionState]:
    return [one for one in place.system.describe().partitions if one.topic == "log"]


def settled(place: Place, holds: Callable[[list[PartitionState]], bool] = bool) -> None:
    """Every node answers, every ISR is full, and whatever else shall hold."""
    place.system.wait_ready(timeout_s=DEADLINE_S)

    def quiet() -> bool:
        seen = partitions(place)
        return all(one.full_isr and one.leader >= 0 for one in seen) and holds(seen)

    wait_until(quiet, "every ISR full, and what else shall hold")
