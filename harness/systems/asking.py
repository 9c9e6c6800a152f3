"""Asking a cluster about itself: several brokers at once, since one that is cut off speaks of the past."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from kio.schema.errors import ErrorCode

from harness.fleet.base import Fleet
from harness.systems.base import ClusterState, DeployError, Node, PartitionState, TopicSpec
from harness.systems.protocol import Connection, ProtocolError

ASK_TIMEOUT_S = 1.0
"""How long one broker may take to answer."""
GRACE_S = 0.1
"""How long the slower brokers may take once one has answered."""
BUSY_S = 0.05
"""How long to wait for another thread's question to a broker: a silent one must not hold up the rest."""

T = TypeVar("T", bound=Hashable)


class ClusterClient:
    """Keeps one connection to each broker. Safe to use from several threads."""

    def __init__(self, fleet: Fleet, brokers: Sequence[Node], controllers: Sequence[Node]) -> None:
        self._fleet = fleet
        self._brokers = tuple(brokers)
        self._controllers = tuple(controllers)
        self._connections: dict[int, Connection] = {}
        self._asking = {node.node_id: threading.Lock() for node in brokers}
        self._askers = ThreadPoolExecutor(max_workers=max(1, 2 * len(brokers)), thread_name_prefix="ask")

    def close(self) -> None:
        self._askers.shutdown(wait=False, cancel_futures=True)
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None:
        """Create it and wait until every partition has a leader and its full ISR. Raises DeployError."""
        deadline = time.monotonic() + timeout_s
        last = self._ask_to_create(topic, deadline)
        while time.monotonic() < deadline:
            try:
                partitions = [one for one in self.describe().partitions if one.topic == topic.name]
            except DeployError as wrong:
                last = str(wrong)
            else:
                last = f"partitions {partitions}"
                if len(partitions) == topic.partitions and all(map(_is_served, partitions)):
                    return
            time.sleep(0.05)
        raise DeployError(
            f"topic {topic.name} was not ready after {timeout_s:g} s; last seen: {last}; "
            f"look at the logs of {', '.join(node.host.name for node in self._controllers)}"
        )

    def _ask_to_create(self, topic: TopicSpec, deadline: float) -> str:
        last = "nothing"
        asked_before = False
        while (left := deadline - time.monotonic()) > 0:
            for node in self._brokers:
                first_try, asked_before = not asked_before, True
                try:
                    with self._connect(node, timeout_s=min(left, 10.0)) as connection:
                        done = connection.create_topic(topic, timeout_s=left)
                except ProtocolError as wrong:
                    last = str(wrong)
                    continue
                last = f"{node.host.name}: {done.error.name}: {done.message or 'no message'}"
                if done.error is ErrorCode.none:
                    return last
                if done.error is ErrorCode.topic_already_exists and not first_try:
                    return last  # an earlier try whose answer we did not get
                if not done.error.retriable:
                    raise DeployError(
                        f"topic {topic.name} cannot be created: {last}; mend the topic's settings"
                    )
            time.sleep(0.1)
        raise DeployError(f"topic {topic.name} could not be created in time; last seen: {last}")

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        """Asks all brokers at once; what they say is merged, the freshest word on each partition wins."""
        deadline = time.monotonic() + timeout_s
        waiting: dict[Future[ClusterState], Node] = {
            self._askers.submit(self._ask, node, min(timeout_s, ASK_TIMEOUT_S)): node
            for node in self._brokers
        }
        answers: list[ClusterState] = []
        problems: list[str] = []
        while waiting and (left := deadline - time.monotonic()) > 0:
            done, _ = wait(
                waiting, timeout=min(left, GRACE_S) if answers else left, return_when=FIRST_COMPLETED
            )
            if not done:
                break
            for future in done:
                node = waiting.pop(future)
                try:
                    answers.append(future.result())
                except ProtocolError as wrong:
                    problems.append(f"{node.host.name}: {wrong}")
        if not answers:
            silent = [f"{node.host.name}: no answer in {timeout_s:g} s" for node in waiting.values()]
            raise DeployError("no broker answers: " + "; ".join([*problems, *silent]))
        return self._name_controller(freshest(answers))

    def _ask(self, node: Node, timeout_s: float) -> ClusterState:
        lock = self._asking[node.node_id]
        if not lock.acquire(timeout=BUSY_S):
            raise ProtocolError(f"{node.host.name}: still silent on the question before")
        try:
            if kept := self._connections.pop(node.node_id, None):
                try:
                    return self._answer(node, kept)
                except ProtocolError as wrong:
                    if isinstance(wrong.__cause__, TimeoutError):
                        raise
                    # Most likely the broker was restarted since: a new connection tells.
            return self._answer(node, self._connect(node, timeout_s=timeout_s))
        finally:
            lock.release()

    def _answer(self, node: Node, connection: Connection) -> ClusterState:
        try:
            state = connection.cluster_state()
        except ProtocolError:
            connection.close()
            raise
        self._connections[node.node_id] = connection
        return state

    def _connect(self, node: Node, *, timeout_s: float) -> Connection:
        with self._fleet.entered():
            return Connection(node.host.address, node.port, timeout_s=timeout_s)

    def _name_controller(self, state: ClusterState) -> ClusterState:
        """KRaft brokers name any broker as controller in Metadata; a sole controller is known without asking."""
        if len(self._controllers) != 1:
            return state
        return ClusterState(self._controllers[0].node_id, state.brokers, state.partitions)


def freshest(answers: Sequence[ClusterState]) -> ClusterState:
    """One state from the answers of several brokers (at least one).

    Per partition the highest leader epoch wins (it only grows), then what most brokers say. Metadata answers
    carry no offset of the metadata log, so between two brokers that differ only in the ISR nothing better can
    be told than the majority.
    """
    keys = sorted({(state.topic, state.partition) for answer in answers for state in answer.partitions})
    return ClusterState(
        controller=_most_said([answer.controller for answer in answers]),
        brokers=_most_said([answer.brokers for answer in answers]),
        partitions=tuple(_partition(answers, topic, partition) for topic, partition in keys),
    )


def _partition(answers: Sequence[ClusterState], topic: str, partition: int) -> PartitionState:
    states = [state for answer in answers if (state := answer.partition(topic, partition))]
    newest = max(state.leader_epoch for state in states)
    return _most_said([state for state in states if state.leader_epoch == newest])


def _most_said(values: Sequence[T]) -> T:
    """The first of the most frequent."""
    return Counter(values).most_common(1)[0][0]


def _is_served(state: PartitionState) -> bool:
    return state.leader >= 0 and state.full_isr
