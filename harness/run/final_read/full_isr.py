"""Waiting until every replica of the topics is in the ISR."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from wrackline.harness.specification.sections import TopicSpec
from wrackline.systems.base import ClusterState, DeployError, System


def wait_full_isr(
    system: System,
    topics: Sequence[TopicSpec],
    timeout_s: float,
    when: str,
    *,
    give_up: Callable[[], bool],
    pause: Callable[[], None],
) -> ClusterState:
    """Waits until every partition of the topics has all its replicas in the ISR. ``when`` completes the
    sentence "not every replica was in the ISR 60 s ...". Raises DeployError at the deadline, or once
    ``give_up`` says so; ``pause`` is called between two questions."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            state = system.describe(timeout_s=2.0)
            last = short_of_full_isr(state, {one.name: one.partitions for one in topics})
            if not last:
                return state
        except DeployError as error:
            last = str(error)
        if time.monotonic() >= deadline or give_up():
            raise DeployError(f"not every replica was in the ISR {timeout_s:g} s {when}; last seen: {last}")
        pause()


def short_of_full_isr(state: ClusterState, topics: Mapping[str, int]) -> str:
    """Returns what keeps the topics (name -> partitions) from having all replicas of all their partitions in
    the ISR; empty when nothing does."""
    there = [each for each in state.partitions if each.topic in topics]
    short = [
        f"{each.topic}-{each.partition} leader {each.leader} isr {list(each.isr)}"
        for each in there
        if not each.full_isr or each.leader < 0
    ]
    if len(there) != (partitions := sum(topics.values())):
        short.append(f"{len(there)} of {partitions} partitions")
    return "; ".join(short)
