"""The client of ``wrackline-broker admin``: one connection at a time, to the first of the given brokers that
answers. Brokers pass on to the controller what is the controller's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, TopicData
from kio.schema.describe_quorum.v2.request import PartitionData as LogPartition
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse, Node, PartitionData
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from wrackline.broker.model.messages.admin import ElectionType
from wrackline.broker.model.types import METADATA
from wrackline.broker.wire.own_schemas import ElectedTopic, ElectLeadersRequest
from wrackline.kafka_client.connection import Connection, by_topic, duration
from wrackline.kafka_client.model import Broker, Outcome, PartitionState, Place, Reassignment, ResourceType
from wrackline.kafka_client.transport import NoAnswer, ProtocolError, Rejected

CLIENT_ID = "wrackline-admin"
SLACK_S = 5.0
"""So much longer than the cluster may take over something the answer may take."""
Address = tuple[str, int]

T = TypeVar("T")


class AdminError(Exception):
    """One line: what was asked, what the cluster said."""


class AdminClient:
    """The client for administration: ``with AdminClient([("h", 9092)]) as client:``; every call may raise
    AdminError."""

    def __init__(self, bootstrap: Sequence[Address], timeout_s: float = 10.0) -> None:
        self._bootstrap = list(bootstrap)
        self.timeout_s = timeout_s
        self._connection: Connection | None = None

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, what: str, question: Callable[[Connection], T]) -> T:
        """Returns the answer. ``what``: in an error, what the cluster could not do. Where the connection
        fails, the next question finds another broker."""
        try:
            return question(self._connected())
        except Rejected as rejected:
            raise AdminError(f"cannot {what}: {rejected.reason}") from rejected
        except NoAnswer as silent:
            self.close()
            raise AdminError(f"{silent.address} did not answer {silent.request}: {silent.why}") from silent
        except ProtocolError as error:
            self.close()
            raise AdminError(str(error)) from error

    def _connected(self) -> Connection:
        if self._connection is not None:
            return self._connection
        reasons = []
        for host, port in self._bootstrap:
            try:
                self._connection = Connection(
                    host,
                    port,
                    timeout_s=self.timeout_s,
                    answer_s=self.timeout_s + SLACK_S,
                    client_id=CLIENT_ID,
                )
            except ProtocolError as error:
                reasons.append(f"{host}:{port}: {error.__cause__}")
            else:
                return self._connection
        raise AdminError(f"no broker can be reached ({'; '.join(reasons)}); name another with --bootstrap")

    # --- what several commands ask ------------------------------------------------------------------------

    def brokers(self) -> list[Broker]:
        """Returns the brokers that are unfenced, by id."""
        result = self.ask("describe the cluster", Connection.describe_cluster).brokers
        brokers = (Broker(int(one.broker_id), one.host, int(one.port), one.rack) for one in result)
        return sorted(brokers, key=lambda one: one.node_id)

    def partitions(self, topics: Iterable[str] = ()) -> list[PartitionState]:
        """Returns the partitions of these topics, or of all."""
        result = self.ask("describe topics", lambda one: one.describe_topics(topics))
        for topic in result:
            check(f"describe topic {topic.name}", topic.error)
        return [partition for topic in result for partition in topic.partitions]

    def reassign(self, targets: Mapping[Place, Sequence[int] | None]) -> None:
        """Begins to reassign partitions; None cancels."""
        outcomes = self.ask(
            "reassign", lambda one: one.alter_reassignments(targets, timeout_s=self.timeout_s)
        )
        for done in outcomes:
            target = targets[done.place]
            what = "cancel the reassignment of" if target is None else f"reassign to {list(target)}"
            check(f"{what} {done.place[0]}-{done.place[1]}", done.error, done.message)

    def reassignments(self) -> list[Reassignment]:
        return self.ask("list reassignments", lambda one: one.list_reassignments(timeout_s=self.timeout_s))

    def alter_configs(self, kind: ResourceType, name: str, changes: Mapping[str, str | None]) -> None:
        """Changes settings; None deletes one."""
        what = f"change settings of {name or 'the cluster'}"
        self.ask(what, lambda one: one.alter_configs(kind, name, changes))

    def elect(self, kind: int, partitions: Sequence[Place] | None) -> list[Outcome]:
        """Elects leaders. ``partitions`` None: those where there is something to do."""
        return self.ask(
            "elect leaders", lambda one: one.elect_leaders(kind, partitions, timeout_s=self.timeout_s)
        )

    def name_leader(self, leader: int, partitions: Sequence[Place]) -> list[Outcome]:
        """Names the leader, as a person may where the strategy is manual and there is none (KIP-966)."""
        topics = tuple(
            ElectedTopic(
                topic=TopicName(topic),
                partitions=tuple(map(i32, numbers)),
                desired_leaders=(i32(leader),) * len(numbers),
            )
            for topic, numbers in by_topic((place, place[1]) for place in partitions)
        )
        request = ElectLeadersRequest(
            election_type=i8(ElectionType.DESIGNATED),
            topic_partitions=topics,
            timeout=duration(self.timeout_s),
        )
        return self.ask("elect leaders", lambda one: one.elect(request))

    def quorum(self) -> tuple[PartitionData, tuple[Node, ...]]:
        """Returns the metadata log as the active controller knows it, and the controllers."""
        partition = LogPartition(partition_index=i32(METADATA.partition))
        log = TopicData(topic_name=TopicName(METADATA.topic), partitions=(partition,))
        request = DescribeQuorumRequest(topics=(log,))
        answer = self.ask("describe the quorum", lambda one: one.request(request, DescribeQuorumResponse))
        check("describe the quorum", answer.error_code, answer.error_message)
        for part in (part for topic in answer.topics for part in topic.partitions):
            check("describe the quorum", part.error_code, part.error_message)
            return part, answer.nodes
        raise AdminError("cannot describe the quorum: the answer does not speak of it")


def check(what: str, error: ErrorCode, message: str | None = None) -> None:
    """Raises AdminError for an error."""
    if error is not ErrorCode.none:
        raise AdminError(f"cannot {what}: {error.name}" + (f" ({message})" if message else ""))
