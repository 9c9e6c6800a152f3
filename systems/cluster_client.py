"""Asking a cluster about itself: several brokers at once, since one that is cut off speaks of the past."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from kio.schema.errors import ErrorCode

from wrackline.fleets.base import Fleet, FleetError
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.retry import is_passing
from wrackline.kafka_client.transport import ProtocolError, Rejected
from wrackline.systems.base import ClusterState, DeployError, Node, PartitionState, TopicSpec

ASK_TIMEOUT_S = 1.0
"""How long one broker may take to answer."""
GRACE_S = 0.1
"""How long the slower brokers may take once one has answered."""
CONTROLLERS_S = 0.5
"""How long the controllers may take to agree who is active, once a broker has answered."""

T = TypeVar("T", bound=Hashable)
Answer = TypeVar("Answer")


NO_RIGHT = (ErrorCode.topic_authorization_failed, ErrorCode.cluster_authorization_failed)


class TopicRefused(DeployError):
    """The cluster refuses to create a topic: there is none, and waiting does not help."""


def _advice(error: ErrorCode, topic: TopicSpec) -> str:
    """What the user can do about a refusal."""
    if error in NO_RIGHT:
        return (
            f"the principal of system.security has no right to create it: give it the ACLs Create, Delete, "
            f"Describe, DescribeConfigs, Read and Write on the topic {topic.name} (docs/external.md)"
        )
    return "mend the topic's settings"


class ClusterClient:
    """Keeps one connection to each broker. Safe to use from several threads."""

    def __init__(
        self,
        fleet: Fleet,
        brokers: Sequence[Node],
        controllers: Sequence[Node],
        voters: Mapping[str, int] | None = None,
        controller_port: int = 9093,
        active: Callable[[Connection], int] = Connection.named_controller,
        *,
        electorate: Callable[[], Collection[int] | None] = lambda: None,
        question: Callable[[Connection], ClusterState] | None = None,
        dial: Callable[[str, int, float], Connection] | None = None,
    ) -> None:
        """``voters``: the id each controller's host has in the quorum, when there are several.
        ``active``: asks one of several controllers who is active, by its id in the quorum.
        ``electorate``: the controllers of whom most must agree who is active; None for all of them.
        ``question``: what a broker is asked about the cluster; by default all its topics, and of the internal
        ones those of ``internal``. ``dial``: connects to an address and a port
        within so many seconds, where plain TCP is not enough; raises ProtocolError."""
        self._fleet = fleet
        self._brokers = tuple(brokers)
        self._controllers = tuple(controllers)
        self._nodes_of = {voters[node.host.name]: node.node_id for node in controllers} if voters else {}
        self._controller_port = controller_port
        self._electorate = electorate
        self._dial = dial or (lambda host, port, timeout_s: Connection(host, port, timeout_s=timeout_s))
        self.internal: Collection[str] = ()
        ask = question or (lambda one: one.cluster_state(internal=self.internal))
        self._askers = [_Asker(node, self.connect, ask) for node in brokers]
        several = self._controllers if len(self._controllers) > 1 else ()
        self._voters = [_Asker(node, self._connect_controller, active) for node in several]

    def close(self) -> None:
        """Hangs up; nothing can be asked after it."""
        for asker in self._askers:
            asker.close()
        for voter in self._voters:
            voter.close()
        self._askers.clear()
        self._voters.clear()

    def create_topic(self, topic: TopicSpec, *, timeout_s: float = 30.0) -> None:
        """Create it and wait until every partition has a leader and its full ISR. Raises DeployError: at once
        for a refusal that waiting does not mend."""
        deadline = time.monotonic() + timeout_s
        last = self._ask_to_create(topic, deadline)
        while time.monotonic() < deadline:
            try:
                partitions = [one for one in self.describe().partitions if one.topic == topic.name]
            except DeployError as error:
                last = str(error)
            else:
                last = f"partitions {partitions}"
                if len(partitions) == topic.partitions and all(map(_is_served, partitions)):
                    return
            time.sleep(0.05)
        where = ", ".join(node.host.name for node in self._controllers) or "the brokers"
        raise DeployError(
            f"topic {topic.name} was not ready after {timeout_s:g} s; last seen: {last}; "
            f"look at the logs of {where}"
        )

    def _ask_to_create(self, topic: TopicSpec, deadline: float) -> str:
        last = refused = ""
        asked_before = False
        while (left := deadline - time.monotonic()) > 0:
            for node in self._brokers:
                first_try, asked_before = not asked_before, True
                try:
                    with self.connect(node, min(left, 10.0)) as connection:
                        connection.create_topic(topic, timeout_s=left)
                    return f"{node.host.name}: none: no message"
                except Rejected as wrong:
                    last = refused = f"{node.host.name}: {wrong.error.name}: {wrong.message or 'no message'}"
                    if wrong.error is ErrorCode.topic_already_exists and not first_try:
                        return last  # an earlier try whose answer we did not get
                    if not is_passing(wrong.error) or topic.replication_factor > len(self._brokers):
                        raise TopicRefused(
                            f"topic {topic.name} cannot be created: {last}; {_advice(wrong.error, topic)}"
                        ) from wrong
                except ProtocolError as wrong:
                    last = str(wrong)
            time.sleep(0.1)
        raise DeployError(
            f"topic {topic.name} was not created in time; last seen: {refused or last or 'nothing'}; "
            f"see that {topic.replication_factor} brokers, one a replica, are registered and not fenced"
        )

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:
        """Asks all brokers at once and merges their answers: the freshest state of each partition wins."""
        deadline = time.monotonic() + timeout_s
        waiting: dict[Future[ClusterState], Node] = {asker.ask(): asker.node for asker in self._askers}
        electorate = self._electorate()
        votes = [
            voter.ask() for voter in self._voters if electorate is None or voter.node.node_id in electorate
        ]
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
                except ProtocolError as error:
                    problems.append(f"{node.host.name}: {error}")
        if not answers:
            silent = [f"{node.host.name}: no answer in {timeout_s:g} s" for node in waiting.values()]
            raise DeployError("no broker answers: " + "; ".join([*problems, *silent]))
        return self._name_controller(freshest(answers), votes)

    def connect(self, node: Node, timeout_s: float) -> Connection:
        """Raises ProtocolError."""
        return self._connect_to(node.host.address, node.port, timeout_s)

    def _connect_controller(self, node: Node, timeout_s: float) -> Connection:
        return self._connect_to(node.host.address, self._controller_port, timeout_s)

    def _connect_to(self, address: str, port: int, timeout_s: float) -> Connection:
        try:
            with self._fleet.entered():
                return self._dial(address, port, timeout_s)
        except FleetError as error:
            raise ProtocolError(f"the fleet's network cannot be entered: {error}") from error

    def _name_controller(self, state: ClusterState, votes: Sequence[Future[int]]) -> ClusterState:
        """KRaft brokers name any broker as controller in Metadata. A sole controller is known without asking,
        of several each knows the active one; -1: no majority knows one."""
        if not self._controllers:
            return state
        if not votes:
            return ClusterState(self._controllers[0].node_id, state.brokers, state.partitions)
        active = named_by_most(votes, time.monotonic() + CONTROLLERS_S)
        return ClusterState(self._nodes_of.get(active, -1), state.brokers, state.partitions)


def named_by_most(votes: Sequence[Future[int]], deadline: float) -> int:
    """Returns the controller that a majority of the controllers names, -1 for none: one that was cut off
    may still believe in itself."""
    waiting = set(votes)
    counts: Counter[int] = Counter()
    while waiting and (left := deadline - time.monotonic()) > 0:
        done, waiting = wait(waiting, timeout=left, return_when=FIRST_COMPLETED)
        counts.update(future.result() for future in done if future.exception() is None)
        for named, count in counts.most_common(1):
            if count > len(votes) // 2:
                return named
    return -1


class _Asker(Generic[Answer]):
    """Asks one node one question, from one thread of its own: a silent node holds up nobody but those who ask
    it.

    At most one question is under way and one waits. Who asks while one waits gets that one's answer: it is
    asked after they came, so it is fresh.
    """

    def __init__(
        self,
        node: Node,
        connect: Callable[[Node, float], Connection],
        question: Callable[[Connection], Answer],
    ) -> None:
        self.node = node
        self.connect = connect
        self._question = question
        self._connection: Connection | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"ask-{node.host.name}")
        self._mutex = threading.Lock()
        self._last: Future[Answer] | None = None

    def ask(self) -> Future[Answer]:
        """Asks; the future's result raises ProtocolError."""
        with self._mutex:
            if self._last is None or self._last.running() or self._last.done():
                self._last = self._thread.submit(self._ask)
            return self._last

    def close(self) -> None:
        self._thread.submit(self._hang_up)
        self._thread.shutdown(wait=False)

    def _ask(self) -> Answer:
        if self._connection is not None:
            try:
                return self._answer(self._connection)
            except ProtocolError as error:
                if isinstance(error.__cause__, TimeoutError):
                    raise
                # Most likely the node was restarted since: try a new connection.
        self._connection = self.connect(self.node, ASK_TIMEOUT_S)
        return self._answer(self._connection)

    def _answer(self, connection: Connection) -> Answer:
        try:
            return self._question(connection)
        except ProtocolError:
            self._hang_up()
            raise

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def freshest(answers: Sequence[ClusterState]) -> ClusterState:
    """One state from the answers of several brokers (at least one).

    Per partition the highest leader epoch wins (it only grows), then the answer of most brokers. A metadata
    response carries no offset of the metadata log, so between brokers that differ only in the ISR there is
    nothing better to go by than the majority.
    """
    keys = sorted({(state.topic, state.partition) for answer in answers for state in answer.partitions})
    return ClusterState(
        controller=_most_frequent([answer.controller for answer in answers]),
        brokers=_most_frequent([answer.brokers for answer in answers]),
        partitions=tuple(_partition(answers, topic, partition) for topic, partition in keys),
    )


def _partition(answers: Sequence[ClusterState], topic: str, partition: int) -> PartitionState:
    states = [state for answer in answers if (state := answer.partition(topic, partition))]
    newest = max(state.leader_epoch for state in states)
    return _most_frequent([state for state in states if state.leader_epoch == newest])


def _most_frequent(values: Sequence[T]) -> T:
    """The first of the most frequent."""
    return Counter(values).most_common(1)[0][0]


def _is_served(state: PartitionState) -> bool:
    return state.leader >= 0 and state.full_isr
