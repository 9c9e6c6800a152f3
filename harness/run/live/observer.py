"""Writes down what the cluster says of itself: leaders, epochs, ISR and ELR, at every change and once a
second."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection

from wrackline.fleets.base import FleetError
from wrackline.history import Recorder, RecordingFailed
from wrackline.history.model import CONTROL, Event, Type
from wrackline.systems.base import ClusterState, DeployError, System

ASK_EVERY_S = 0.25
WRITE_EVERY_S = 1.0
TIMEOUT_S = 2.0


class Observer:
    """A thread that asks the cluster's metadata while the run goes on. A cluster that does not answer gives
    no row: silence is in the gaps between the rows."""

    def __init__(self, system: System, recorder: Recorder, topics: Collection[str]) -> None:
        self._system = system
        self._recorder = recorder
        self._topics = topics
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="observer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(TIMEOUT_S + 1)

    def _run(self) -> None:
        last: ClusterState | None = None
        written_at = 0.0
        while not self._ended.wait(ASK_EVERY_S):
            try:
                state = self._system.describe(timeout_s=TIMEOUT_S)
            except (DeployError, FleetError):
                continue
            now = time.monotonic()
            if state == last and now - written_at < WRITE_EVERY_S:
                continue
            last, written_at = state, now
            try:
                self._recorder.record(cluster_event(state, self._topics))
            except RecordingFailed:
                return


class Assignment:
    """The replicas of each partition of the topics, written down whenever a partition has moved."""

    def __init__(self, system: System, recorder: Recorder, topics: Collection[str]) -> None:
        self._system = system
        self._recorder = recorder
        self._topics = topics
        self._last: dict[str, dict[str, list[int]]] = {}
        """By topic: replicas by partition, as recorded last."""

    def record(self, state: ClusterState) -> None:
        """Raises RecordingFailed."""
        current: dict[str, dict[str, list[int]]] = {topic: {} for topic in self._topics}
        for one in state.partitions:
            if one.topic in current:
                current[one.topic][str(one.partition)] = list(one.replicas)
        if current == self._last:
            return
        nodes = {str(node.node_id): node.host.name for node in self._system.nodes}
        for topic, assignment in current.items():
            if assignment != self._last.get(topic):
                extra = {"assignment": assignment, "nodes": nodes}
                self._recorder.record(Event(CONTROL, Type.INFO, "assignment", topic=topic, extra=extra))
        self._last = current
        self._recorder.record(cluster_event(state, self._topics))


def cluster_event(state: ClusterState, topics: Collection[str]) -> Event:
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "isr": list(partition.isr),
            "elr": list(partition.elr),
            "replicas": list(partition.replicas),
        }
        for partition in state.partitions
        if partition.topic in topics
    ]
    extra = {"controller": state.controller, "brokers": list(state.brokers), "partitions": partitions}
    return Event(CONTROL, Type.INFO, "cluster", extra=extra)
